"""Sound cards through PortAudio (sounddevice), with blocking streams on the audio thread.

PortAudio's callback thread is not used: one thread hears and speaks, and an unplugged card is an
error of ``read`` there, while a callback would just stop coming. Opened and closed by main.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import numpy as np

from oyez.audio.pcm import SampleFormat, StreamFormat, to_pcm16
from oyez.audio.ports import Period
from oyez.errors import AudioDeviceError, MissingLibraryError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oyez.messages import PcmFloat

MAX_CHANNELS = 2
"""More than a stereo microphone is not asked for; the front end takes the live channel."""
CAPTURE_LATENCY_S = 0.2
"""A deep capture buffer costs no latency, because it is drained; it only buys safety."""


def _sounddevice() -> Any:
    try:
        import sounddevice  # noqa: PLC0415 - optional, and it opens PortAudio
    except ImportError as error:
        raise MissingLibraryError(
            "sounddevice", "the sound card", remedy="install the package sounddevice"
        ) from error
    except OSError as error:
        raise MissingLibraryError(
            "PortAudio", "the sound card", remedy="apt install libportaudio2"
        ) from error
    return sounddevice


def has_microphone() -> bool:
    """Whether there is any device to listen to.

    Raises:
        MissingLibraryError: nobody can tell without PortAudio.
    """
    return any(device["max_input_channels"] > 0 for device in _sounddevice().query_devices())


class PortAudioCapture:
    """A microphone; implements ``ports.Capture``.

    Args:
        device: ``auto`` for the default, or a name or a part of one.
        period_ms: how much is fetched at a time.

    Raises:
        AudioDeviceError: there is no such device, or it cannot be opened.
        MissingLibraryError: see ``has_microphone``.
    """

    def __init__(self, device: str, period_ms: int) -> None:
        sounddevice = _sounddevice()
        with _named("the microphone", device):
            found = sounddevice.query_devices(None if device == "auto" else device, "input")
            rate_hz = int(found["default_samplerate"])
            channels = min(MAX_CHANNELS, found["max_input_channels"])
            self.period_frames = round(rate_hz * period_ms / 1000)
            self._stream = sounddevice.RawInputStream(
                samplerate=rate_hz,
                blocksize=self.period_frames,
                device=found["index"],
                channels=channels,
                dtype="int16",
                latency=CAPTURE_LATENCY_S,
            )
            self._stream.start()
        self.description = str(found["name"])
        self.stream = StreamFormat(
            rate_hz=rate_hz, channels=channels, sample_format=SampleFormat.S16
        )

    def read(self) -> Period | None:
        """See ``ports.Capture``."""
        with _named("the microphone", self.description):
            raw, overflowed = self._stream.read(self.period_frames)
        return Period(bytes(raw), bool(overflowed))

    def close(self) -> None:
        """See ``ports.Capture``."""
        self._stream.close(ignore_errors=True)


class PortAudioPlayback:
    """A speaker; implements ``ports.Playback``. Arguments and errors as ``PortAudioCapture``."""

    audible = True
    written = False

    def __init__(self, device: str, period_ms: int) -> None:
        sounddevice = _sounddevice()
        with _named("the speaker", device):
            found = sounddevice.query_devices(None if device == "auto" else device, "output")
            self.rate_hz = int(found["default_samplerate"])
            # Many cards take stereo alone; both sides get the same.
            self._channels = min(2, found["max_output_channels"])
            self._stream = sounddevice.RawOutputStream(
                samplerate=self.rate_hz,
                blocksize=round(self.rate_hz * period_ms / 1000),
                device=found["index"],
                channels=self._channels,
                dtype="int16",
            )
            self._stream.start()
        self.description = str(found["name"])
        self.latency_ms = float(self._stream.latency) * 1000

    def wanted_frames(self, heard_s: float) -> int:
        """See ``ports.Playback``: as much as was heard; ``write`` then waits for room."""
        return round(heard_s * self.rate_hz)

    def write(self, samples: PcmFloat, spoken_frames: int) -> None:  # noqa: ARG002 - silence too
        """See ``ports.Playback``."""
        frames = np.repeat(to_pcm16(samples), self._channels)
        with _named("the speaker", self.description):
            self._stream.write(frames.tobytes())

    def close(self) -> None:
        """See ``ports.Playback``; what was written is played to its end."""
        with contextlib.suppress(Exception):  # a dead card cannot be stopped, only closed
            self._stream.stop()
        self._stream.close(ignore_errors=True)


@contextlib.contextmanager
def _named(what: str, device: str) -> Iterator[None]:
    """PortAudio's errors as ours; a name that fits no device is a ValueError there."""
    try:
        yield
    except (_sounddevice().PortAudioError, ValueError) as error:
        name = "(the default)" if device == "auto" else device
        raise AudioDeviceError(
            f"{what} {name} cannot be used: {error}",
            remedy="is it plugged in, and not in use elsewhere? `python -m sounddevice` in Oyez's "
            "environment lists the devices",
        ) from error
