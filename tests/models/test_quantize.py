"""Blocks are ggml's, bit for bit: examples worked out by hand, and bounds of the error."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from oyez.models.quantize import Ftype, quantize

HALF_STEP = 2.0**-11  # of a half float, relative
HALF_LEAST = 2.0**-25  # and absolute, below its smallest normal value

blocks = hnp.arrays(
    np.float32,
    st.tuples(st.integers(1, 4), st.just(32)),
    elements=st.floats(-1000, 1000, width=16),
)


def half(raw):
    return raw.copy().view("<f2").astype(np.float32)


def read_q5_1(stored):
    stored = stored.reshape(-1, 24)
    fifth = np.unpackbits(stored[:, 4:8], axis=1, bitorder="little")
    low = np.concatenate([stored[:, 8:] & 15, stored[:, 8:] >> 4], axis=1)
    return (low + 16 * fifth) * half(stored[:, 0:2]) + half(stored[:, 2:4])


def read_q8_0(stored):
    stored = stored.reshape(-1, 34)
    return stored[:, 2:].copy().view(np.int8) * half(stored[:, 0:2])


def test_a_ramp_of_32_values_takes_each_level_of_q5_1_once():
    stored = quantize(np.arange(32, dtype=np.float32), Ftype.Q5_1).tobytes()
    one, zero = b"\x00\x3c", b"\x00\x00"
    fifth_bits_of_the_second_half = b"\x00\x00\xff\xff"
    nibbles = bytes(0x11 * value for value in range(16))
    assert stored == one + zero + fifth_bits_of_the_second_half + nibbles


def test_value_20_alone_sets_bit_20_and_the_high_nibble_of_byte_4():
    block = np.zeros(32, np.float32)
    block[20] = 31
    stored = quantize(block, Ftype.Q5_1)
    assert int.from_bytes(stored[4:8].tobytes(), "little") == 1 << 20
    assert np.flatnonzero(stored[8:]).tolist() == [4]
    assert stored[8 + 4] == 0xF0


def test_the_minimum_of_a_q5_1_block_is_stored_beside_its_scale():
    stored = quantize(np.linspace(-2, -2 + 31 * 0.5, 32, dtype=np.float32), Ftype.Q5_1)
    assert half(stored[0:2]) == 0.5
    assert half(stored[2:4]) == -2


def test_q8_0_rounds_halves_away_from_zero():
    block = np.zeros(32, np.float32)
    block[:7] = [127, 0.5, -0.5, 2.5, -2.5, 1.49, -127]
    stored = quantize(block, Ftype.Q8_0)
    assert stored[:2].tobytes() == b"\x00\x3c"
    assert stored[2:9].view(np.int8).tolist() == [127, 1, -1, 3, -3, 1, -127]


@pytest.mark.parametrize(("ftype", "read"), [(Ftype.Q5_1, read_q5_1), (Ftype.Q8_0, read_q8_0)])
def test_a_block_of_zeros_stays_zero(ftype, read):
    assert not read(quantize(np.zeros(32, np.float32), ftype)).any()


def test_a_block_of_equal_values_is_its_minimum():
    assert (read_q5_1(quantize(np.full(32, 0.75, np.float32), Ftype.Q5_1)) == 0.75).all()


@given(blocks)
def test_q5_1_errs_by_half_a_level_and_the_rounding_of_scale_and_minimum(values):
    low = values.min(axis=1, keepdims=True)
    level = (values.max(axis=1, keepdims=True) - low) / 31
    bound = 0.501 * level + 31 * (level * HALF_STEP + HALF_LEAST)
    bound += np.abs(low) * HALF_STEP + HALF_LEAST
    assert (np.abs(read_q5_1(quantize(values, Ftype.Q5_1)) - values) <= bound).all()


@given(blocks)
def test_q8_0_errs_by_half_a_level_and_the_rounding_of_the_scale(values):
    level = np.abs(values).max(axis=1, keepdims=True) / 127
    bound = 0.501 * level + 127 * (level * HALF_STEP + HALF_LEAST)
    assert (np.abs(read_q8_0(quantize(values, Ftype.Q8_0)) - values) <= bound).all()


@given(blocks, st.sampled_from(Ftype))
def test_rows_may_be_quantized_one_by_one(values, ftype):
    together = quantize(values, ftype).tobytes()
    assert together == b"".join(quantize(row, ftype).tobytes() for row in values)


def test_f16_values_are_stored_as_they_are():
    values = np.array([[1.5, -0.25], [0, 65504]], np.float16)
    assert quantize(values, Ftype.F16).tobytes() == values.tobytes()
