"""ggml's Q5_1 and Q8_0 blocks, made with numpy, bit for bit as ggml's reference code makes them.

Pure functions on arrays; run on whichever thread rewrites a model. A *block* is 32 consecutive
values of a row, stored with its own scale (and, in Q5_1, its own minimum) as half floats. All
arithmetic is in 32-bit floats and in ggml's order: multiplying by the inverse of the scale gives
other bits than dividing by it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

BLOCK_VALUES = 32
_HALF = BLOCK_VALUES // 2


class Ftype(StrEnum):
    """How a ggml file stores its matrices."""

    F16 = "f16"
    Q5_1 = "q5_1"
    Q8_0 = "q8_0"


def quantize(values: npt.NDArray[np.generic], ftype: Ftype) -> npt.NDArray[np.uint8]:
    """Store values the way ``ftype`` says.

    Args:
        values: one or more whole rows, any shape; the rows' length is a multiple of 32 unless
            ``ftype`` is F16.
        ftype: the wanted storage.

    Returns:
        The stored bytes, flat: 2 bytes a value (F16), 24 a block (Q5_1) or 34 a block (Q8_0).
    """
    if ftype is Ftype.F16:
        return np.ascontiguousarray(values, np.float16).reshape(-1).view(np.uint8)
    blocks = np.asarray(values, np.float32).reshape(-1, BLOCK_VALUES)
    return (_q5_1(blocks) if ftype is Ftype.Q5_1 else _q8_0(blocks)).reshape(-1)


def _inverse(scale: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """1 / scale, and 0 for a block that needs no scale because all of its values are equal."""
    return np.divide(np.float32(1), scale, out=np.zeros_like(scale), where=scale != 0)


def _half_bytes(values: npt.NDArray[np.float32]) -> npt.NDArray[np.uint8]:
    return values.astype("<f2").view(np.uint8)


def _q5_1(blocks: npt.NDArray[np.float32]) -> npt.NDArray[np.uint8]:
    """Shape [n, 32] to [n, 24]: scale, minimum, 32 fifth bits, 32 low nibbles.

    A byte of nibbles holds value i of the first half (low) and value i of the second (high).
    """
    low = blocks.min(axis=1, keepdims=True)
    scale = (blocks.max(axis=1, keepdims=True) - low) / np.float32(31)
    levels = ((blocks - low) * _inverse(scale) + np.float32(0.5)).astype(np.uint8)
    stored = np.empty((len(blocks), 24), np.uint8)
    stored[:, 0:2] = _half_bytes(scale)
    stored[:, 2:4] = _half_bytes(low)
    stored[:, 4:8] = np.packbits(levels >> 4, axis=1, bitorder="little")
    stored[:, 8:] = (levels[:, :_HALF] & 0x0F) | (levels[:, _HALF:] << 4)
    return stored


def _q8_0(blocks: npt.NDArray[np.float32]) -> npt.NDArray[np.uint8]:
    """Shape [n, 32] to [n, 34]: scale, then 32 signed bytes rounded half away from zero."""
    scale = np.abs(blocks).max(axis=1, keepdims=True) / np.float32(127)
    scaled = blocks * _inverse(scale)
    levels = np.trunc(scaled + np.copysign(np.float32(0.5), scaled)).astype(np.int8)
    stored = np.empty((len(blocks), 34), np.uint8)
    stored[:, 0:2] = _half_bytes(scale)
    stored[:, 2:] = levels.view(np.uint8)
    return stored
