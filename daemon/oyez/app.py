"""The composition root: build, start in order, run, stop in reverse order.

Everything here is the main thread's, which after the start only takes messages, decides
(``dialog.turns``) and prints: it never waits on a worker.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from oyez import places
from oyez.audio.wav import Lockstep, RealTime
from oyez.dialog.loudness import Loudness
from oyez.dialog.turns import Turns
from oyez.messages import (
    Blip,
    InputEnded,
    SpeechStarted,
    StopRequested,
    ThreadFailed,
    Transcript,
    frames_to_ms,
)
from oyez.models.catalogue import Catalogue, Kind
from oyez.models.store import ModelStore
from oyez.ops.receipt import Outcome, Receipt
from oyez.ops.sound_watch import SoundWatch
from oyez.rt.mailbox import Mailbox
from oyez.sound import SoundChoice
from oyez.speech import engines
from oyez.workers.crew import Crew

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from oyez.config import Settings
    from oyez.ops.console import Console
    from oyez.sound import Sound
    from oyez.speech.engines import Synthesizer, Transcriber

logger = logging.getLogger(__name__)

MAIN_MESSAGES = 1024
"""Main's mailbox: an utterance leaves about seven messages, so it never fills while main lives."""
SWITCH_INTERVAL_S = 0.0005
"""A busy Python thread may keep the audio thread waiting so long (Python's default is 5 ms)."""
LIVENESS_MS = 1_000
"""How often main looks whether all threads live when nothing else happens."""

