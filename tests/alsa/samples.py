"""Samples as they lie in memory, in the formats of the test card."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

NUMBERS = {"S16_LE": 2, "S24_LE": 6, "S32_LE": 10, "FLOAT_LE": 14, "S24_3LE": 32}
"""SND_PCM_FORMAT_*, by alsa-lib's names."""

NAMES = {number: name for name, number in NUMBERS.items()}

BITS = {"S16_LE": 16, "S24_LE": 24, "S24_3LE": 24, "S32_LE": 32}

SUBTYPES = {
    "PCM_16": ("S16_LE", "int16"),
    "PCM_24": ("S24_3LE", "int32"),
    "PCM_32": ("S32_LE", "int32"),
    "FLOAT": ("FLOAT_LE", "float32"),
}
"""soundfile's name of a sub-type: our format, and the type to read it in."""


def encode(sound: NDArray[Any], format_name: str) -> bytes:
    """Bytes of samples: integers as they are, floats as parts of full scale."""
    if format_name == "FLOAT_LE":
        return sound.astype("<f4").tobytes()
    bits = BITS[format_name]
    if sound.dtype.kind == "f":
        scaled = np.rint(sound.astype(np.float64) * 2.0 ** (bits - 1))
        sound = np.clip(scaled, -(2.0 ** (bits - 1)), 2.0 ** (bits - 1) - 1)
    whole = sound.astype("<i4")
    if format_name == "S16_LE":
        return whole.astype("<i2").tobytes()
    if format_name == "S24_3LE":
        return np.ascontiguousarray(whole).view(np.uint8).reshape(-1, 4)[:, :3].tobytes()
    return whole.tobytes()


def decode(raw: bytes, format_name: str) -> NDArray[Any]:
    """Samples of bytes: int16, int32 (24 bits keep their own scale) or float32."""
    if format_name == "FLOAT_LE":
        return np.frombuffer(raw, "<f4")
    if format_name == "S16_LE":
        return np.frombuffer(raw, "<i2")
    if format_name == "S32_LE":
        return np.frombuffer(raw, "<i4")
    if format_name == "S24_LE":
        return (np.frombuffer(raw, "<i4") << 8) >> 8
    padded = np.zeros((len(raw) // 3, 4), np.uint8)
    padded[:, 1:] = np.frombuffer(raw, np.uint8).reshape(-1, 3)
    return padded.view("<i4").ravel() >> 8
