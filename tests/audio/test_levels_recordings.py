"""The meter on recordings of people, resampled to the rates of cards."""

from __future__ import annotations

import numpy as np
import pytest
import soxr

from corpus import RATE_HZ, recordings_or_skip
from oyez.audio.levels import Meter

CARD_HZ = 48_000


def at(clip, rate_hz):
    """The clip at a card's rate, of peak 1: float32 [n]."""
    sound = soxr.resample(clip.samples, RATE_HZ, rate_hz) if rate_hz != RATE_HZ else clip.samples
    return sound / max(1e-9, np.abs(sound).max())


def clipped_after_ms(sound, rate_hz):
    """When clipping was reported, or None. What the 16 bits of a card leave is measured."""
    frames = (np.clip(np.rint(sound * 2**15), -(2**15), 2**15 - 1) / 2**15).astype(np.float32)
    meter = Meter(rate_hz, 1)
    period = rate_hz // 50
    for begin in range(0, len(frames), period):
        if meter.measure(frames[begin : begin + period, None]).clipping[0]:
            return (begin + period) * 1000 / rate_hz
    return None


@pytest.mark.parametrize("level_db", [-50, -20, -1, 0])
def test_nothing_that_was_recorded_clean_is_called_clipping(level_db):
    clips = recordings_or_skip("speech", "short", "music", "noise")
    wrong = [
        clip.name
        for clip in clips
        if clipped_after_ms(at(clip, CARD_HZ) * 10 ** (level_db / 20), CARD_HZ) is not None
    ]
    assert not wrong


@pytest.mark.parametrize("limit", [1.0, 0.7])
@pytest.mark.parametrize("drive_db", [6, 12, 24])
def test_a_clipped_recording_at_the_cards_rate_is_reported_within_a_second(limit, drive_db):
    late = {}
    for clip in recordings_or_skip("speech"):
        driven = at(clip, CARD_HZ) * limit * 10 ** (drive_db / 20)
        first_ms = np.flatnonzero(np.abs(driven) > limit)[0] * 1000 / CARD_HZ
        after_ms = clipped_after_ms(np.clip(driven, -limit, limit), CARD_HZ)
        if after_ms is None or after_ms - first_ms > 1000:
            late[clip.name] = after_ms
    assert not late
