"""The synthetic room: what it states about itself is measured on what it gives."""

from __future__ import annotations

import zlib

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from oyez.audio import room

RATE_HZ = 16_000
SEEDS = st.integers(0, 2**32)


def spoken(*parts, seed=0):
    """A made-up utterance: pairs of milliseconds and level (0 is digital silence)."""
    pieces = []
    for number, (duration_ms, level) in enumerate(parts):
        frames = RATE_HZ * duration_ms // 1000
        carrier = np.random.default_rng([seed, number]).uniform(-1.7, 1.7, frames)
        pieces.append((carrier * level).astype(np.float32))
    return np.concatenate(pieces)


def rms(samples):
    return np.sqrt(np.mean(np.square(samples, dtype=np.float64)))


def decay_ms(tail):
    """RT60 by Schroeder's backward integration, from the slope between -5 and -35 dB."""
    energy_db = 10 * np.log10(np.cumsum(np.square(tail[::-1], dtype=np.float64))[::-1])
    energy_db -= energy_db[0]
    slope = np.flatnonzero((energy_db < -5) & (energy_db > -35))
    return -60 / np.polyfit(slope * 1000 / RATE_HZ, energy_db[slope], 1)[0]


@given(reverb_ms=st.integers(100, 1500), seed=SEEDS)
@settings(max_examples=40)
def test_the_tail_decays_by_60_db_in_the_stated_time(reverb_ms, seed):
    response = room.impulse_response(reverb_ms=reverb_ms, seed=seed)
    assert decay_ms(response[np.flatnonzero(response)[1] :]) == pytest.approx(reverb_ms, rel=0.1)


@pytest.mark.parametrize(
    ("reverb_ms", "direct_to_tail_db"), [(150, -0.2), (300, -3.2), (600, -6.2)]
)
def test_a_livelier_room_has_more_reverberation_than_direct_sound(reverb_ms, direct_to_tail_db):
    response = room.impulse_response(reverb_ms=reverb_ms, seed=3)
    assert response[0] == 1
    tail_energy = np.sum(np.square(response[1:], dtype=np.float64))
    assert -10 * np.log10(tail_energy) == pytest.approx(direct_to_tail_db, abs=0.1)


@given(reverb_ms=st.floats(0, 2000), seed=SEEDS)
@settings(max_examples=40)
def test_the_direct_path_is_the_largest_value_of_every_response(reverb_ms, seed):
    response = room.impulse_response(reverb_ms=reverb_ms, seed=seed)
    assert int(np.argmax(np.abs(response))) == 0


def test_a_room_without_reverberation_changes_nothing():
    response = room.impulse_response(reverb_ms=0, seed=1)
    np.testing.assert_array_equal(response, [1])
    dry = spoken((300, 0.1))
    np.testing.assert_allclose(room.in_room(dry, response), dry, atol=1e-7)


@pytest.mark.parametrize("reverb_ms", [-1, float("nan"), float("inf")])
def test_an_impossible_reverberation_time_is_refused(reverb_ms):
    with pytest.raises(ValueError, match="reverb_ms"):
        room.impulse_response(reverb_ms=reverb_ms, seed=0)


samples = hnp.arrays(np.float32, st.integers(1, 60), elements=st.floats(-1, 1, width=32))


@given(dry=samples, response=samples)
def test_the_room_is_a_convolution_with_the_direct_path_at_its_place_and_level(dry, response):
    assume(np.max(np.abs(response)) > 1e-3)
    direct = int(np.argmax(np.abs(response)))
    expected = np.convolve(dry.astype(float), response.astype(float) / abs(float(response[direct])))
    np.testing.assert_allclose(room.in_room(dry, response), expected[direct:], atol=1e-5)


def test_a_silent_response_is_refused():
    with pytest.raises(ValueError, match="zero throughout"):
        room.in_room(spoken((10, 0.1)), np.zeros(10, np.float32))


@given(frames=st.integers(1, 700_000), seed=SEEDS)
@settings(max_examples=10, deadline=None)
def test_room_tone_has_unit_power_for_any_length(frames, seed):
    tone = room.room_tone(frames, seed=seed)
    assert len(tone) == frames
    assert rms(tone) == pytest.approx(1, abs=1e-4)


def test_room_tone_is_the_same_everywhere_and_heaviest_at_low_frequencies():
    tone = room.room_tone(16 * RATE_HZ, seed=5)
    seconds = rms(tone.reshape(16, -1)[0]), rms(tone.reshape(16, -1)[15])
    assert seconds[0] == pytest.approx(seconds[1], rel=0.1)
    power = np.abs(np.fft.rfft(tone)) ** 2
    octave = [np.mean(power[hz * 16 : 2 * hz * 16]) for hz in (10, 100, 400, 1600)]
    assert octave[1] > 3 * octave[2] > 20 * octave[3]
    assert octave[0] < octave[1] / 3


