"""All threads together: their order at the end, and what is settled when."""

from __future__ import annotations

import numpy as np
import pytest

from audio.sounds import buzz, silence
from oyez.audio.wav import ArraySource, Lockstep, PacedCapture
from oyez.config import Settings
from oyez.errors import AudioDeviceError, EngineError, OyezError
from oyez.messages import (
    AnswerMark,
    AnswerRequest,
    Dropped,
    DropReason,
    EndReason,
    Heard,
    InputEnded,
    SpeechStarted,
    ThreadFailed,
    Transcript,
)
from oyez.rt.mailbox import Mailbox
from oyez.sound import Sound
from oyez.workers import crew as crew_module
from oyez.workers.crew import Crew
from oyez.workers.speaker import QUEUE_ANSWERS
from workers.scripted import PATIENCE_S, HeldMicrophone, ScriptedTranscriber, ScriptedVoice, next_of

SETTINGS = Settings()
LONG_BUZZ = np.concatenate((silence(400), buzz(3_000), silence(2_000)))
TWO_QUESTIONS = np.concatenate((silence(400), buzz(600), silence(1_500), buzz(400), silence(1_500)))
ANSWER = np.full(3_000, 0.25, np.float32)


class Free:
    """A pacer that lets everything pass."""

    def wait_until(self, stream_s):
        """At once."""


class Speaker:
    """A speaker that keeps what is written to it; ``audible`` says whether the gate is needed."""

    written = False
    latency_ms = 0.0
    description = "a list"

    def __init__(self, rate_hz=16_000, *, audible=False):
        self.rate_hz = rate_hz
        self.audible = audible
        self.periods = []

    def wanted_frames(self, heard_s):
        return round(heard_s * self.rate_hz)

    def write(self, samples, spoken_frames):
        self.periods.append(samples[:spoken_frames].copy())

    def close(self):
        """Nothing to close."""


class Run:
    """A crew with its mailbox; stopped at the end of the test in any case."""

    def __init__(self, samples, transcriber, voice=None, playback=None, *, held=None, failure=None):
        self.main = Mailbox(1024)
        self.crew = None
        pacer = Lockstep(self._settled) if held is None else Free()
        capture = PacedCapture(ArraySource(samples, 16_000, "a test"), pacer, 20)
        self.microphone = None
        if held is not None:
            capture = self.microphone = HeldMicrophone(capture, held, failure)
        self.crew = Crew(
            SETTINGS,
            main=self.main,
            sound=Sound(capture, playback),
            transcriber=transcriber,
            voice=voice,
        )

    def _settled(self):
        return self.crew is None or self.crew.settled()

    def __enter__(self):
        self.crew.start()
        return self

    def __exit__(self, *_):
        self.crew.stop()

    def until(self, kind):
        """The messages up to the first of ``kind``, which is the last of them."""
        messages = [next_of(self.main)]
        while not isinstance(messages[-1], kind):
            messages.append(next_of(self.main))
        return messages

    def rest(self):
        """What is left in the mailbox."""
        messages = []
        while (message := self.main.take(0)) is not None:
            messages.append(message)
        return messages


def of(messages, kind):
    return [message for message in messages if isinstance(message, kind)]


@pytest.mark.parametrize("_", range(5))
def test_an_utterance_that_is_open_at_the_stop_ends_as_stopped(_):
    # The audio thread goes first, and the listener must not take its end for the input's.
    with Run(LONG_BUZZ, ScriptedTranscriber("never"), held=100) as run:
        run.until(SpeechStarted)
        assert run.crew.stop()
        messages = run.rest()
    assert [heard.span.reason for heard in of(messages, Heard)] == [EndReason.STOPPED]
    assert of(messages, Dropped) == [Dropped(number=1, reason=DropReason.STOPPED)]
    assert not of(messages, InputEnded)


