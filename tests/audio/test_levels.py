"""The meter: levels, the noise floor, dead and stuck inputs, and clipping on synthetic sounds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oyez.audio.levels import CONSTANT_AFTER_MS, Levels, Meter, Signal

RATE_HZ = 48_000


def measure(sound, *, rate_hz=RATE_HZ, period_frames=960):
    """Every period's levels; float32 [frames] or [frames, channels]."""
    frames = sound.astype(np.float32).reshape(len(sound), -1)
    meter = Meter(rate_hz, frames.shape[1])
    begins = range(0, len(frames), period_frames)
    return [meter.measure(frames[begin : begin + period_frames]) for begin in begins]


def clipped_at_ms(sound, *, rate_hz=RATE_HZ, period_frames=960) -> float | None:
    """When clipping was reported, in ms of the stream, or None."""
    for number, levels in enumerate(measure(sound, rate_hz=rate_hz, period_frames=period_frames)):
        if levels.clipping.any():
            return (number + 1) * period_frames * 1000 / rate_hz
    return None


def sine(hz, seconds=2.0, *, rate_hz=RATE_HZ, amplitude=1.0, phase=0.1):
    return amplitude * np.sin(
        2 * np.pi * hz * np.arange(round(seconds * rate_hz)) / rate_hz + phase
    )


def voice(seconds=3.0, *, rate_hz=RATE_HZ, seed=1):
    """Something like speech, of peak 1: harmonics of a moving pitch under formants."""
    rng = np.random.default_rng(seed)
    time = np.arange(round(seconds * rate_hz)) / rate_hz
    phase = 2 * np.pi * np.cumsum(120 + 25 * np.sin(2 * np.pi * 0.7 * time)) / rate_hz
    sound = np.zeros(len(time))
    for harmonic in range(1, 30):
        hz = 120 * harmonic
        strength = sum(np.exp(-(((hz - f) / w) ** 2)) for f, w in ((500, 200), (1500, 300)))
        sound += (strength + 0.02) * np.cos(harmonic * phase + rng.uniform(0, 6))
    sound *= np.maximum(0, np.sin(2 * np.pi * 2 * time)) + 0.02
    return sound / np.abs(sound).max()


def quantized(sound, bits=16):
    scale = 2 ** (bits - 1)
    return np.clip(np.rint(sound * scale), -scale, scale - 1) / scale


# -- levels ---------------------------------------------------------------------------------------


def test_peak_and_rms_of_a_sine_are_those_of_the_textbook():
    levels = measure(sine(1000, amplitude=0.5))[-1]
    assert levels.peak[0] == pytest.approx(0.5, rel=1e-3)
    assert levels.rms[0] == pytest.approx(0.5 / np.sqrt(2), rel=1e-3)


def test_each_channel_has_levels_of_its_own():
    levels = measure(np.stack([sine(500, amplitude=0.1), sine(500, amplitude=0.8)], axis=1))[-1]
    assert levels.peak == pytest.approx([0.1, 0.8], rel=1e-2)


def test_a_constant_offset_is_told_apart_from_the_sound():
    levels = measure(sine(1000, amplitude=0.1) + 0.25)[-1]
    assert levels.dc[0] == pytest.approx(0.25, abs=1e-3)
    assert levels.rms[0] == pytest.approx(0.1 / np.sqrt(2), rel=1e-2)
    assert "DC +0.250" in levels.summary(0)


def test_the_noise_floor_is_the_level_of_steady_noise():
    noise = np.random.default_rng(0).normal(0, 0.01, 5 * RATE_HZ)
    assert measure(noise)[-1].floor[0] == pytest.approx(0.01, rel=0.15)


def test_the_noise_floor_does_not_rise_while_somebody_speaks_with_pauses():
    noise = np.random.default_rng(0).normal(0, 0.001, 6 * RATE_HZ)
    levels = measure(0.5 * voice(6.0) + noise)[-1]
    assert levels.floor[0] < 0.01


def test_the_noise_floor_follows_a_room_that_grew_louder():
    rng = np.random.default_rng(0)
    sound = np.concatenate([rng.normal(0, s, 10 * RATE_HZ) for s in (0.001, 0.02)])
    assert measure(sound)[-1].floor[0] == pytest.approx(0.02, rel=0.15)


def test_the_noise_floor_of_a_muted_stretch_is_that_of_the_room_before():
    noise = np.random.default_rng(0).normal(0, 0.01, 3 * RATE_HZ)
    levels = measure(np.concatenate([noise, np.zeros(3 * RATE_HZ)]))[-1]
    assert levels.floor[0] == pytest.approx(0.01, rel=0.15)


# -- dead inputs ----------------------------------------------------------------------------------


def test_zeros_are_digital_silence_only_after_a_second():
    states = [levels.signal(0) for levels in measure(np.zeros(2 * RATE_HZ))]
    periods = CONSTANT_AFTER_MS // 20
    assert set(states[: periods - 1]) == {Signal.LIVE}
    assert set(states[periods + 1 :]) == {Signal.SILENT}


def test_a_constant_value_is_a_stuck_input_and_no_clipping():
    for value in (0.3, 1.0, -1.0):
        levels = measure(np.full(2 * RATE_HZ, value))[-1]
        assert levels.signal(0) is Signal.STUCK
        assert not levels.clipping[0]


def test_a_quiet_room_is_alive():
    dither = np.random.default_rng(0).integers(-1, 2, 2 * RATE_HZ) / 2**15
    assert measure(dither)[-1].signal(0) is Signal.LIVE


