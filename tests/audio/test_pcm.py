"""Formats of PCM: what goes in comes out, to the bit where the format allows it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from audio.recordings import packed
from oyez.audio import pcm
from oyez.audio.pcm import SampleFormat, StreamFormat

BITS = {SampleFormat.U8: 8, SampleFormat.S16: 16, SampleFormat.S24_3: 24, SampleFormat.S32: 32}
INT16 = hnp.arrays(np.int16, st.integers(0, 300))


def stream(sample_format, channels=1):
    return StreamFormat(rate_hz=16_000, channels=channels, sample_format=sample_format)


@pytest.mark.parametrize("sample_format", BITS)
def test_integers_keep_sign_and_size(sample_format):
    full = 2 ** (BITS[sample_format] - 1)
    steps = np.array([-full, -full // 2, -1, 0, 1, full // 2, full - 1])
    decoded = pcm.decode(packed(steps, BITS[sample_format]), stream(sample_format))
    assert decoded.dtype == np.float32
    np.testing.assert_array_equal(decoded[:, 0], (steps / full).astype(np.float32))


@given(samples=hnp.arrays(np.int32, st.integers(0, 200), elements=st.integers(-(2**23), 2**23 - 1)))
def test_24_bits_in_three_bytes_are_exact(samples):
    decoded = pcm.decode(packed(samples, 24), stream(SampleFormat.S24_3))
    np.testing.assert_array_equal(decoded[:, 0] * 2**23, samples)


@given(samples=INT16)
def test_int16_survives_the_way_to_float_and_back(samples):
    decoded = pcm.decode(samples.tobytes(), stream(SampleFormat.S16))
    np.testing.assert_array_equal(pcm.to_pcm16(decoded[:, 0]), samples)
    np.testing.assert_array_equal(pcm.to_pcm16(pcm.to_float(samples)), samples)
    np.testing.assert_array_equal(pcm.to_float(samples), decoded[:, 0])


@given(
    samples=hnp.arrays(
        np.float32, st.integers(0, 100), elements=st.floats(width=32, allow_subnormal=True)
    )
)
def test_decoded_floats_are_finite_and_never_louder_than_full_scale(samples):
    decoded = pcm.decode(samples.tobytes(), stream(SampleFormat.FLOAT))
    assert np.isfinite(decoded).all()
    assert np.abs(decoded).max(initial=0) <= 1


@given(samples=hnp.arrays(np.float32, st.integers(0, 100), elements=st.floats(-1, 1, width=32)))
def test_floats_within_full_scale_pass_unchanged(samples):
    decoded = pcm.decode(samples.tobytes(), stream(SampleFormat.FLOAT))
    np.testing.assert_array_equal(decoded[:, 0], samples)


def test_floats_that_are_no_numbers_are_silence():
    samples = np.array([0.5, np.nan, np.inf, -np.inf, -0.5], np.float32)
    decoded = pcm.decode(samples.tobytes(), stream(SampleFormat.FLOAT))
    assert decoded[:, 0].tolist() == [0.5, 0, 0, 0, -0.5]


@pytest.mark.parametrize("sample_format", SampleFormat)
@given(channels=st.integers(1, 8), octets=st.binary(max_size=200), buffer=st.booleans())
def test_whole_frames_are_decoded_and_a_torn_one_left_off(sample_format, channels, octets, buffer):
    layout = stream(sample_format, channels)
    decoded = pcm.decode(memoryview(octets) if buffer else octets, layout)
    assert decoded.shape == (len(octets) // layout.frame_bytes, channels)


def test_channels_are_kept_apart():
    left, right = np.array([1, 2, 3], np.int16), np.array([-1, -2, -3], np.int16)
    raw = np.column_stack((left, right)).tobytes()
    decoded = pcm.decode(raw, stream(SampleFormat.S16, 2))
    np.testing.assert_array_equal(decoded * 2**15, np.column_stack((left, right)))


@pytest.mark.parametrize("sample_format", BITS)
def test_the_largest_sample_of_a_format_is_at_full_scale_and_the_next_is_not(sample_format):
    largest = 2 ** (BITS[sample_format] - 1) - 1
    below = largest - 2 ** max(0, BITS[sample_format] - 23)
    decoded = pcm.decode(
        packed(np.array([largest, below]), BITS[sample_format]), stream(sample_format)
    )
    assert decoded[0, 0] >= sample_format.full_scale > decoded[1, 0]


def test_24_bits_that_came_in_32_reach_full_scale():
    raw = packed(np.array([(2**23 - 1) << 8]), 32)
    assert pcm.decode(raw, stream(SampleFormat.S32))[0, 0] >= SampleFormat.S32.full_scale


def test_what_is_too_loud_for_16_bits_is_clipped_and_not_wrapped():
    loud = np.array([-2, -1, 1, 1.5, 0.99999], np.float32)
    assert pcm.to_pcm16(loud).tolist() == [-32768, -32768, 32767, 32767, 32767]


def test_floats_are_rounded_to_the_nearest_step():
    steps = np.array([0.4, 0.6, -0.4, -0.6, 1.4, 1.6, -1.6], np.float32)
    assert pcm.to_pcm16(steps / 2**15).tolist() == [0, 1, 0, -1, 1, 2, -2]


@pytest.mark.parametrize(
    ("level", "expected"), [(1.0, 0.0), (0.5, -6.0206), (0.001, -60), (1e-9, -120), (0.0, -120)]
)
def test_levels_in_db_of_full_scale(level, expected):
    assert pcm.dbfs(level) == pytest.approx(expected, abs=1e-3)


def test_a_stream_says_what_it_is():
    layout = StreamFormat(rate_hz=48_000, channels=2, sample_format=SampleFormat.S24_3)
    assert str(layout) == "48000 Hz, 2 ch, S24_3LE"
    assert layout.frame_bytes == 6
