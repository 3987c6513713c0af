"""What a meter shows, drawn from levels alone."""

from __future__ import annotations

import json

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from oyez.audio.levels import Meter
from oyez.tools import meter_line
from oyez.tools.meter_line import Reading


def levels(*channels, periods=60):
    """60 periods of 20 ms: a sine of this amplitude on each channel."""
    meter = Meter(16000, len(channels))
    time = np.arange(320 * periods) / 16000
    sound = np.stack([a * np.sin(2 * np.pi * 400 * time) for a in channels], axis=1)
    blocks = sound.astype(np.float32).reshape(periods, 320, -1)
    return [meter.measure(block) for block in blocks]


def reading(joined, **changes):
    fields = {"time_s": 1.0, "levels": joined, "channel": 0, "speech": 0.5, "lost_ms": 0}
    return Reading(**(fields | changes))


def test_periods_are_joined_by_power_and_the_highest_peak_counts():
    soft, loud = levels(0.1), levels(0.5)
    joined = meter_line.join([*soft[-10:], *loud[-10:]])
    assert joined is not None
    assert abs(joined.peak[0] - 0.5) < 0.01
    assert abs(joined.rms[0] - np.sqrt((0.1**2 + 0.5**2) / 4)) < 0.01


def test_a_card_that_took_over_with_other_channels_is_what_is_shown():
    joined = meter_line.join([*levels(0.5, 0.5), *levels(0.1)])
    assert joined is not None
    assert joined.peak.shape == (1,)
    assert joined.peak[0] < 0.11


def test_nothing_at_all_is_nothing():
    assert meter_line.join([]) is None


def test_every_channel_has_its_words_and_the_live_one_is_marked():
    joined = meter_line.join(levels(0.0, 0.25))
    line = meter_line.plain(reading(joined, channel=1, lost_ms=40))
    assert "speech  50%" in line
    assert "channel 0: " in line
    assert "digital silence" in line
    assert "channel 1 (live): peak -12.0 dBFS" in line
    assert line.endswith("40 ms lost")


def test_a_microphone_that_is_not_there_is_told_with_the_reason():
    absent = reading(None, trouble="it is in use (arecord)")
    assert "no microphone: it is in use (arecord)" in meter_line.plain(absent)
    assert "it is in use" in meter_line.live(absent, 80)
    assert meter_line.fields(absent)["trouble"] == "it is in use (arecord)"
    assert meter_line.fields(absent)["channels"] == []


@given(st.floats(-130, 6), st.floats(-130, 6))
def test_the_bar_has_always_the_same_width(rms, peak):
    drawn = meter_line.bar(rms, max(rms, peak))
    assert len(drawn) == meter_line.BAR_WIDTH + 2
    assert drawn.isascii()


def test_the_bar_grows_with_the_level():
    assert meter_line.bar(-120, -120) == f"[{' ' * 30}]"
    assert meter_line.bar(-30, -10) == f"[{'#' * 15}{'-' * 9}|{' ' * 5}]"
    assert meter_line.bar(0, 0) == f"[{'#' * 29}|]"


@given(st.integers(1, 200))
def test_a_live_line_fits_into_the_terminal(width):
    line = meter_line.live(reading(meter_line.join(levels(0.3, 0.0))), width)
    assert len(line) <= width
    assert "\n" not in line


def test_the_fields_are_plain_json():
    fields = meter_line.fields(reading(meter_line.join(levels(0.5, 0.0))))
    assert json.loads(json.dumps(fields)) == fields
    assert fields["channels"][0]["signal"] == "live"
    assert fields["channels"][1]["signal"] == "digital silence"
    assert fields["channels"][0]["peak_dbfs"] == -6.0
