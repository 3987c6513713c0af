"""WAV files as recorders in the field write them, made here byte by byte."""

from __future__ import annotations

import struct

import numpy as np

PCM, FLOAT, EXTENSIBLE = 1, 3, 0xFFFE
_SUBFORMAT_TAIL = bytes.fromhex("000000001000800000aa00389b71")
"""The end of the GUIDs that extensible headers carry; the format's number goes before it."""


def wav_bytes(
    raw: bytes,
    *,
    rate_hz: int = 16_000,
    channels: int = 1,
    bits: int = 16,
    tag: int = PCM,
    extensible: bool = False,
    claimed_bytes: int | None = None,
) -> bytes:
    """A WAV of interleaved samples; ``claimed_bytes`` is what the header says of their length."""
    frame_bytes = channels * bits // 8
    first = EXTENSIBLE if extensible else tag
    layout = struct.pack(
        "<HHIIHH", first, channels, rate_hz, rate_hz * frame_bytes, frame_bytes, bits
    )
    if extensible:
        layout += struct.pack("<HHIH", 22, bits, (1 << channels) - 1, tag) + _SUBFORMAT_TAIL
    claimed = len(raw) if claimed_bytes is None else claimed_bytes
    fields = b"WAVE" + b"fmt " + struct.pack("<I", len(layout)) + layout + b"data"
    riff = min(len(fields) + 4 + claimed, 0xFFFFFFFF)
    return b"RIFF" + struct.pack("<I", riff) + fields + struct.pack("<I", claimed) + raw


def packed(steps: np.ndarray, bits: int) -> bytes:
    """Whole numbers, at full scale 2**(bits - 1), as WAV stores them in so many bits."""
    if bits == 8:
        return (steps + 128).astype(np.uint8).tobytes()
    if bits == 24:
        return steps.astype("<i4").view(np.uint8).reshape(-1, 4)[:, :3].tobytes()
    return steps.astype(f"<i{bits // 8}").tobytes()