def converse(playback, voice):
    """Two questions and their answers in an unpaced run, to the end of the input."""
    messages = []
    with Run(TWO_QUESTIONS, ScriptedTranscriber("one", "two"), voice, playback) as run:
        spoken = 0
        while not of(messages, InputEnded) or spoken < 2:
            messages += run.until(object)
            match messages[-1]:
                case Transcript(number=number, reading=reading):
                    assert run.crew.speak(AnswerRequest(number=number, text=reading.text))
                case AnswerMark(last=True):
                    spoken += 1
        assert run.crew.stop()
    return messages


def test_an_unpaced_run_hears_reads_and_answers_in_order():
    voice, speaker = ScriptedVoice(ANSWER), Speaker()
    messages = converse(speaker, voice)
    told = [type(message).__name__ for message in messages]
    assert [name for name in told if name != "MicrophoneChanged"] == [
        *("SpeechStarted", "Heard", "Transcript", "AnswerReady", "AnswerMark", "AnswerMark"),
        *("SpeechStarted", "Heard", "Transcript", "AnswerReady", "AnswerMark", "AnswerMark"),
        "InputEnded",
    ]
    assert voice.texts == ["one", "two"]
    np.testing.assert_array_equal(np.concatenate(speaker.periods), np.tile(ANSWER, 2))


def test_an_unpaced_run_decides_the_same_twice():
    # Not the frame in which an answer begins: an engine that answers between the capture and the
    # playback of one period, as no real one does, is heard a period earlier.
    def decided():
        messages = converse(Speaker(), ScriptedVoice(ANSWER))
        return [heard.span for heard in of(messages, Heard)], of(messages, InputEnded)

    assert decided() == decided()


def test_in_an_unpaced_run_the_text_is_there_before_the_next_block_is_heard():
    messages = converse(Speaker(), ScriptedVoice(ANSWER))
    endpoints = [heard.span.endpoint_frame for heard in of(messages, Heard)]
    assert [transcript.text_frame for transcript in of(messages, Transcript)] == endpoints
    assert endpoints[1] < of(messages, InputEnded)[0].frame


def test_an_answer_longer_than_the_playback_ring_is_spoken_whole_in_an_unpaced_run():
    # The voice waits for room meanwhile, and the run must not wait for the voice.
    speaker = Speaker()
    long_answer = np.linspace(-1, 1, 12 * 16_000, dtype=np.float32)
    with Run(
        TWO_QUESTIONS, ScriptedTranscriber("one", "two"), ScriptedVoice(long_answer), speaker
    ) as run:
        run.until(Transcript)
        assert run.crew.speak(AnswerRequest(number=1, text="one"))
        assert not run.until(AnswerMark)[-1].last
        run.until(AnswerMark)
    np.testing.assert_array_equal(np.concatenate(speaker.periods), long_answer)


def test_an_audible_speaker_gates_the_microphone():
    # The answer is longer than all that is left of the input: the second question is not heard.
    voice = ScriptedVoice(np.full(8 * 16_000, 0.5, np.float32))
    with Run(TWO_QUESTIONS, ScriptedTranscriber("one"), voice, Speaker(audible=True)) as run:
        run.until(Transcript)
        assert run.crew.speak(AnswerRequest(number=1, text="one"))
        messages = run.until(InputEnded)
    assert not of(messages, SpeechStarted)


@pytest.mark.parametrize("error", [EngineError("no answer"), ValueError("a fault of ours")])
def test_a_transcriber_that_fails_is_told_and_missed(error):
    with Run(TWO_QUESTIONS, ScriptedTranscriber(error)) as run:
        failed = run.until(ThreadFailed)[-1]
        assert failed == ThreadFailed(thread="oyez-stt", error=error)
        run.crew._transcriber.join(PATIENCE_S)
        with pytest.raises(OyezError, match="oyez-stt ended unexpectedly"):
            run.crew.check_alive()
        assert run.crew.stop()


