"""Formats of PCM and their arithmetic: pure, runs on any thread, numpy alone.

All samples inside Oyez are float32 in [-1, 1] or int16; this module is the only place that knows
how the outer formats lay them out.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from oyez.messages import Pcm16, PcmFloat

SILENCE_DBFS = -120.0
"""What a level of zero is called, since its logarithm has no value."""


class SampleFormat(StrEnum):
    """How one sample lies in memory, little-endian; ALSA's names."""

    U8 = "U8"
    S16 = "S16_LE"
    S24 = "S24_LE"
    """24 bits in the lower three of four bytes."""
    S24_3 = "S24_3LE"
    """24 bits in three bytes."""
    S32 = "S32_LE"
    FLOAT = "FLOAT_LE"

    @property
    def sample_bytes(self) -> int:
        """Bytes that one sample takes."""
        return _SAMPLE_BYTES[self]

    @property
    def full_scale(self) -> float:
        """The largest value that this format can say; a sample at or above it was clipped."""
        return _FULL_SCALE[self]


_SAMPLE_BYTES = {
    SampleFormat.U8: 1,
    SampleFormat.S16: 2,
    SampleFormat.S24: 4,
    SampleFormat.S24_3: 3,
    SampleFormat.S32: 4,
    SampleFormat.FLOAT: 4,
}

# For integers of b bits 1 - 2**(1-b). In 32 bits converters deliver 24 significant ones at most, so
# that full scale is where 24 bits have it.
_FULL_SCALE = {
    SampleFormat.U8: 127 / 128,
    SampleFormat.S16: 32767 / 32768,
    SampleFormat.S24: 8388607 / 8388608,
    SampleFormat.S24_3: 8388607 / 8388608,
    SampleFormat.S32: 8388607 / 8388608,
    SampleFormat.FLOAT: 1.0,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamFormat:
    """What a stream delivers or takes: rate in Hz, interleaved channels, sample format."""

    rate_hz: int
    channels: int
    sample_format: SampleFormat

    @property
    def frame_bytes(self) -> int:
        """Bytes that one frame (a sample for each channel) takes."""
        return self.channels * self.sample_format.sample_bytes

    def __str__(self) -> str:
        return f"{self.rate_hz} Hz, {self.channels} ch, {self.sample_format}"


def decode(raw: bytes | memoryview, stream: StreamFormat) -> PcmFloat:
    """Interleaved bytes as float32 [frames, channels] in [-1, 1]; a torn last frame is left off.

    Floats that are not finite become 0, since one NaN would poison every filter behind it; those
    beyond full scale are clipped.
    """
    whole = len(raw) // stream.frame_bytes * stream.frame_bytes
    raw = raw[:whole]
    samples: PcmFloat
    match stream.sample_format:
        case SampleFormat.U8:
            samples = (np.frombuffer(raw, np.uint8).astype(np.float32) - 128) / np.float32(2**7)
        case SampleFormat.S16:
            samples = np.frombuffer(raw, "<i2").astype(np.float32) / np.float32(2**15)
        case SampleFormat.S24:
            # What the fourth byte holds is not defined: shifting it out makes the sign as well.
            words = np.frombuffer(raw, "<i4") << 8
            samples = words.astype(np.float32) / np.float32(2**31)
        case SampleFormat.S24_3:
            parts = np.frombuffer(raw, np.uint8).reshape(-1, 3)
            padded = np.zeros((len(parts), 4), np.uint8)
            padded[:, 1:] = parts  # into the upper three bytes, so that the sign comes along
            samples = padded.view("<i4")[:, 0].astype(np.float32) / np.float32(2**31)
        case SampleFormat.S32:
            samples = np.frombuffer(raw, "<i4").astype(np.float32) / np.float32(2**31)
        case SampleFormat.FLOAT:
            floats = np.nan_to_num(np.frombuffer(raw, "<f4"), posinf=0, neginf=0)
            samples = np.clip(floats, -1, 1)
    return samples.reshape(-1, stream.channels)


def encode(samples: PcmFloat, stream: StreamFormat) -> bytes:
    """Mono float32 [frames], clipped to [-1, 1], as interleaved bytes, the same in each channel."""
    # As doubles: float32 cannot say the largest integer of 32 bits.
    clipped = np.clip(samples.astype(np.float64), -1, 1)
    mono: npt.NDArray[np.generic]
    match stream.sample_format:
        case SampleFormat.U8:
            mono = np.clip(np.rint(clipped * 2**7) + 128, 0, 255).astype(np.uint8)
        case SampleFormat.S16:
            mono = _whole(clipped, 16).astype("<i2")
        case SampleFormat.S24:
            mono = _whole(clipped, 24).astype("<i4")
        case SampleFormat.S24_3:
            bytes_of = _whole(clipped, 24).astype("<i4").view(np.uint8).reshape(-1, 4)[:, :3]
            return np.repeat(bytes_of[:, None, :], stream.channels, axis=1).tobytes()
        case SampleFormat.S32:
            mono = _whole(clipped, 32).astype("<i4")
        case SampleFormat.FLOAT:
            mono = clipped.astype("<f4")
    return np.repeat(mono, stream.channels).tobytes()


def _whole(clipped: npt.NDArray[np.float64], bits: int) -> npt.NDArray[np.float64]:
    scale = 2.0 ** (bits - 1)
    rounded: npt.NDArray[np.float64] = np.clip(np.rint(clipped * scale), -scale, scale - 1)
    return rounded


def to_pcm16(samples: PcmFloat) -> Pcm16:
    """Float32 in [-1, 1] as int16, rounded and clipped; the inverse of ``decode`` for S16."""
    return np.clip(np.rint(samples * 2**15), -(2**15), 2**15 - 1).astype(np.int16)


def to_float(samples: Pcm16) -> PcmFloat:
    """int16 as float32 in [-1, 1)."""
    return samples.astype(np.float32) / np.float32(2**15)


def dbfs(level: float) -> float:
    """A level in [0, 1] (peak or RMS) in dB relative to full scale."""
    return max(SILENCE_DBFS, 20 * float(np.log10(level))) if level > 0 else SILENCE_DBFS
