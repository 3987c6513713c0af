"""Sound cards through PortAudio (sounddevice), with blocking streams on the audio thread.

PortAudio's callback thread is not used: one thread hears and speaks. Nor is its waiting: when a
card is gone, it tries again in native code, at full speed and for ever. So nothing is read or
written before the stream says that it is there, or has room. Opened and closed by main.
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from oyez.audio.pcm import SampleFormat, StreamFormat, to_pcm16
from oyez.audio.ports import Period
from oyez.errors import AudioDeviceError, MissingLibraryError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from oyez.messages import PcmFloat

MAX_CHANNELS = 2
"""More than a stereo microphone is not asked for; the front end takes the live channel."""
CAPTURE_LATENCY_S = 0.2
"""A deep capture buffer costs no latency, because it is drained; it only buys safety."""
STALL_S = 1.0
"""A card that moves no period in this time is gone, or as good as gone."""
LEAST_SLEEP_S = 0.001
"""Between two looks at a stream: the card's clock and ours differ by less than a period."""


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


class Listed(NamedTuple):
    """A device as PortAudio tells of it; ``inputs`` and ``outputs`` are channels."""

    name: str
    inputs: int
    outputs: int
    rate_hz: int


def listed() -> list[Listed]:
    """All devices that PortAudio offers. Raises MissingLibraryError."""
    return [
        Listed(
            name=str(device["name"]),
            inputs=int(device["max_input_channels"]),
            outputs=int(device["max_output_channels"]),
            rate_hz=int(device["default_samplerate"]),
        )
        for device in _sounddevice().query_devices()
    ]


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
            _await(lambda: self._stream.read_available, self.period_frames, self.stream.rate_hz)
            raw, overflowed = self._stream.read(self.period_frames)
        return Period(bytes(raw), bool(overflowed))

    def close(self) -> None:
        """See ``ports.Capture``."""
        self._stream.close(ignore_errors=True)


class PortAudioPlayback:
    """A speaker; implements ``ports.Playback``. Arguments and errors as ``PortAudioCapture``."""

    audible = True
    underruns = 0
    written = False

    def __init__(self, device: str, period_ms: int) -> None:
        sounddevice = _sounddevice()
        with _named("the speaker", device):
            found = sounddevice.query_devices(None if device == "auto" else device, "output")
            self.rate_hz = int(found["default_samplerate"])
            # Many cards take stereo alone; both sides get the same.
            self._channels = min(2, found["max_output_channels"])
            self._period_frames = round(self.rate_hz * period_ms / 1000)
            self._stream = sounddevice.RawOutputStream(
                samplerate=self.rate_hz,
                blocksize=self._period_frames,
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
        frames = to_pcm16(samples)
        with _named("the speaker", self.description):
            for begin in range(0, len(frames), self._period_frames):
                period = frames[begin : begin + self._period_frames]
                _await(lambda: self._stream.write_available, len(period), self.rate_hz)
                self._stream.write(np.repeat(period, self._channels).tobytes())

    def close(self) -> None:
        """See ``ports.Playback``; what was written is played to its end."""
        if not self._stream.closed:
            # PortAudio's stop() would wait for a card that stands still without a bound. What it
            # calls latency leaves out up to two periods of the buffer.
            time.sleep(self.latency_ms / 1000 + 2 * self._period_frames / self.rate_hz)
            self._stream.close(ignore_errors=True)


def _await(available: Callable[[], int], frames: int, rate_hz: int) -> None:
    """Sleep until so many frames are ``available``; TimeoutError when the card stands still."""
    deadline_s = time.monotonic() + STALL_S
    while (missing := frames - available()) > 0:
        if time.monotonic() > deadline_s:
            raise TimeoutError("it stands still")
        time.sleep(max(LEAST_SLEEP_S, missing / rate_hz))


@contextlib.contextmanager
def _named(what: str, device: str) -> Iterator[None]:
    """PortAudio's errors as ours; a name that fits no device is a ValueError there."""
    try:
        yield
    except (_sounddevice().PortAudioError, TimeoutError, ValueError) as error:
        name = "(the default)" if device == "auto" else device
        raise AudioDeviceError(
            f"{what} {name} cannot be used: {error}",
            remedy="is it plugged in, and not in use elsewhere? `python -m sounddevice` in Oyez's "
            "environment lists the devices",
        ) from error
