"""``bench wer``: are words lost by streaming? The same recordings, heard in two ways.

Each recording alone in the microphone's place, unpaced, through the whole pipeline (cut by the
endpointer, read at the shortest context that proves itself), and each one read whole at the
recognizer's full context by ``oyez transcribe``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bench import loop, pipeline, scoring

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from corpus import Clip


def measure(clips: Sequence[Clip], *, config: Path | None) -> dict[str, Any]:
    """Both word error rates, their difference, and every clip where they disagree.

    Raises:
        pipeline.PipelineError: the product failed.
    """
    whole = pipeline.transcribe([clip.path for clip in clips], config=config)
    streamed = [
        " ".join(heard.text for heard in pipeline.stream(clip.path, config=config, paced=False))
        for clip in clips
    ]
    return compare(
        [clip.name for clip in clips], [clip.text or "" for clip in clips], streamed, whole
    )


def compare(
    names: Sequence[str], said: Sequence[str], streamed: Sequence[str], whole: Sequence[str]
) -> dict[str, Any]:
    """The verdict over texts; ``points`` are percentage points, positive where streaming loses."""
    of_streamed = [scoring.word_errors(*texts) for texts in zip(said, streamed, strict=True)]
    of_whole = [scoring.word_errors(*texts) for texts in zip(said, whole, strict=True)]
    between = scoring.rate_interval(of_streamed, of_whole)
    return {
        "clips": len(names),
        "streamed": loop.word_report(of_streamed),
        "transcribed": loop.word_report(of_whole),
        "points": round(100 * (scoring.rate(of_streamed) - scoring.rate(of_whole)), 2),
        "points_95": [round(100 * bound, 2) for bound in between],
        "disagreements": [
            {"clip": name, "said": text, "streamed": one, "transcribed": other}
            for name, text, one, other in zip(names, said, streamed, whole, strict=True)
            if scoring.words(one) != scoring.words(other)
        ],
    }
