"""The audio thread: what it hears, plays, marks, gates and tells.

``run`` is called on the test's own thread where the order of things is the point: a script then
says what happens before each period. Other tests start the thread with real ports.
"""

from __future__ import annotations

import resource
import wave
from collections import defaultdict

import numpy as np
import pytest

from audio.sounds import silence
from oyez.audio.pcm import SampleFormat, StreamFormat
from oyez.audio.ports import Period
from oyez.audio.wav import ArraySource, Lockstep, PacedCapture, WavPlayback
from oyez.errors import AudioDeviceError, OutputError
from oyez.messages import BLOCK_FRAMES, RATE_HZ, AnswerMark, ThreadFailed
from oyez.rt.audio_thread import REVERB_MS, AudioThread
from oyez.rt.front_end import FrontEnd
from oyez.rt.mailbox import Mailbox
from oyez.rt.ring import Flag, FrameRing, PlaybackRing
from workers.scripted import PATIENCE_S, next_of

PERIOD = 320
# In pairs of one height and both signs: a sound with an offset in a period would lose it.
HALVES = np.arange(1, 2_401, dtype=np.int16) * 6
PAIRS = np.stack((HALVES, -HALVES), axis=1).reshape(-1)
QUESTION = np.concatenate((silence(100), PAIRS, silence(107)))
ANSWER = np.linspace(-1, 1, 1_000, dtype=np.float32)


class Quiet:
    def is_speech(self, _block):
        return False


class ScriptedMicrophone:
    """Gives ``periods``; before each it does what the script says for that number.

    After the last one the thread is stopped. From ``ends_at`` on there is nothing to hear.
    """

    description = "a script"
    stream = StreamFormat(rate_hz=RATE_HZ, channels=1, sample_format=SampleFormat.S16)
    period_frames = PERIOD

    def __init__(self, periods, *, overruns=(), ends_at=None):
        self._periods = iter(range(periods))
        self._overruns = overruns
        self._ends_at = periods if ends_at is None else ends_at
        self.script = defaultdict(list)
        self.thread = None

    def read(self):
        number = next(self._periods, None)
        if number is None:
            self.thread.stop()
            return Period(b"", overrun=False)
        for step in self.script[number]:
            step()
        if number >= self._ends_at:
            return None
        return Period(np.full(PERIOD, number, "<i2").tobytes(), number in self._overruns)

    def close(self):
        """Nothing to close."""


class Loudspeaker:
    """A speaker that the microphone hears."""

    written = False
    description = "a list"

    def __init__(self, *, latency_ms=0.0, rate_hz=RATE_HZ, audible=True):
        self.latency_ms = latency_ms
        self.rate_hz = rate_hz
        self.audible = audible
        self.periods = []

    def wanted_frames(self, heard_s):
        return round(heard_s * self.rate_hz)

    def write(self, samples, spoken_frames):
        self.periods.append((samples.copy(), spoken_frames))

    def close(self):
        """Nothing to close."""


class Rig:
    """The thread with its rings and mailbox."""

    def __init__(self, capture, playback=None, *, gate=True):
        self.main = Mailbox(100)
        self.heard = FrameRing(1_000)
        self.spoken = PlaybackRing(20_000) if playback is not None else None
        self.thread = AudioThread(
            capture=capture,
            playback=playback,
            front_end=FrontEnd(Quiet()),
            heard=self.heard,
            spoken=self.spoken,
            gate=gate,
            main=self.main,
        )
        capture.thread = self.thread

    def messages(self):
        return list(iter(lambda: self.main.take(0), None))

    def gated(self):
        flags = [self.heard.flags(block) for block in range(self.heard.head_block)]
        return [block for block, bits in enumerate(flags) if bits & Flag.GATED]

    def answer(self, samples=ANSWER, number=1):
        """What the voice's thread does."""
        self.spoken.mark(number, last=False)
        self.spoken.write(samples)
        self.spoken.mark(number, last=True)


def recorded(samples=QUESTION, settled=lambda: True):
    return PacedCapture(ArraySource(samples, RATE_HZ, "a test"), Lockstep(settled), 20)


