"""Opening sound cards through pyalsaaudio: ask, then read back what was granted.

Runs on the device thread, which hands the opened handles to the audio thread (``rt/card.py``), and
in ``oyez devices``. pyalsaaudio sets each wish alone and ignores its refusal (a stereo-only card
that is asked for one channel opens with two), so what counts is ``info()`` afterwards.
"""

from __future__ import annotations

import contextlib
import errno
import math
import os
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from oyez.audio.cards import Direction
from oyez.audio.pcm import SampleFormat, StreamFormat
from oyez.audio.recovery import Fault
from oyez.errors import AudioDeviceError, MissingLibraryError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

RATES_HZ = (48_000, 16_000, 32_000, 96_000, 44_100, 192_000, 88_200, 24_000, 22_050, 8_000)
"""In this order when the owner leaves the choice: 48 kHz is what nearly every converter really
runs at, so clipping is seen as it happens; then whole multiples of 16 kHz."""
CHANNELS = (2, 1)
"""Both channels of a stereo card are taken, since one of them may be dead."""
MAX_CHANNELS = 32
SHORT_BUFFER = 0.75
"""A buffer with less than this share of the time that was asked for is asked for anew."""

_FORMATS = {
    "S16_LE": SampleFormat.S16,
    "S32_LE": SampleFormat.S32,
    "S24_3LE": SampleFormat.S24_3,
    "S24_LE": SampleFormat.S24,
    "FLOAT_LE": SampleFormat.FLOAT,
    "U8": SampleFormat.U8,
}
# pyalsaaudio raises with the C library's words alone.
_FAULTS = {
    os.strerror(errno.EBUSY): Fault.BUSY,
    os.strerror(errno.ENODEV): Fault.ABSENT,
    os.strerror(errno.ENOENT): Fault.ABSENT,
    os.strerror(errno.ENXIO): Fault.ABSENT,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What the configuration asks for; None leaves the choice to what the card offers."""

    rate_hz: int | None
    channels: int | None
    sample_format: SampleFormat | None
    period_ms: int
    periods: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Handle:
    """An opened device: pyalsaaudio's ``pcm`` in non-blocking mode, and what the driver granted.

    ``complaints`` are the wishes that were not granted, for a person, both figures in each.
    """

    pcm: Any
    direction: Direction
    device: str
    stream: StreamFormat
    period_frames: int
    buffer_frames: int
    complaints: tuple[str, ...]

    @property
    def period_ms(self) -> float:
        """The granted period."""
        return self.period_frames * 1000 / self.stream.rate_hz

    def close(self) -> None:
        """Give the device back at once: what was not played yet is dropped.

        pyalsaaudio drains before it closes, and a card that stands still is never drained.
        """
        with contextlib.suppress(library().ALSAAudioError):
            self.pcm.drop()
        self.pcm.close()

    def __str__(self) -> str:
        periods = self.buffer_frames / self.period_frames
        return f"{self.device} ({self.stream}, {self.period_ms:.4g} ms x {periods:.3g})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What a device offers, as far as its driver tells."""

    formats: tuple[SampleFormat, ...]
    rates_hz: tuple[int, ...]
    channels: tuple[int, ...]


class OpenError(AudioDeviceError):
    """A device could not be opened; ``fault`` says of what kind that is."""

    def __init__(self, device: str, fault: Fault, reason: str) -> None:
        super().__init__(f"{device}: {fault}: {reason}")
        self.device = device
        self.fault = fault
        self.reason = reason


def library() -> Any:
    """Pyalsaaudio. Raises MissingLibraryError."""
    try:
        import alsaaudio  # noqa: PLC0415 - optional: a recording needs no card
    except ImportError as error:
        raise MissingLibraryError(
            "pyalsaaudio", "the sound card", remedy="install the package pyalsaaudio"
        ) from error
    return alsaaudio


def open_device(device: str, direction: Direction, wish: Wish) -> Handle:
    """Open a device with what it offers of the wish.

    Raises:
        OpenError: it cannot be opened; its ``fault`` tells how to go on.
        MissingLibraryError: pyalsaaudio is not installed.
    """
    alsa = library()
    offer, pcm = _probe(alsa, device, direction)
    # Opened anew each time: a handle cannot be set up twice with every driver.
    pcm.close()
    handle = _ask(alsa, device, direction, choose(offer, wish), wish)
    buffer_ms = handle.buffer_frames * 1000 / handle.stream.rate_hz
    if buffer_ms < SHORT_BUFFER * wish.period_ms * wish.periods:
        # The period is smaller than asked for: as much time in more periods of that size.
        periods = math.ceil(wish.period_ms * wish.periods / handle.period_ms)
        handle.pcm.close()
        more = replace(wish, periods=periods)
        handle = _ask(alsa, device, direction, choose(offer, wish), more)
    return handle


def _ask(alsa: Any, device: str, direction: Direction, asked: StreamFormat, wish: Wish) -> Handle:
    try:
        pcm = alsa.PCM(
            type=_kind(alsa, direction),
            mode=alsa.PCM_NONBLOCK,
            device=device,
            rate=asked.rate_hz,
            channels=asked.channels,
            format=getattr(alsa, f"PCM_FORMAT_{asked.sample_format}"),
            periodsize=max(1, asked.rate_hz * wish.period_ms // 1000),
            periods=wish.periods,
        )
    except alsa.ALSAAudioError as error:
        raise _failed(device, error) from error
    return _read_back(pcm, device, direction, asked, wish)


def probe(device: str, direction: Direction) -> Offer:
    """What a device offers. Raises as ``open_device``."""
    offer, pcm = _probe(library(), device, direction)
    pcm.close()
    return offer


def choose(offer: Offer, wish: Wish) -> StreamFormat:
    """What to ask for: the wish where there is one, else the first preference that is offered."""
    formats = [f for f in _FORMATS.values() if f in offer.formats]
    return StreamFormat(
        rate_hz=wish.rate_hz or _first(RATES_HZ, offer.rates_hz, max(offer.rates_hz, default=0)),
        channels=wish.channels or _first(CHANNELS, offer.channels, min(offer.channels, default=1)),
        sample_format=wish.sample_format or (formats[0] if formats else SampleFormat.S16),
    )


def _first(preferred: Sequence[int], offered: Iterable[int], otherwise: int) -> int:
    there = set(offered)
    return next((value for value in preferred if value in there), otherwise or preferred[0])


def _probe(alsa: Any, device: str, direction: Direction) -> tuple[Offer, Any]:
    try:
        pcm = alsa.PCM(type=_kind(alsa, direction), mode=alsa.PCM_NONBLOCK, device=device)
    except alsa.ALSAAudioError as error:
        raise _failed(device, error) from error
    try:
        formats = pcm.getformats()
        names = formats if isinstance(formats, dict) else {}
        rates = pcm.getrates()
        channels = pcm.getchannels()
    except alsa.ALSAAudioError as error:
        pcm.close()
        raise _failed(device, error) from error
    return (
        Offer(
            formats=tuple(_FORMATS[name] for name in names if name in _FORMATS),
            rates_hz=_values(rates, RATES_HZ),
            channels=_values(channels, range(1, MAX_CHANNELS + 1)),
        ),
        pcm,
    )


def _values(offered: Any, known: Iterable[int]) -> tuple[int, ...]:
    """Pyalsaaudio gives one value, a list, or a (lowest, highest) pair where all between are."""
    if isinstance(offered, int):
        return (offered,)
    if isinstance(offered, tuple):
        lowest, highest = offered
        return tuple(sorted({v for v in known if lowest <= v <= highest} | {lowest}))
    return tuple(offered)


def _kind(alsa: Any, direction: Direction) -> int:
    capture = direction is Direction.CAPTURE
    return int(alsa.PCM_CAPTURE if capture else alsa.PCM_PLAYBACK)


def _read_back(
    pcm: Any, device: str, direction: Direction, asked: StreamFormat, wish: Wish
) -> Handle:
    """What the driver says that it granted; refuses a format that nobody here can read."""
    info = pcm.info()
    name = str(info["format_name"])
    if name not in _FORMATS:
        pcm.close()
        raise OpenError(device, Fault.REFUSED, f"it grants {name}, which Oyez cannot read")
    stream = StreamFormat(
        rate_hz=int(info["rate"]),
        channels=int(info["channels"]),
        sample_format=_FORMATS[name],
    )
    period_frames = int(info["period_size"])
    buffer_frames = int(info["buffer_size"])
    complaints = [
        f"{what}: {wanted} was asked for, {granted} is granted"
        for what, wanted, granted in (
            ("rate", f"{asked.rate_hz} Hz", f"{stream.rate_hz} Hz"),
            ("channels", asked.channels, stream.channels),
            ("format", asked.sample_format, stream.sample_format),
            (
                "period",
                f"{asked.rate_hz * wish.period_ms // 1000} frames ({wish.period_ms} ms)",
                f"{period_frames} frames ({period_frames * 1000 / stream.rate_hz:.4g} ms)",
            ),
            ("periods", wish.periods, buffer_frames // max(1, period_frames)),
        )
        if _figure(wanted) != _figure(granted)
    ]
    return Handle(
        pcm=pcm,
        direction=direction,
        device=device,
        stream=stream,
        period_frames=period_frames,
        buffer_frames=buffer_frames,
        complaints=tuple(complaints),
    )


def _figure(value: object) -> str:
    """The leading figure: a period is granted when its frames are, whatever their milliseconds."""
    return re.split(r" frames", str(value))[0]


def _failed(device: str, error: Exception) -> OpenError:
    text = str(error).removesuffix(f" [{device}]")
    return OpenError(device, _FAULTS.get(text, Fault.REFUSED), text)
