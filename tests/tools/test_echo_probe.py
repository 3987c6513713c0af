"""The sweep is found where it is, and not where it is not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oyez.audio.pcm import to_pcm16
from oyez.tools import echo_probe
from tools.room import RATE_HZ, db, noise, voice

WINDOW_S = 2.8


def heard(frame, gain_db, noise_dbfs=-60.0, tail_ms=0):
    sweep = echo_probe.sweep(RATE_HZ)
    if tail_ms:
        rng = np.random.default_rng(3)
        length = tail_ms * RATE_HZ // 1000
        tail = rng.normal(0, 0.05, length) * np.exp(-6.9 * np.arange(length) / length)
        tail[0] = 1.0
        sweep = np.convolve(sweep, tail).astype(np.float32)
    room = noise(WINDOW_S, noise_dbfs)
    end = min(len(room), frame + len(sweep))
    room[frame:end] += sweep[: end - frame] * np.float32(db(gain_db))
    return to_pcm16(room)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 25_000), st.floats(-30, 6))
def test_the_sweep_is_found_to_the_millisecond_at_any_level_above_the_noise(frame, gain_db):
    found = echo_probe.find(heard(frame, gain_db))
    assert found is not None
    assert abs(found - frame) <= 16


def test_in_reverberation_the_direct_sound_counts():
    found = echo_probe.find(heard(4000, -10, tail_ms=300))
    assert found == pytest.approx(4000, abs=16)


@pytest.mark.parametrize("level_dbfs", [-80, -40, -15])
def test_noise_is_no_sweep(level_dbfs):
    assert echo_probe.find(to_pcm16(noise(WINDOW_S, level_dbfs))) is None


def test_a_voice_is_no_sweep():
    assert echo_probe.find(to_pcm16(voice(WINDOW_S, -20) + noise(WINDOW_S, -60))) is None


def test_digital_silence_and_a_window_that_is_too_short_are_no_sweep():
    assert echo_probe.find(np.zeros(40_000, np.int16)) is None
    assert echo_probe.find(np.zeros(100, np.int16)) is None


@pytest.mark.parametrize("rate_hz", [8000, 16000, 44100, 48000])
def test_the_sweep_is_as_long_and_as_loud_at_every_rate(rate_hz):
    sound = echo_probe.sweep(rate_hz)
    assert len(sound) == rate_hz
    assert abs(sound).max() == pytest.approx(echo_probe.SWEEP_PEAK, rel=0.01)
    assert sound[0] == 0
    assert sound[-1] == 0