def test_a_recording_is_heard_to_the_bit_and_its_end_is_told():
    rig = Rig(recorded())
    rig.thread.start()
    while not rig.heard.ended:
        rig.heard.wait(None)
    blocks = -(-len(QUESTION) // BLOCK_FRAMES)
    assert rig.heard.head_block == blocks
    np.testing.assert_array_equal(rig.heard.copy(0, blocks)[: len(QUESTION)], QUESTION)
    assert rig.thread.is_alive(), "it goes on, so that an answer can be played"
    rig.thread.stop()
    rig.thread.join(PATIENCE_S)
    assert not rig.thread.is_alive()
    assert rig.messages() == []


def test_an_answer_is_played_into_a_wav_after_the_end_of_the_recording(tmp_path):
    playback = WavPlayback(tmp_path / "answer.wav", 22_050)
    rig = Rig(recorded(), playback)
    rig.thread.start()
    while not rig.heard.ended:
        rig.heard.wait(None)
    rig.answer()
    first, last = (next_of(rig.main) for _ in range(2))
    rig.thread.stop()
    rig.thread.join(PATIENCE_S)
    playback.close()
    assert (first.number, first.last) == (last.number, not last.last) == (1, False)
    assert last.frame >= first.frame > rig.heard.head_frame
    with wave.open(str(tmp_path / "answer.wav")) as file:
        assert file.getnframes() == len(ANSWER)


def test_a_stop_is_not_the_end_of_the_input():
    rig = Rig(ScriptedMicrophone(3))
    rig.thread.run()
    assert rig.heard.head_block == 3
    assert not rig.heard.ended


@pytest.mark.parametrize(("rate_hz", "frames"), [(16_000, 320), (22_050, 441), (48_000, 960)])
def test_for_each_period_heard_one_of_the_same_time_is_played(rate_hz, frames):
    speaker = Loudspeaker(rate_hz=rate_hz)
    rig = Rig(ScriptedMicrophone(4), speaker)
    rig.answer(np.ones(frames + 7, np.float32))
    rig.thread.run()
    assert [len(samples) for samples, _ in speaker.periods] == [frames] * 4
    assert [spoken for _, spoken in speaker.periods] == [frames, 7, 0, 0]
    assert not any(samples[spoken:].any() for samples, spoken in speaker.periods)


def test_marks_tell_the_newest_frame_when_their_sample_went_out():
    microphone = ScriptedMicrophone(20)
    rig = Rig(microphone, Loudspeaker())
    microphone.script[4] = [rig.answer]  # 1000 samples: periods 4, 5, 6 and 7
    rig.thread.run()
    assert rig.messages() == [
        AnswerMark(number=1, last=False, frame=5 * BLOCK_FRAMES),
        AnswerMark(number=1, last=True, frame=8 * BLOCK_FRAMES),
    ]


def test_after_the_end_of_a_recording_the_frames_of_marks_count_on():
    microphone = ScriptedMicrophone(20, ends_at=10)
    rig = Rig(microphone, Loudspeaker())
    microphone.script[12] = [rig.answer]
    rig.thread.run()
    assert rig.heard.ended
    assert rig.heard.head_frame == 10 * BLOCK_FRAMES
    first, last = rig.messages()
    assert (first.frame, last.frame) == (13 * BLOCK_FRAMES, 16 * BLOCK_FRAMES)


@pytest.mark.parametrize("latency_ms", [0.0, 40.0, 95.0])
def test_what_is_heard_while_the_speaker_sounds_and_until_the_room_is_quiet_is_gated(latency_ms):
    microphone = ScriptedMicrophone(60)
    rig = Rig(microphone, Loudspeaker(latency_ms=latency_ms))
    microphone.script[4] = [rig.answer]
    rig.thread.run()
    # From the period after the first that was played, until the last one has died away.
    gated = rig.gated()
    assert gated == list(range(5, gated[-1] + 1))
    tail_ms = (gated[-1] - 7) * 20
    assert latency_ms + REVERB_MS <= tail_ms <= latency_ms + REVERB_MS + 2 * 20


def test_a_pause_within_an_answer_does_not_open_the_gate():
    microphone = ScriptedMicrophone(60)
    rig = Rig(microphone, Loudspeaker())
    microphone.script[4] = microphone.script[12] = [lambda: rig.spoken.write(ANSWER)]
    rig.thread.run()
    gated = rig.gated()
    assert gated == list(range(5, gated[-1] + 1))
    assert gated[-1] >= 12 + 4 + REVERB_MS // 20 - 1


@pytest.mark.parametrize(("gate", "audible"), [(False, True), (True, False), (False, False)])
def test_nothing_is_gated_if_the_microphone_cannot_hear_it_or_another_cancels_the_echo(
    gate, audible
):
    microphone = ScriptedMicrophone(20)
    rig = Rig(microphone, Loudspeaker(audible=audible), gate=gate)
    microphone.script[4] = [rig.answer]
    rig.thread.run()
    assert rig.gated() == []
    assert len(rig.messages()) == 2


def test_overruns_are_counted_and_heard_on():
    rig = Rig(ScriptedMicrophone(10, overruns={2, 3, 7}))
    assert rig.thread.overruns == 0
    rig.thread.run()
    assert rig.thread.overruns == 3
    assert rig.heard.head_block == 10


def raising(error):
    def step():
        raise error

    return step


@pytest.mark.parametrize("error", [AudioDeviceError("gone"), ValueError("a fault of ours")])
def test_an_error_of_the_microphone_reaches_main_and_ends_the_thread(error):
    microphone = ScriptedMicrophone(10)
    rig = Rig(microphone)
    microphone.script[3] = [raising(error)]
    rig.thread.start()
    assert next_of(rig.main) == ThreadFailed(thread="oyez-audio", error=error)
    rig.thread.join(PATIENCE_S)
    assert not rig.thread.is_alive()
    assert rig.heard.head_block == 3
    assert not rig.heard.ended


def test_an_error_of_the_speaker_reaches_main(tmp_path):
    playback = WavPlayback(tmp_path / "answer.wav", RATE_HZ)
    microphone = ScriptedMicrophone(10)
    rig = Rig(microphone, playback)
    rig.answer(np.zeros(20_000, np.float32))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        rig.thread.run()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    *_, failed = rig.messages()
    assert isinstance(failed.error, OutputError)


def test_nobody_s_work_is_left_behind_in_lockstep():
    # The next period comes only when the last one was looked at.
    looked_at = []
    rig = Rig(recorded(settled=lambda: rig.heard.head_block == len(looked_at)))
    rig.thread.start()
    while not rig.heard.ended:
        rig.heard.wait(None)
        assert rig.heard.head_block <= len(looked_at) + 1 or rig.heard.ended
        looked_at[:] = range(rig.heard.head_block)
    looked_at[:] = range(rig.heard.head_block)
    rig.thread.stop()
    rig.thread.join(PATIENCE_S)