def test_a_voice_that_fails_is_told():
    error = EngineError("hoarse")
    with Run(
        TWO_QUESTIONS, ScriptedTranscriber("one"), ScriptedVoice(ANSWER, error), Speaker()
    ) as run:
        run.until(Transcript)
        run.crew.check_alive()
        assert run.crew.speak(AnswerRequest(number=1, text="one"))
        assert run.until(ThreadFailed)[-1] == ThreadFailed(thread="oyez-tts", error=error)


def test_a_card_that_is_pulled_out_is_told_and_what_was_open_ends_as_stopped():
    error = AudioDeviceError("gone")
    with Run(LONG_BUZZ, ScriptedTranscriber("never"), held=100, failure=error) as run:
        assert run.until(ThreadFailed)[-1] == ThreadFailed(thread="oyez-audio", error=error)
        assert run.crew.stop()
        assert [heard.span.reason for heard in of(run.rest(), Heard)] == [EndReason.STOPPED]


@pytest.mark.parametrize("who", ["_listener", "_transcriber", "main", "_speaker"])
def test_nothing_is_settled_while_anybody_has_work(who):
    run = Run(silence(20), ScriptedTranscriber(), ScriptedVoice(ANSWER), Speaker())
    assert run.crew.settled()
    match who:
        case "_listener":
            run.crew.heard.write(silence(20), 0, 0.0, 0.0)
        case "main":
            run.main.post("anything")
        case _:
            getattr(run.crew, who).inbox.post("anything")
    assert not run.crew.settled()


def test_at_the_stop_an_unpaced_run_does_not_wait_for_work_to_be_done():
    engine = ScriptedTranscriber(stuck=True)
    with Run(TWO_QUESTIONS, engine) as run:
        audio_ended, abort = [], engine.abort

        def watched():
            audio_ended.append(not run.crew._audio.is_alive())
            abort()

        engine.abort = watched
        run.until(Heard)
        assert engine.reading.wait(PATIENCE_S)
        assert run.crew.stop()
    assert audio_ended[0]


def test_a_running_decode_is_aborted_at_the_stop():
    engine = ScriptedTranscriber(stuck=True)
    with Run(TWO_QUESTIONS, engine, held=120) as run:
        run.until(Heard)
        assert engine.reading.wait(PATIENCE_S)
        assert run.crew.stop()
        assert run.rest() == [Dropped(number=1, reason=DropReason.STOPPED)]


def test_a_model_that_does_not_return_is_left_behind(monkeypatch):
    monkeypatch.setattr(crew_module, "JOIN_S", 0.05)
    engine = ScriptedTranscriber(stuck=True)
    abort, engine.abort = engine.abort, lambda: None
    with Run(TWO_QUESTIONS, engine, held=120) as run:
        run.until(Heard)
        assert engine.reading.wait(PATIENCE_S)
        assert not run.crew.stop()
        monkeypatch.setattr(crew_module, "JOIN_S", PATIENCE_S)
        abort()
        assert run.crew.stop()


def test_no_answer_is_taken_without_a_speaker():
    run = Run(silence(20), ScriptedTranscriber(), ScriptedVoice(ANSWER), playback=None)
    assert not run.crew.speak(AnswerRequest(number=1, text="one"))


def test_an_answer_too_many_is_refused():
    run = Run(silence(20), ScriptedTranscriber(), ScriptedVoice(ANSWER), Speaker())
    taken = [run.crew.speak(AnswerRequest(number=n, text="x")) for n in range(QUEUE_ANSWERS + 1)]
    assert taken == [True] * QUEUE_ANSWERS + [False]


def test_a_crew_that_lost_nothing_says_so():
    with Run(TWO_QUESTIONS, ScriptedTranscriber("one", "two")) as run:
        run.until(InputEnded)
    assert (run.crew.overruns, run.crew.lost_frames) == (0, 0)


def test_a_crew_that_was_never_started_can_be_stopped():
    run = Run(silence(20), ScriptedTranscriber(), ScriptedVoice(ANSWER), Speaker())
    assert run.crew.stop()