Engine = TypeVar("Engine")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What the command line adds to the configuration."""

    recording: Path | None = None
    answer_wav: Path | None = None
    once: bool = False
    paced: bool = True


class _Stopped(Exception):  # noqa: N818 - it is not an error but what was asked for
    """A signal came while the models were loading."""


def inference_threads(settings: Settings) -> int:
    """How many threads an inference may take; by default one core is left for the rest."""
    asked = settings.transcription.threads
    return max(1, len(os.sched_getaffinity(0)) - 1) if asked == "auto" else asked


class App:
    """One run: hear, transcribe and answer until a signal, the end of the input, or an error."""

    def __init__(self, settings: Settings, options: RunOptions, console: Console) -> None:
        self._settings = settings
        self._options = options
        self._console = console
        self._main: Mailbox[object] = Mailbox(MAIN_MESSAGES)
        self._turns = Turns(settings.answer, paced=options.paced)
        self._crew: Crew | None = None
        self._watch: SoundWatch
        self._input_ended = False
        self._transcribed = 0

    def run(self) -> None:
        """Do it.

        Raises:
            OyezError: what went wrong, with its exit code and remedy.
        """
        begin_s = time.monotonic()
        with ExitStack() as stack:
            self._take_signals(stack)
            choice = SoundChoice(
                self._settings,
                recording=self._options.recording,
                answer_wav=self._options.answer_wav,
            )
            stack.callback(choice.close)
            try:
                transcriber, voice = self._load(choice)
            except _Stopped:
                return
            pacer = RealTime() if self._options.paced else Lockstep(self._settled)
            sound = choice.open(voice, pacer, self._main)
            stack.callback(self._close_sound, sound)
            self._crew = Crew(
                self._settings, main=self._main, sound=sound, transcriber=transcriber, voice=voice
            )
            _prepare_interpreter(stack)
            self._watch = SoundWatch(
                Loudness(
                    self._settings.audio.capture.gain_db,
                    self._crew.front_end,
                    self._crew.set_gain,
                    places.state_folder() / "gain.json",
                )
            )
            stack.callback(self._stop, self._crew)
            self._crew.start()
            self._say_ready(sound, begin_s)
            self._converse(self._crew)

    def _take_signals(self, stack: ExitStack) -> None:
        """SIGINT and SIGTERM become messages: a handler may touch no more than that and a flag."""

        def ask_to_stop(number: int, _frame: object) -> None:
            self._console.hurry()
            self._main.post(StopRequested(reason=signal.Signals(number).name))

        for number in (signal.SIGINT, signal.SIGTERM):
            stack.callback(signal.signal, number, signal.signal(number, ask_to_stop))

    # -- start --------------------------------------------------------------------------------

    def _load(self, choice: SoundChoice) -> tuple[Transcriber, Synthesizer | None]:
        """Load the models, both at the same time.

        Raises:
            OyezError: a model cannot be used.
            _Stopped: a signal came meanwhile.
        """
        settings = self._settings
        store = ModelStore(settings.models.folder_path, Catalogue.load())
        threads = inference_threads(settings)

        def load_transcriber() -> Transcriber:
            model = store.ready(settings.transcription.model, Kind.WHISPER)
            engine = engines.make_transcriber(settings.transcription, model, threads)
            engine.warm_up()
            return engine

        def load_voice() -> Synthesizer:
            model = store.ready(settings.voice.model, Kind.PIPER)
            engine = engines.make_synthesizer(settings.voice, model, threads)
            choice.prepare(engine)
            return engine

        transcriber = _Loading("oyez-load-stt", load_transcriber, self._main)
        voice = None
        if settings.answer or choice.needs_voice:
            voice = _Loading("oyez-load-tts", load_voice, self._main)
        return self._loaded(transcriber), self._loaded(voice) if voice is not None else None

    def _loaded(self, loading: _Loading[Engine]) -> Engine:
        while loading.engine is None:
            match self._main.take():
                case StopRequested():
                    raise _Stopped
                case ThreadFailed(error=error):
                    raise error
        return loading.engine

    def _settled(self) -> bool:
        return self._crew is None or self._crew.settled()

    def _say_ready(self, sound: Sound, begin_s: float) -> None:
        ready_ms = round((time.monotonic() - begin_s) * 1000)
        speaker = sound.playback.description if sound.playback else "none"
        if sound.device is None:  # cards are told of when they are opened
            logger.info(
                "microphone: %s (%s); speaker: %s",
                sound.capture.description,
                sound.capture.stream,
                speaker,
            )
        logger.info(
            "listening after %d ms: %s, %s, %d thread(s) for inference",
            ready_ms,
            self._settings.transcription.model,
            self._settings.voice.model if sound.playback else "no voice",
            inference_threads(self._settings),
        )
        self._console.state("listening", ready_ms=ready_ms)

    # -- run ----------------------------------------------------------------------------------

    def _converse(self, crew: Crew) -> None:
        while not self._is_over():
            message = self._main.take(LIVENESS_MS)
            self._watch.look(crew)
            match message:
                case None:
                    crew.check_alive()
                case StopRequested(reason=reason):
                    logger.info("stopping: %s", reason)
                    return
                case ThreadFailed(thread=thread, error=error):
                    logger.error("the thread %s ended: %s", thread, error)
                    raise error
                case InputEnded():
                    self._input_ended = True
                case _:
                    self._act(crew, message)

    def _is_over(self) -> bool:
        """Whether the one answer was given, or all that followed from a finite input is done."""
        once = self._options.once and bool(self._turns.spoken_answers or self._transcribed)
        return once or (self._input_ended and self._turns.all_over)

    def _act(self, crew: Crew, message: object) -> None:
        self._watch.take(message)
        match message:
            case SpeechStarted(number=number, frame=frame):
                logger.debug("utterance %d: speech since %d ms", number, frames_to_ms(frame))
            case Blip(begin_frame=begin, end_frame=end):
                logger.debug("too short to be speech: %d ms", frames_to_ms(end - begin))
        if isinstance(message, Transcript) and message.reading.text:
            self._console.heard(message.reading.text)
        for action in self._turns.take(message):
            if isinstance(action, Receipt):
                self._close(action)
                continue
            self._console.answering(action.text)
            if not crew.speak(action):
                self._close(self._turns.refused(action))

    def _close(self, receipt: Receipt) -> None:
        self._console.receipt(receipt)
        # Where nothing is ever answered, a text is all that there is to wait for.
        self._transcribed += receipt.outcome is Outcome.TRANSCRIBED

    # -- stop ---------------------------------------------------------------------------------

    def _stop(self, crew: Crew) -> None:
        """Stop the threads, and give every open turn its receipt."""
        if not crew.stop():
            logger.warning("a model is still at work and is left behind")
        self._watch.look(crew, last=True)
        receipts = []
        while (message := self._main.take(0)) is not None:
            if isinstance(message, ThreadFailed):
                logger.error("the thread %s ended: %s", message.thread, message.error)
            receipts += [a for a in self._turns.take(message) if isinstance(a, Receipt)]
        receipts += self._turns.close_all()
        for receipt in sorted(receipts, key=lambda receipt: receipt.utterance):
            self._close(receipt)

    def _close_sound(self, sound: Sound) -> None:
        sound.close()
        if sound.playback is not None and sound.playback.written:
            logger.info("the answer is in %s", sound.playback.description)


def _prepare_interpreter(stack: ExitStack) -> None:
    """Keep the interpreter out of the audio thread's way; before that starts."""
    # What was made so far lives for the whole run: the collector need not look at it again. What
    # is still frozen when the interpreter ends is reported as leaked by soxr's binding.
    gc.collect()
    gc.freeze()
    stack.callback(gc.unfreeze)
    stack.callback(sys.setswitchinterval, sys.getswitchinterval())
    sys.setswitchinterval(SWITCH_INTERVAL_S)


class _Loading(threading.Thread, Generic[Engine]):
    """Loads one engine on a thread of its own; wakes ``main`` when it is there or cannot be."""

    def __init__(self, name: str, load: Callable[[], Engine], main: Mailbox[object]) -> None:
        super().__init__(name=name, daemon=True)
        self._load = load
        self._main = main
        self.engine: Engine | None = None
        self.start()

    def run(self) -> None:
        """Load it."""
        try:
            self.engine = self._load()
            self._main.wake()
        except Exception as error:  # noqa: BLE001 - the thread's top: main raises it
            self._main.post(ThreadFailed(thread=self.name, error=error))
