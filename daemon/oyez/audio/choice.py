"""Which microphone and which speaker a run uses: a recording, the simulated room, or a card.

Main's thread only, at the start: what cannot work is refused before any model is loaded.
"""

from __future__ import annotations

import contextlib
import logging
import os
from enum import Enum, auto
from typing import TYPE_CHECKING

from oyez.audio import portaudio
from oyez.audio.simulated import simulated_room
from oyez.audio.wav import PacedCapture, Recording, WavPlayback, check_writable
from oyez.errors import AudioDeviceError, MissingLibraryError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from oyez.audio.ports import Capture, Playback
    from oyez.audio.wav import Pacer, Source
    from oyez.config import Settings
    from oyez.speech.engines import Synthesizer

logger = logging.getLogger(__name__)

SILENT_VOICE_HZ = 22_050
"""The rate of the speaker's WAV when no voice is loaded."""


class _Microphone(Enum):
    RECORDING = auto()
    SIMULATED = auto()
    CARD = auto()


class SoundChoice:
    """Where sound comes from and goes to.

    Args:
        settings: the configuration.
        recording: a file in the microphone's place, or None.
        answer_wav: where the answer goes when there is no card, or None for the configured file.

    Raises:
        UsageError: the answer would overwrite the recording, or has no file to go to.
        AudioDeviceError: an unattended run finds no microphone.
        InputError, NotFoundError, OutputError: a file cannot be used.
    """

    def __init__(
        self, settings: Settings, *, recording: Path | None, answer_wav: Path | None
    ) -> None:
        self._settings = settings
        self._period_ms = settings.audio.capture.period_ms
        self._source: Source | None = None
        self._microphone = self._choose(recording)
        self._answer_wav = answer_wav or settings.simulation.answer_wav
        if self._microphone is _Microphone.CARD and answer_wav is not None:
            raise UsageError(
                "the answer goes to the sound card here, not to a file",
                remedy="leave --output away, or give --input FILE",
            )
        if not self.is_card and settings.answer:
            check_writable(self._answer_wav)
        if recording is not None:
            self._source = Recording(recording)
            with contextlib.suppress(OSError):  # there is no such file yet
                if self._answer_wav.samefile(recording):
                    self.close()
                    raise UsageError(
                        f"the answer would overwrite the recording {recording}",
                        remedy="choose another file with --output",
                    )

    @property
    def is_card(self) -> bool:
        """Whether a real microphone listens, so that the run has no end of its own."""
        return self._microphone is _Microphone.CARD

    @property
    def needs_voice(self) -> bool:
        """Whether a voice is needed even if nothing is answered: it asks the questions."""
        return self._microphone is _Microphone.SIMULATED

    def prepare(self, voice: Synthesizer) -> None:
        """Have the questions asked beforehand, where they are needed. Any one thread; takes long.

        Raises: ConfigError, EngineError.
        """
        if self.needs_voice:
            self._source = simulated_room(self._settings.simulation, voice)

    def open_capture(self, pacer: Pacer) -> Capture:
        """The microphone, after ``prepare``. Raises AudioDeviceError."""
        if self.is_card:
            return portaudio.PortAudioCapture(self._settings.audio.capture.device, self._period_ms)
        assert self._source is not None  # noqa: S101 - see prepare
        return PacedCapture(self._source, pacer, self._period_ms)

    def open_playback(self, voice: Synthesizer | None) -> Playback | None:
        """The speaker, or None when nothing is answered. Raises AudioDeviceError, OutputError."""
        if voice is None or not self._settings.answer:
            return None
        if self.is_card:
            device = self._settings.audio.playback.device
            return portaudio.PortAudioPlayback(device, self._period_ms)
        return WavPlayback(self._answer_wav, voice.rate_hz)

    def close(self) -> None:
        """Close the recording, if there is one; safe to call twice."""
        if self._source is not None:
            self._source.close()

    def _choose(self, recording: Path | None) -> _Microphone:
        if recording is not None:
            return _Microphone.RECORDING
        match self._settings.audio.backend:
            case "simulated":
                return _Microphone.SIMULATED
            case "portaudio":
                return _Microphone.CARD
        if _card_found():
            return _Microphone.CARD
        if "INVOCATION_ID" in os.environ:  # set by systemd: nobody watches
            # A unit that talked to itself in a simulated room would be silently deaf.
            raise AudioDeviceError(
                "no microphone was found",
                remedy="plug one in, or set audio.backend to simulated for a trial",
            )
        logger.warning("no microphone was found: taking the simulated room")
        return _Microphone.SIMULATED


def _card_found() -> bool:
    try:
        return portaudio.has_microphone()
    except MissingLibraryError as error:
        logger.warning("%s", error)
        return False
