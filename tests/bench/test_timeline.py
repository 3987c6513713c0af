"""Timelines: the truth beside them is where the speech is."""

from __future__ import annotations

import json
import wave
from dataclasses import replace

import numpy as np
import pytest

import corpus
from bench import timeline

PLAN = timeline.Plan(lead_ms=700, pause_ms=(900, 1400), tail_ms=800, snr_db=20, seed=3)


@pytest.fixture(scope="module")
def clips():
    return [clip for clip in corpus.recordings_or_skip("speech") if clip.text]


def rms_db(samples):
    return 10 * np.log10(np.mean(np.square(samples / 32768, dtype=np.float64)))


def test_speech_stands_out_of_the_noise_exactly_where_the_truth_says(clips):
    made = timeline.build(clips[:6], replace(PLAN, reverb="0"))
    noise_db = rms_db(made.samples[:8000])
    assert len(made.utterances) == 6
    for said in made.utterances:
        speech = made.samples[said.begin_frame : said.end_frame]
        before = made.samples[said.begin_frame - 9600 : said.begin_frame - 2400]
        after = made.samples[said.end_frame + 2400 : said.end_frame + 9600]
        assert rms_db(speech) > noise_db + 14
        assert rms_db(before) == pytest.approx(noise_db, abs=1.5)
        assert rms_db(after) == pytest.approx(noise_db, abs=1.5)


def test_after_each_utterance_there_is_time_to_repeat_it_and_a_pause(clips):
    made = timeline.build(clips[:5], PLAN)
    assert made.utterances[0].begin_frame == 700 * 16
    assert len(made.samples) == made.utterances[-1].end_frame + 800 * 16
    pauses = [
        following - end - (end - begin)
        for (begin, end), (following, _) in zip(made.spans, made.spans[1:], strict=False)
    ]
    assert all(900 * 16 <= pause <= 1400 * 16 for pause in pauses)
    assert len(set(pauses)) == len(pauses)
    assert [said.text for said in made.utterances] == [clip.text for clip in clips[:5]]


def test_the_same_plan_gives_the_same_timeline_and_another_seed_another(clips):
    one, again = (timeline.build(clips[:3], PLAN) for _ in range(2))
    np.testing.assert_array_equal(one.samples, again.samples)
    assert one.truth() == again.truth()
    other = timeline.build(clips[:3], replace(PLAN, seed=4))
    assert one.spans != other.spans


def test_a_timeline_is_written_as_wav_with_its_truth_beside(clips, tmp_path):
    made = timeline.build(clips[:2], PLAN)
    path = timeline.write(made, tmp_path / "new")
    with wave.open(str(path)) as recording:
        assert recording.getparams()[:4] == (1, 2, 16_000, len(made.samples))
        assert recording.readframes(len(made.samples)) == made.samples.astype("<i2").tobytes()
    truth = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    assert truth["frames"] == len(made.samples)
    first = truth["utterances"][0]
    assert first["clip"] == clips[0].name
    assert (first["begin_frame"], first["end_frame"]) == made.spans[0]
    assert first["snr_db"] == 20
    assert first["room"] == "300 ms"


@pytest.mark.parametrize("minutes", [0.01, 0.5, 5])
def test_clips_are_drawn_for_the_asked_time_and_none_twice_before_all_came(clips, minutes):
    plan = timeline.Plan()
    chosen = timeline.choose(clips, minutes=minutes, plan=plan)
    spoken_ms = sum(len(clip.samples) for clip in chosen) / 16
    whole_ms = plan.lead_ms + plan.tail_ms + 2 * spoken_ms + len(chosen) * sum(plan.pause_ms) / 2
    assert len(chosen) == 1 or whole_ms <= minutes * 60_000
    longest_ms = 2 * max(len(clip.samples) for clip in clips) / 16 + plan.pause_ms[1]
    assert whole_ms > minutes * 60_000 - longest_ms
    first = [clip.name for clip in chosen[: len(clips)]]
    assert len(set(first)) == len(first)


def test_an_unknown_noise_or_room_is_refused_with_what_there_is(clips):
    for wrong in ({"noise": "jackhammer"}, {"reverb": "cathedral"}):
        with pytest.raises(ValueError, match=r"there is no (noise 'jackhammer'|rir 'cathedral')"):
            timeline.build(clips[:1], replace(PLAN, **wrong))


def test_recorded_rooms_and_noises_serve_as_well(clips):
    response = corpus.recordings_or_skip("rir")[0]
    noise = corpus.recordings_or_skip("noise")[0]
    plan = replace(PLAN, reverb=response.name, noise=noise.name)
    made = timeline.build(clips[:3], plan)
    assert made.utterances[0].room == response.name
    assert np.max(np.abs(made.samples.astype(int))) < 32768
    dry = timeline.build(clips[:3], replace(plan, reverb="0"))
    assert made.spans == dry.spans
    assert np.any(made.samples != dry.samples)


def test_a_noise_that_is_repeated_has_no_seam():
    time = np.arange(16_000) / 16_000
    rng = np.random.default_rng(1)
    noise = (np.sin(2 * np.pi * 3.3 * time) + 0.1 * rng.standard_normal(16_000)).astype("f4")
    long = timeline.looped(noise, 100_000)
    assert len(long) == 100_000
    steps = np.abs(np.diff(long))
    assert np.max(steps) <= 1.2 * np.max(np.abs(np.diff(noise)))
    power = np.mean(long[16_000:96_000] ** 2)
    assert power == pytest.approx(np.mean(noise**2), rel=0.15)


def test_the_bounds_found_by_eye_lie_within_their_clips_and_hold_speech(clips):
    assert {clip.name for clip in clips} & set(corpus.BY_EYE)
    for clip in clips:
        voiced = np.flatnonzero(clip.active)
        assert len(voiced) > 0.3 * 16_000
        if clip.name in corpus.BY_EYE:
            begin, end = corpus.BY_EYE[clip.name]
            assert (voiced[0], voiced[-1] + 1) == (begin * 16, end * 16)


def test_the_longest_pause_of_a_clip_is_what_its_silence_lasts(clips):
    by_name = {clip.name: clip for clip in clips}
    if "jfk" not in by_name:
        pytest.skip("the recordings here do not hold the one with long pauses")
    assert by_name["jfk"].longest_pause_ms == pytest.approx(1150, abs=50)
    assert all(by_name[name].longest_pause_ms < 300 for name in by_name if name != "jfk")