def test_room_tone_repeats_without_a_seam():
    period = 1 << 19
    tone = room.room_tone(period + 1000, seed=2)
    np.testing.assert_array_equal(tone[:1000], tone[period:])
    steps = np.abs(np.diff(tone))
    assert steps[period - 1] <= np.max(steps[: period - 1])


def test_active_frames_are_the_loud_ones():
    speech = spoken((200, 0.0005), (300, 0.1), (150, 0.0005), (400, 0.05), (500, 0.0005))
    active = room.active_frames(speech)
    expected = np.repeat([0, 1, 0, 1, 0], np.array([200, 300, 150, 400, 500]) * 16).astype(bool)
    assert np.mean(active != expected) < 0.02
    assert room.speech_span(speech) == pytest.approx((200 * 16, 1050 * 16), abs=160)


def test_speech_without_any_pause_is_active_throughout():
    assert np.all(room.active_frames(spoken((700, 0.1))))


def test_a_click_is_no_speech():
    speech = spoken((300, 0.0), (8, 0.2), (300, 0.0), (500, 0.1), (300, 0.0))
    begin, end = room.speech_span(speech)
    assert (begin, end) == pytest.approx((608 * 16, 1108 * 16), abs=160)


def test_rumble_is_no_speech():
    time_s = np.arange(2 * RATE_HZ) / RATE_HZ
    speech = (0.1 * np.sin(2 * np.pi * 50 * time_s)).astype(np.float32)
    speech[RATE_HZ : RATE_HZ + 8000] += spoken((500, 0.02))
    assert room.speech_span(speech) == pytest.approx((RATE_HZ, RATE_HZ + 8000), abs=160)


@pytest.mark.parametrize(
    ("speech", "reason"),
    [
        (np.zeros(16_000, np.float32), "silent"),
        (np.full(16_000, 0.3, np.float32), "silent"),
        (np.zeros(0, np.float32), "not empty"),
        (np.zeros((10, 2), np.float32), "one-dimensional"),
        (np.array([0.1, np.nan], np.float32), "finite"),
    ],
)
def test_what_cannot_be_speech_is_refused_with_the_reason(speech, reason):
    with pytest.raises(ValueError, match=reason):
        room.active_frames(speech)


@given(snr_db=st.floats(-10, 40), level=st.floats(0.001, 0.3), seed=st.integers(0, 5))
@settings(max_examples=30, deadline=None)
def test_the_stated_snr_is_what_the_mix_measures(snr_db, level, seed):
    speech = spoken((250, 0.0), (500, level), (250, 0.0), seed=seed)
    active = room.active_frames(speech)
    mix = room.mix_at_snr(speech, room.room_tone(len(speech), seed=99), snr_db, active=active)
    gain = 10 ** (mix.gain_db / 20)
    noise = mix.samples / gain - speech
    measured_db = 20 * np.log10(rms(speech[active]) / rms(noise))
    assert measured_db == pytest.approx(snr_db, abs=0.1)
    assert np.max(np.abs(mix.samples)) <= room.CEILING + 1e-6
    assert mix.gain_db <= 0


def test_a_mix_that_would_clip_is_turned_down_and_says_by_how_much():
    speech = spoken((400, 0.25))
    noise = room.room_tone(len(speech), seed=1)
    mix = room.mix_at_snr(speech, noise, -10)
    assert mix.gain_db < -3
    assert np.max(np.abs(mix.samples)) == pytest.approx(room.CEILING, abs=1e-4)
    quiet = room.mix_at_snr(speech / 100, noise, -10)
    assert quiet.gain_db == 0
    np.testing.assert_allclose(
        mix.samples, quiet.samples * 100 * 10 ** (mix.gain_db / 20), atol=1e-4
    )


@pytest.mark.parametrize(
    ("noise", "snr_db", "active", "reason"),
    [
        (room.room_tone(99, seed=0), 10, None, "equally long"),
        (np.zeros(1600, np.float32), 10, None, "power"),
        (room.room_tone(1600, seed=0), 10, np.zeros(1600, bool), "power"),
        (room.room_tone(1600, seed=0), float("nan"), None, "snr_db"),
    ],
)
def test_an_impossible_mix_is_refused_with_the_reason(noise, snr_db, active, reason):
    with pytest.raises(ValueError, match=reason):
        room.mix_at_snr(spoken((100, 0.1)), noise, snr_db, active=active)


