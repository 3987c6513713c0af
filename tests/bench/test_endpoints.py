"""The verdict on begins and ends, over spans whose faults are known."""

from __future__ import annotations

import corpus
from bench import endpoints
from oyez.config import Settings
from oyez.messages import EndReason, Span


def span(begin_ms, end_ms):
    return Span(
        number=1,
        begin_frame=max(0, begin_ms - 400) * 16,
        end_frame=(end_ms + 500) * 16,
        speech_begin_frame=begin_ms * 16,
        speech_end_frame=end_ms * 16,
        endpoint_frame=(end_ms + 500) * 16,
        reason=EndReason.SILENCE,
    )


def test_late_begins_and_ends_are_counted_from_the_truth():
    truth = [(1000 * 16, 2000 * 16), (4000 * 16, 5000 * 16), (7000 * 16, 7500 * 16)]
    verdict = endpoints.judge(truth, [span(1080, 2150), span(3960, 4900), span(9000, 9200)])
    assert (verdict["heard_as_one"], verdict["missed"], verdict["false"]) == (2, 1, 1)
    assert verdict["begin_late"]["max"] == 80
    assert verdict["end_late"]["p50"] == 25
    assert verdict["endpoint"]["max"] == 650


def test_one_setting_is_tried_at_a_time():
    cut = endpoints.configured(Settings())
    tried = dict(endpoints._variations(cut))
    assert tried["as configured"] == cut
    for name, setting in tried.items():
        differing = [key for key in cut.__slots__ if getattr(setting, key) != getattr(cut, key)]
        assert differing == ([] if name == "as configured" else [name.split()[0]])


def test_on_real_recordings_a_longer_hangover_never_splits_more():
    clips = [clip for clip in corpus.recordings_or_skip("speech") if clip.text][:4]
    rows = endpoints.measure(clips, endpoints.configured(Settings()))["rows"]
    quiet = {row["setting"]: row for row in rows if (row["room"], row["level_db"]) == ("quiet", 0)}
    assert quiet["as configured"]["heard_as_one"] == 4
    assert quiet["hangover_ms 800"]["split"] <= quiet["hangover_ms 200"]["split"]
    waits = [quiet[f"hangover_ms {ms}"]["endpoint"]["p50"] for ms in (200, 800)]
    assert waits[1] - waits[0] == 600
