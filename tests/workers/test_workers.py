"""The threads around the engines: what they tell, and how they end."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from audio.sounds import pitch_hz, tone
from oyez.errors import EngineError
from oyez.messages import (
    BLOCK_FRAMES,
    AnswerReady,
    AnswerRequest,
    AnswerUnspoken,
    Dropped,
    DropReason,
    EndReason,
    Span,
    ThreadFailed,
    Transcript,
    Utterance,
)
from oyez.rt.mailbox import Mailbox
from oyez.rt.ring import FrameRing, Passed, PlaybackRing
from oyez.workers.speaker import SpeakerWorker
from oyez.workers.transcriber import TranscriberWorker
from oyez.workers.worker import Worker
from workers.scripted import PATIENCE_S, ScriptedTranscriber, ScriptedVoice, reading, wait_until


def utterance(number=1):
    span = Span(
        number=number,
        begin_frame=0,
        end_frame=320,
        speech_begin_frame=0,
        speech_end_frame=320,
        endpoint_frame=320,
        reason=EndReason.SILENCE,
    )
    return Utterance(span=span, samples=np.full(320, number, np.int16), ended_ns=0)


def messages_of(main):
    return list(iter(lambda: main.take(0), None))


def finish(worker):
    """Let it do what waits, and end it."""
    wait_until(lambda: worker.inbox.idle)
    worker.stop()
    worker.join(PATIENCE_S)
    assert not worker.is_alive()


# -- every worker ---------------------------------------------------------------------------------


class Collector(Worker[object]):
    """Keeps its messages; raises those that are errors; waits where it is told to."""

    def __init__(self, main, gate=None):
        super().__init__("oyez-test", capacity=3, main=main)
        self.begun = threading.Event()
        self.handled = []
        self._gate = gate

    def _work_on(self, message):
        self.begun.set()
        if self._gate is not None:
            assert self._gate.wait(PATIENCE_S)
        if isinstance(message, Exception):
            raise message
        self.handled.append(message)


def test_a_worker_handles_its_messages_in_order_on_a_thread_with_its_name():
    worker = Collector(Mailbox(10))
    assert (worker.name, worker.daemon) == ("oyez-test", True)
    for number in range(3):
        worker.inbox.post(number)
    worker.start()
    finish(worker)
    assert worker.handled == [0, 1, 2]


def test_a_worker_that_is_stopped_finishes_its_message_and_leaves_the_others():
    gate = threading.Event()
    worker = Collector(Mailbox(10), gate)
    worker.inbox.post("one")
    worker.inbox.post("two")
    worker.start()
    assert worker.begun.wait(PATIENCE_S)
    worker.stop()
    gate.set()
    worker.join(PATIENCE_S)
    assert worker.handled == ["one"]
    assert worker.inbox.take(0) == "two"


def test_a_worker_that_waits_for_a_message_ends_at_the_stop():
    worker = Collector(Mailbox(10))
    worker.start()
    worker.stop()
    worker.join(PATIENCE_S)
    assert not worker.is_alive()


def test_a_message_that_comes_with_the_stop_is_left():
    worker = Collector(Mailbox(10))

    def take():
        worker.stop()
        return "one"

    worker.inbox.take = take
    worker.run()
    assert worker.handled == []


def test_what_a_worker_raises_is_told_to_main_and_ends_it_idle():
    main = Mailbox(10)
    worker = Collector(main)
    error = ValueError("a fault of ours")
    worker.inbox.post(error)
    worker.start()
    worker.join(PATIENCE_S)
    assert messages_of(main) == [ThreadFailed(thread="oyez-test", error=error)]
    assert worker.inbox.idle


# -- the transcriber ------------------------------------------------------------------------------


class Stt:
    def __init__(self, engine, blocks=7):
        self.main = Mailbox(10)
        self.inference = threading.Lock()
        ring = FrameRing(10)
        for _ in range(blocks):
            ring.write(np.zeros(BLOCK_FRAMES, np.int16), 0, 0.0, 0.0)
        self.worker = TranscriberWorker(
            engine=engine, inference=self.inference, ring=ring, main=self.main
        )


def test_each_utterance_is_read_and_told_with_its_costs():
    engine = ScriptedTranscriber("one", "")
    stt = Stt(engine)
    stt.worker.inbox.post(utterance(1))
    stt.worker.inbox.post(utterance(2))
    stt.worker.start()
    finish(stt.worker)
    first, second = messages_of(stt.main)
    assert isinstance(first, Transcript)
    assert (first.number, first.reading) == (1, reading("one"))
    assert (second.number, second.reading.text) == (2, "")
    assert 0 <= first.decode_ms <= first.after_endpoint_ms
    assert first.text_frame == 7 * BLOCK_FRAMES
    assert [int(samples[0]) for samples in engine.heard] == [1, 2]


def test_a_decode_holds_the_inference_and_gives_it_back():
    class Watched(ScriptedTranscriber):
        def read(self, samples):
            assert stt.inference.locked()
            return super().read(samples)

    stt = Stt(Watched("one"))
    with stt.inference:
        stt.worker.start()
        stt.worker.inbox.post(utterance())
        assert messages_of(stt.main) == []
    finish(stt.worker)
    assert [type(message) for message in messages_of(stt.main)] == [Transcript]
    assert not stt.inference.locked()


def test_the_stop_aborts_a_decode_and_tells_that_there_is_no_text():
    engine = ScriptedTranscriber(stuck=True)
    stt = Stt(engine)
    stt.worker.inbox.post(utterance())
    stt.worker.start()
    assert engine.reading.wait(PATIENCE_S)
    stt.worker.stop()
    stt.worker.join(PATIENCE_S)
    assert messages_of(stt.main) == [Dropped(number=1, reason=DropReason.STOPPED)]
    assert not stt.inference.locked()


def test_an_engine_that_does_not_answer_is_told_and_frees_the_other_inference():
    error = EngineError("no answer")
    stt = Stt(ScriptedTranscriber(error))
    stt.worker.inbox.post(utterance())
    stt.worker.start()
    stt.worker.join(PATIENCE_S)
    assert messages_of(stt.main) == [ThreadFailed(thread="oyez-stt", error=error)]
    assert not stt.inference.locked()


# -- the voice ------------------------------------------------------------------------------------


class Tts:
    def __init__(self, engine, *, capacity=100_000, rate_hz=16_000):
        self.main = Mailbox(10)
        self.inference = threading.Lock()
        self.ring = PlaybackRing(capacity)
        self.worker = SpeakerWorker(
            engine=engine,
            inference=self.inference,
            ring=self.ring,
            rate_hz=rate_hz,
            main=self.main,
        )

    def speak(self, *numbers):
        for number in numbers:
            self.worker.inbox.post(AnswerRequest(number=number, text=f"answer {number}"))
        self.worker.start()

    def played(self):
        """What is in the ring, and the marks in it."""
        out = np.zeros(200_000, np.float32)
        return out[: self.ring.read(out)], list(iter(self.ring.passed, None))


PIECES = (np.full(300, 0.1, np.float32), np.zeros(0, np.float32), np.full(500, 0.2, np.float32))


def test_an_answer_goes_into_the_ring_piece_by_piece_between_its_marks():
    voice = ScriptedVoice(*PIECES)
    tts = Tts(voice)
    tts.speak(1, 2)
    finish(tts.worker)
    assert voice.texts == ["answer 1", "answer 2"]
    ready = messages_of(tts.main)
    assert [(type(message), message.number) for message in ready] == [
        (AnswerReady, 1),
        (AnswerReady, 2),
    ]
    assert all(message.synthesis_ms >= 0 for message in ready)
    sound, marks = tts.played()
    np.testing.assert_array_equal(sound, np.concatenate(PIECES + PIECES))
    assert marks == [Passed(n, last) for n in (1, 2) for last in (False, True)]


@pytest.mark.parametrize("pieces", [(), (np.zeros(0, np.float32),)])
@pytest.mark.parametrize("rate_hz", [16_000, 48_000])
def test_an_answer_without_sound_is_told_and_leaves_no_marks(pieces, rate_hz):
    tts = Tts(ScriptedVoice(*pieces), rate_hz=rate_hz)
    tts.speak(1)
    finish(tts.worker)
    assert messages_of(tts.main) == [AnswerUnspoken(number=1)]
    assert tts.played()[1] == []


@pytest.mark.parametrize("rate_hz", [8_000, 44_100, 48_000])
def test_at_the_speaker_s_rate_an_answer_keeps_length_and_pitch_across_its_pieces(rate_hz):
    sound = tone(440, 1_000, 22_050)
    tts = Tts(ScriptedVoice(*np.array_split(sound, 7), rate_hz=22_050), rate_hz=rate_hz)
    tts.speak(1)
    finish(tts.worker)
    played, _ = tts.played()
    assert len(played) == pytest.approx(rate_hz, abs=2)
    assert pitch_hz(played, rate_hz) == pytest.approx(440, rel=1e-4)
    steps = np.abs(np.diff(played[rate_hz // 10 : -rate_hz // 10]))
    assert steps.max() < 1.1 * 0.5 * 2 * np.pi * 440 / rate_hz  # no click where pieces meet


def test_a_piece_is_made_under_the_inference_and_waits_for_room_without_it():
    class Watched(ScriptedVoice):
        def speak(self, text, *, steady=False):
            assert tts.inference.locked()
            for piece in super().speak(text, steady=steady):
                yield piece
                assert tts.inference.locked()

    tts = Tts(Watched(*PIECES), capacity=400)
    tts.speak(1)
    wait_until(lambda: tts.ring.blocked)
    assert not tts.inference.locked()  # the transcriber may work meanwhile
    assert not tts.worker.inbox.idle
    assert tts.worker.settled
    sound = tts.played()[0]
    finish(tts.worker)
    np.testing.assert_array_equal(np.concatenate((sound, tts.played()[0])), np.concatenate(PIECES))
    assert [type(message) for message in messages_of(tts.main)] == [AnswerReady]


def test_the_stop_frees_a_voice_that_waits_for_room():
    tts = Tts(ScriptedVoice(*PIECES), capacity=400)
    tts.speak(1)
    wait_until(lambda: tts.ring.blocked)
    tts.worker.stop()
    tts.worker.join(PATIENCE_S)
    assert not tts.worker.is_alive()
    assert tts.played()[1] == [Passed(1, last=False)]


def test_a_voice_that_fails_in_the_middle_is_told_after_what_it_said():
    error = EngineError("hoarse")
    tts = Tts(ScriptedVoice(PIECES[0], error))
    tts.speak(1)
    tts.worker.join(PATIENCE_S)
    ready, failed = messages_of(tts.main)
    assert isinstance(ready, AnswerReady)
    assert failed == ThreadFailed(thread="oyez-tts", error=error)
    assert not tts.inference.locked()


def test_a_voice_is_settled_when_it_has_nothing_to_do():
    tts = Tts(ScriptedVoice(*PIECES))
    assert tts.worker.settled
    tts.worker.inbox.post(AnswerRequest(number=1, text="x"))
    assert not tts.worker.settled
    tts.worker.start()
    finish(tts.worker)
    assert tts.worker.settled
