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
from oyez.errors import AudioDeviceError, MissingLibraryError, UsageError
from oyez.rt.card import CardCapture, CardPlayback
from oyez.rt.mailbox import Mailbox
from oyez.rt.wake import WakeUp
from oyez.workers.device import INBOX_MESSAGES, DeviceThread, LevelWishes

if TYPE_CHECKING:
    from pathlib import Path

    from oyez.audio.ports import Capture, Playback
    from oyez.audio.wav import Pacer, Source
    from oyez.config import AudioSettings, CaptureSettings, PlaybackSettings, Settings
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
        speaker_hz = voice.rate_hz if voice is not None and self._settings.answer else None
        if self.is_card:
            return _open(self._microphone, self._settings.audio, main, speaker_hz)
        assert self._source is not None  # noqa: S101 - see prepare
        wav = WavPlayback(self._answer_wav, speaker_hz) if speaker_hz else None
        return Sound(PacedCapture(self._source, pacer, self._period_ms), wav)

    def close(self) -> None:
        """Close the recording, if there is one; safe to call twice."""
        if self._source is not None:
            self._source.close()

    def _choose(self, recording: Path | None) -> _Microphone:
        if recording is not None:
            return _Microphone.RECORDING
        if (found := _named_or_found(self._settings.audio)) is not None:
            return found
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


def open_card(settings: AudioSettings, main: Mailbox[object], *, speaker_hz: int | None) -> Sound:
    """A real microphone, for tools that measure; with a speaker for sound at ``speaker_hz``.

    A sound server's speaker has a rate of its own, which its ``rate_hz`` then tells. Cards that are
    not there yet are waited for.

    Raises:
        AudioDeviceError: there is none, or a device of the sound server's cannot be opened.
        MissingLibraryError: what it takes to open them is not installed.
    """
    microphone = _named_or_found(settings)
    if microphone is None or microphone is _Microphone.SIMULATED:
        named = "the configuration names the simulated room" if microphone else "none was found"
        raise AudioDeviceError(
            f"there is no microphone to measure: {named}",
            remedy="plug one in, and set audio.backend to auto; `oyez devices` tells what is there",
        )
    return _open(microphone, settings, main, speaker_hz)


def _open(
    microphone: _Microphone, audio: AudioSettings, main: Mailbox[object], speaker_hz: int | None
) -> Sound:
    """Both ends of a card, by the way that was chosen."""
    if microphone is _Microphone.ALSA:
        return _open_alsa(audio, main, speaker_hz)
    capture = portaudio.PortAudioCapture(audio.capture.device, audio.capture.period_ms)
    if speaker_hz is None:
        return Sound(capture, None)
    try:
        playback = portaudio.PortAudioPlayback(audio.playback.device, audio.capture.period_ms)
    except BaseException:
        capture.close()
        raise
    return Sound(capture, playback)


def _open_alsa(audio: AudioSettings, main: Mailbox[object], speaker_hz: int | None) -> Sound:
    """The cards' ends, and the thread that will supply them."""
    alsa.library()
    returned: Mailbox[object] = Mailbox(INBOX_MESSAGES)
    wake_up = WakeUp()
    playback = CardPlayback(returned, wake_up, speaker_hz) if speaker_hz else None
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


def _named_or_found(settings: AudioSettings) -> _Microphone | None:
    """What the configuration names, or else what this machine has."""
    if settings.backend in _BACKENDS:
        return _BACKENDS[settings.backend]
    if any(card.capture for card in cards.cards(places.proc_asound())):
        return _Microphone.ALSA
    return _Microphone.PORTAUDIO if _server_found() else None


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
