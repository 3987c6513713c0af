"""Which microphone and which speaker a run uses: a recording, the simulated room, or a card.

Main's thread only, at the start: what cannot work is refused before any model is loaded.
"""

from __future__ import annotations

import contextlib
import logging
import os
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING

from oyez import places
from oyez.audio import alsa, cards, portaudio
from oyez.audio.cards import Direction
from oyez.audio.pcm import SampleFormat
from oyez.audio.simulated import simulated_room
from oyez.audio.wav import PacedCapture, Recording, WavPlayback, check_writable
from oyez.errors import MissingLibraryError, UsageError
from oyez.rt.card import CardCapture, CardPlayback
from oyez.rt.mailbox import Mailbox
from oyez.rt.wake import WakeUp
from oyez.workers.device import INBOX_MESSAGES, DeviceThread, LevelWishes

if TYPE_CHECKING:
    from pathlib import Path

    from oyez.audio.ports import Capture, Playback
    from oyez.audio.wav import Pacer, Source
    from oyez.config import CaptureSettings, PlaybackSettings, Settings
    from oyez.speech.engines import Synthesizer

logger = logging.getLogger(__name__)

SILENT_VOICE_HZ = 22_050
"""The rate of the speaker's WAV when no voice is loaded."""


class _Microphone(Enum):
    RECORDING = auto()
    SIMULATED = auto()
    ALSA = auto()
    PORTAUDIO = auto()


@dataclass(frozen=True, slots=True)
class Sound:
    """The two ends of a run, and the thread that supplies them with cards, if there is one.

    Without ``playback`` nothing is answered.
    """

    capture: Capture
    playback: Playback | None
    device: DeviceThread | None = None

    def close(self) -> None:
        """Close both ends, the speaker's after the microphone's."""
        self.capture.close()
        if self.playback is not None:
            self.playback.close()


class SoundChoice:
    """Where sound comes from and goes to.

    Args:
        settings: the configuration.
        recording: a file in the microphone's place, or None.
        answer_wav: where the answer goes when there is no card, or None for the configured file.

    Raises:
        UsageError: the answer would overwrite the recording, or has no file to go to.
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
        if self.is_card and answer_wav is not None:
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
        return self._microphone in (_Microphone.ALSA, _Microphone.PORTAUDIO)

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

    def open(self, voice: Synthesizer | None, pacer: Pacer, main: Mailbox[object]) -> Sound:
        """Both ends, after ``prepare``. Cards that are not there yet are waited for.

        Raises:
            AudioDeviceError, OutputError, MissingLibraryError.
        """
        speaks = voice is not None and bool(self._settings.answer)
        audio = self._settings.audio
        match self._microphone:
            case _Microphone.ALSA:
                return self._open_cards(voice.rate_hz if voice and speaks else None, main)
            case _Microphone.PORTAUDIO:
                capture = portaudio.PortAudioCapture(audio.capture.device, self._period_ms)
                device = audio.playback.device
                playback = portaudio.PortAudioPlayback(device, self._period_ms) if speaks else None
                return Sound(capture, playback)
        assert self._source is not None  # noqa: S101 - see prepare
        wav = WavPlayback(self._answer_wav, voice.rate_hz) if voice and speaks else None
        return Sound(PacedCapture(self._source, pacer, self._period_ms), wav)

    def _open_cards(self, voice_hz: int | None, main: Mailbox[object]) -> Sound:
        """The cards' ends, and the thread that will supply them."""
        alsa.library()
        audio = self._settings.audio
        returned: Mailbox[object] = Mailbox(INBOX_MESSAGES)
        wake_up = WakeUp()
        playback = CardPlayback(returned, wake_up, voice_hz) if voice_hz else None
        capture = CardCapture(returned, wake_up, playback)
        device = DeviceThread(
            main=main,
            inbox=returned,
            proc_asound=places.proc_asound(),
            levels=LevelWishes(gain_db=audio.capture.gain_db, volume_db=audio.playback.volume_db),
        )
        device.keep(Direction.CAPTURE, audio.capture.device, _wish(audio.capture), capture)
        if playback is not None:
            device.keep(Direction.PLAYBACK, audio.playback.device, _wish(audio.playback), playback)
        return Sound(capture, playback, device)

    def close(self) -> None:
        """Close the recording, if there is one; safe to call twice."""
        if self._source is not None:
            self._source.close()

    def _choose(self, recording: Path | None) -> _Microphone:
        if recording is not None:
            return _Microphone.RECORDING
        named = _BACKENDS.get(self._settings.audio.backend)
        return named if named is not None else self._found()

    @staticmethod
    def _found() -> _Microphone:
        """What this machine has."""
        if any(card.capture for card in cards.cards(places.proc_asound())):
            return _Microphone.ALSA
        if _server_found():
            return _Microphone.PORTAUDIO
        if "INVOCATION_ID" in os.environ:  # set by systemd: nobody watches
            # A unit that talked to itself in a simulated room would be silently deaf; this one
            # waits for a card to be plugged in, and says so.
            return _Microphone.ALSA
        logger.warning("no microphone was found: taking the simulated room")
        return _Microphone.SIMULATED


_BACKENDS = {
    "simulated": _Microphone.SIMULATED,
    "alsa": _Microphone.ALSA,
    "portaudio": _Microphone.PORTAUDIO,
}


def _server_found() -> bool:
    """Whether a sound server offers a microphone, where the kernel has no card."""
    try:
        return portaudio.has_microphone()
    except MissingLibraryError as error:
        logger.warning("%s", error)
        return False


def _wish(settings: CaptureSettings | PlaybackSettings) -> alsa.Wish:
    return alsa.Wish(
        rate_hz=None if settings.rate_hz == "auto" else settings.rate_hz,
        channels=None if settings.channels == "auto" else settings.channels,
        sample_format=None if settings.format == "auto" else SampleFormat(settings.format),
        period_ms=settings.period_ms,
        periods=settings.periods,
    )
