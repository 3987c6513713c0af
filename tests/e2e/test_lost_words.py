"""Are words lost by streaming? Recordings of people, through the whole pipeline and read whole."""

from __future__ import annotations

import sys

import pytest

import corpus
from bench import wer

POINTS = 2.0
"""So many percentage points more may be wrong when streamed than when read at full context."""


@pytest.mark.slow
@pytest.mark.models
@pytest.mark.usefixtures("models_folder")
def test_streamed_and_cut_by_the_endpointer_speech_is_read_as_well_as_whole(product, capsys):
    clips = [clip for clip in corpus.recordings_or_skip("speech") if clip.text]
    report = wer.measure(clips, config=product.configured(answer=[]))
    with capsys.disabled():
        sys.stdout.write(
            f"\nword error rate over {report['clips']} clips:"
            f" streamed {100 * report['streamed']['wer']:.2f} %,"
            f" transcribed {100 * report['transcribed']['wer']:.2f} %,"
            f" difference {report['points']:+.2f} points\n"
        )
    assert report["points"] <= POINTS, report["disagreements"]