def test_one_sample_that_stirs_begins_the_silence_anew():
    sound = np.zeros(4 * RATE_HZ)
    sound[2 * RATE_HZ + 10] = 1 / 2**15
    states = [levels.signal(0) for levels in measure(sound)]
    assert states[99] is Signal.SILENT
    assert states[101] is Signal.LIVE
    assert states[-1] is Signal.SILENT


def test_a_dead_channel_beside_a_live_one_is_told_by_itself():
    levels = measure(np.stack([sine(500), np.zeros(2 * RATE_HZ)], axis=1))[-1]
    assert [levels.signal(0), levels.signal(1)] == [Signal.LIVE, Signal.SILENT]
    assert "digital silence" in levels.summary(1)


# -- clipping -------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [1.0, 0.7, 0.1, 0.02])
@pytest.mark.parametrize("drive_db", [6, 12, 20, 30])
def test_speech_that_is_cut_at_any_level_is_reported_within_a_second(limit, drive_db):
    cut = quantized(np.clip(voice() * limit * 10 ** (drive_db / 20), -limit, limit))
    assert clipped_at_ms(cut) is not None
    assert clipped_at_ms(cut) <= 1000


def test_a_limiter_of_one_side_alone_is_reported():
    assert clipped_at_ms(quantized(np.maximum(0.9 * voice(), -0.4))) is not None


def test_a_limiter_with_a_soft_knee_and_a_flat_top_is_reported():
    driven = np.clip(2 * voice(), -1, 1)
    assert clipped_at_ms(quantized(0.8 * (1.5 * driven - 0.5 * driven**3))) is not None


def test_a_cut_before_the_converter_with_its_noise_on_the_flat_tops_is_reported():
    noise = np.random.default_rng(0).normal(0, 1e-4, 3 * RATE_HZ)
    assert clipped_at_ms(quantized(np.clip(4 * voice(), -0.9, 0.9) + noise)) is not None


def test_a_cut_wave_with_an_offset_is_reported():
    assert clipped_at_ms(quantized(np.clip(voice(), -0.3, 0.3) + 0.2)) is not None


def test_only_the_channel_that_clips_is_reported():
    sound = np.stack([0.3 * voice(), np.clip(3 * voice(), -1, 1)], axis=1)
    last = [levels.clipping.tolist() for levels in measure(quantized(sound))]
    assert [False, True] in last
    assert [True, False] not in last
    assert [True, True] not in last


@given(hz=st.floats(50, 8000), phase=st.floats(0, 6.3), level_db=st.floats(-50, 0))
@settings(max_examples=60, deadline=None)
def test_a_clean_sine_is_never_clipping(hz, phase, level_db):
    tone = sine(hz, 1.2, amplitude=10 ** (level_db / 20), phase=phase)
    assert clipped_at_ms(quantized(tone)) is None


@pytest.mark.parametrize("hz", [50, 60, 100, 217, 440, 997, 1000, 3000, 4000, 6000, 8000])
@pytest.mark.parametrize("rate_hz", [16_000, 44_100, 48_000, 96_000])
def test_a_full_scale_sine_is_not_clipping_at_any_rate(hz, rate_hz):
    if hz * 2 < rate_hz:
        tone = quantized(sine(hz, rate_hz=rate_hz))
        assert clipped_at_ms(tone, rate_hz=rate_hz, period_frames=rate_hz // 50) is None


@pytest.mark.parametrize("bits", [8, 16, 24])
@pytest.mark.parametrize("level_db", [-50, -30, -12, -3, -0.1])
def test_clean_speech_is_not_clipping_at_any_level(bits, level_db):
    assert clipped_at_ms(quantized(voice() * 10 ** (level_db / 20), bits)) is None


def test_coarse_stairs_are_not_clipping():
    for steps in (1, 2, 5, 20):
        stairs = np.rint(sine(100) * steps) / 128
        assert clipped_at_ms(stairs) is None, steps


def test_noise_and_silence_are_not_clipping():
    rng = np.random.default_rng(0)
    for scale in (0, 1 / 2**15, 3 / 2**15, 0.01, 0.2):
        assert clipped_at_ms(quantized(rng.normal(0, 1, 3 * RATE_HZ) * scale)) is None, scale


def test_a_square_wave_is_not_taken_for_a_cut_one():
    assert clipped_at_ms(0.5 * np.sign(sine(200))) is None


@pytest.mark.parametrize("period_frames", [100, 128, 160, 384, 441, 960, 1024])
def test_a_flat_top_across_a_border_of_periods_counts_once(period_frames):
    cut = quantized(np.clip(2 * sine(150) * (1 + 0.1 * sine(3)), -0.7, 0.7))
    levels = measure(cut, period_frames=period_frames)
    total = sum(int(one.flat_tops.sum()) for one in levels)
    whole = sum(int(one.flat_tops.sum()) for one in measure(cut, period_frames=len(cut)))
    assert whole > 500
    # Nothing is counted until the first tops have agreed, in whatever period that is.
    assert whole - 2 * 30 <= total <= whole


def test_clipping_is_over_two_seconds_after_the_last_flat_top():
    cut = quantized(np.clip(4 * voice(1.0), -0.7, 0.7))
    levels = measure(np.concatenate([cut, quantized(0.3 * voice(3.0))]))
    assert any(one.clipping[0] for one in levels[:50])
    assert not any(one.clipping[0] for one in levels[152:])


def test_periods_of_any_length_are_measured():
    meter = Meter(RATE_HZ, 2)
    for frames in (1, 2, 3, 7, 480, 5000):
        levels = meter.measure(np.full((frames, 2), 0.1, np.float32))
        assert isinstance(levels, Levels)
        assert levels.peak == pytest.approx([0.1, 0.1])