@given(
    lengths_ms=st.lists(st.integers(200, 900), min_size=1, max_size=4),
    lead_ms=st.integers(0, 1500),
    gap_ms=st.integers(0, 1500),
    tail_ms=st.integers(0, 1500),
    reverb_ms=st.sampled_from([0, 300]),
)
@settings(max_examples=40, deadline=None)
def test_the_spans_of_a_scene_are_where_its_speech_is(
    lengths_ms, lead_ms, gap_ms, tail_ms, reverb_ms
):
    utterances = [spoken((130, 0.0), (length, 0.1), (170, 0.0)) for length in lengths_ms]
    scene = room.scene(
        utterances,
        lead_ms=lead_ms,
        gap_ms=gap_ms,
        tail_ms=tail_ms,
        snr_db=30,
        reverb_ms=reverb_ms,
        seed=4,
    )
    begin = lead_ms * 16
    for length, (first, last) in zip(lengths_ms, scene.spans, strict=True):
        assert first == begin
        assert last - first == pytest.approx(length * 16, abs=480)  # windows of 10 ms
        begin = last + gap_ms * 16
    assert len(scene.samples) == scene.spans[-1][1] + tail_ms * 16
    edge = 320
    loud = np.concatenate([scene.samples[a + edge : b - edge] for a, b in scene.spans]) / 32768
    assert 20 * np.log10(rms(loud)) == pytest.approx(room.SPEECH_DBFS, abs=1.5)
    if lead_ms > 500:
        quiet = scene.samples[: (lead_ms - 200) * 16] / 32768
        assert 20 * np.log10(rms(quiet)) == pytest.approx(room.SPEECH_DBFS - 30, abs=1.5)


def test_two_seeds_are_two_rooms_and_one_seed_is_one_on_every_machine():
    speech = np.sin(np.arange(4800) / 3).astype(np.float32)

    def heard(seed):
        return room.scene(
            [speech],
            lead_ms=200,
            gap_ms=0,
            tail_ms=400,
            snr_db=15,
            reverb_ms=250,
            seed=seed,
        ).samples

    assert np.any(heard(1) != heard(2))
    assert zlib.crc32(heard(1).astype("<i2").tobytes()) == 3103523184


def test_reverberation_rings_on_after_the_span():
    speech = [spoken((100, 0.0), (400, 0.1), (100, 0.0))]
    arguments = {"lead_ms": 0, "gap_ms": 0, "tail_ms": 500, "snr_db": 60, "seed": 1}
    dry = room.scene(speech, reverb_ms=0, **arguments)
    wet = room.scene(speech, reverb_ms=500, **arguments)
    assert dry.spans == wet.spans
    after = slice(dry.spans[0][1] + 320, dry.spans[0][1] + 1600)
    assert rms(wet.samples[after]) > 30 * rms(dry.samples[after])


def test_the_edges_of_a_take_fade_so_that_its_background_makes_no_step():
    recording = spoken((400, 0.002), (500, 0.1), (400, 0.002))
    cut = room.take(recording)
    assert cut.before == pytest.approx(150 * 16, abs=160)
    assert len(cut.dry) == pytest.approx(800 * 16, abs=320)
    assert max(abs(cut.dry[0]), abs(cut.dry[-1])) < 1e-6
    untouched = slice(cut.before - 50 * 16, cut.before + cut.speech_frames + 50 * 16)
    first = round(np.flatnonzero(room.active_frames(recording))[0]) - cut.before
    np.testing.assert_array_equal(
        cut.dry[untouched], recording[first + untouched.start : first + untouched.stop]
    )


def test_takes_know_better_than_the_rule_where_their_speech_is():
    recording = spoken((300, 0.1), (500, 0.0), (500, 0.1))
    known = np.zeros(len(recording), bool)
    known[800 * 16 :] = True
    assert room.take(recording, known).speech_frames == 500 * 16
    assert room.take(recording).speech_frames == pytest.approx(1300 * 16, abs=320)


@pytest.mark.parametrize(
    "wrong", [{"gaps_ms": [100]}, {"lead_ms": -1}, {"tail_ms": -5}, {"takes": []}]
)
def test_an_impossible_layout_is_refused(wrong):
    arguments = {
        "takes": [room.take(spoken((300, 0.1)))],
        "lead_ms": 10,
        "gaps_ms": [],
        "tail_ms": 10,
        "snr_db": 20,
        "response": room.impulse_response(reverb_ms=0, seed=0),
        "noise": lambda frames: room.room_tone(frames, seed=0),
    }
    with pytest.raises(ValueError, match="gaps"):
        room.compose(**arguments | wrong)
