"""What a detector, a transcriber and a voice are, and the tables that name them.

An engine is one file beside this one and one line in a table here; a shared contract test runs
over every line. The factories import their library when called, so that a machine without it
starts all the same and hears which feature is missing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Protocol

from oyez.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import Any

    from oyez.config import TranscriptionSettings, VadSettings, VoiceSettings
    from oyez.messages import Pcm16, PcmFloat, Reading
    from oyez.rt.front_end import BlockVad


class Transcriber(Protocol):
    """Reads words out of sound. One thread at a time, except for ``abort``."""

    def read(self, samples: Pcm16) -> Reading:
        """The words in one utterance: int16 [frames] at 16 kHz, up to 30 s.

        Silence, or nothing that can be read with confidence, gives an empty text.

        Raises:
            EngineError: the model does not answer.
            Aborted: ``abort`` was called meanwhile.
        """
        ...

    def read_whole(self, samples: Pcm16) -> Reading:
        """The words in a recording of any length at the model's full context: slow and careful.

        Raises: as ``read``.
        """
        ...

    def warm_up(self) -> None:
        """Answer once, so that the first utterance finds everything in memory.

        Raises:
            EngineError: the model does not answer.
        """
        ...

    def abort(self) -> None:
        """Make a running and every later ``read`` end as soon as it can. Any thread."""
        ...


class Synthesizer(Protocol):
    """Makes speech out of words. One thread at a time."""

    @property
    def rate_hz(self) -> int:
        """The voice's own sampling rate."""
        ...

    def speak(self, text: str, *, steady: bool = False) -> Iterator[PcmFloat]:
        """The text as float32 pieces in [-1, 1], as they are made; none if it says nothing.

        A voice varies its melody and rhythm each time; ``steady`` asks for the same samples
        whenever the same text is spoken.

        Raises:
            EngineError: the model does not answer.
        """
        ...


class Aborted(Exception):  # noqa: N818 - it is not an error but what was asked for
    """A decode ended because ``abort`` was called; there is no text."""


# name in the configuration -> (module, factory)
VADS = {"webrtc": ("oyez.speech.vad_webrtc", "WebRtcVad")}
TRANSCRIBERS = {"whisper.cpp": ("oyez.speech.stt_whisper", "WhisperTranscriber")}
SYNTHESIZERS = {"piper": ("oyez.speech.tts_piper", "PiperSynthesizer")}


def make_vad(settings: VadSettings) -> BlockVad:
    """The detector that the configuration names. Raises MissingLibraryError, EngineError."""
    vad: BlockVad = _factory(VADS, settings.engine)(settings.aggressiveness)
    return vad


def make_transcriber(settings: TranscriptionSettings, model: Path, threads: int) -> Transcriber:
    """The transcriber that the configuration names, with ``model`` loaded.

    Raises: MissingLibraryError, EngineError.
    """
    engine: Transcriber = _factory(TRANSCRIBERS, settings.engine)(
        model, language=settings.language, threads=threads
    )
    return engine


def make_synthesizer(settings: VoiceSettings, model: Path, threads: int) -> Synthesizer:
    """The voice that the configuration names, with ``model`` loaded.

    Raises: MissingLibraryError, EngineError.
    """
    engine: Synthesizer = _factory(SYNTHESIZERS, settings.engine)(
        model, volume_db=settings.volume_db, threads=threads
    )
    return engine


def _factory(table: dict[str, tuple[str, str]], name: str) -> Callable[..., Any]:
    if name not in table:
        raise EngineError(f"there is no engine {name}", remedy=f"choose one of {', '.join(table)}")
    module, factory = table[name]
    found: Callable[..., Any] = getattr(importlib.import_module(module), factory)
    return found
