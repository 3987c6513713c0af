"""The comparison of streamed and whole readings."""

from __future__ import annotations

import pytest

from bench import wer


def test_the_difference_is_told_in_points_with_the_clips_that_disagree():
    verdict = wer.compare(
        ["one", "two", "three"],
        ["ten of clubs", "what time is it", "pause the timer"],
        ["10 of clubs.", "What time is", "Pause the timer!"],
        ["Ten of clubs.", "What time is it?", "Paws the timer."],
    )
    assert verdict["clips"] == 3
    assert verdict["streamed"]["wer"] == verdict["transcribed"]["wer"] == 0.1
    assert verdict["points"] == 0
    assert verdict["points_95"][0] < 0 < verdict["points_95"][1]
    assert [row["clip"] for row in verdict["disagreements"]] == ["two", "three"]


def test_words_lost_by_streaming_are_positive_points():
    verdict = wer.compare(
        ["a"], ["ten of clubs and hearts"], ["ten of clubs"], ["ten of clubs and"]
    )
    assert verdict["points"] == pytest.approx(20)
