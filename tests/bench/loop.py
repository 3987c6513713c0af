"""``bench loop``: how long people wait, and what is heard wrongly, on a timeline in real time."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench import peer, pipeline, report, scoring, timeline
from oyez.app import inference_threads
from oyez.messages import RATE_HZ
from oyez.models.catalogue import Catalogue, Kind
from oyez.models.store import ModelStore
from oyez.speech import engines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.peer import Turn
    from bench.pipeline import Receipt
    from bench.timeline import Timeline
    from oyez.config import Settings
    from oyez.speech.engines import Synthesizer, Transcriber

MOMENTS = ("endpoint", "text", "answer")
"""What people wait for, from their last word on: the end is declared, the final text is there, the
first sample of the answer goes to the speaker."""


def measure(made: Timeline, settings: Settings, *, config_path: Path | None) -> dict[str, Any]:
    """Stream the timeline through the product, then do the same turns the plain way.

    Raises:
        pipeline.PipelineError: the product failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        recording = timeline.write(made, Path(folder))
        heard = pipeline.stream(recording, config=config_path, paced=True)
    sounds = [made.samples[receipt.cut[0] : receipt.cut[1]] for receipt in heard]
    turns = peer.take_turns(sounds, *_engines(settings), template=_template(settings))
    ours = judge(made, heard)
    plain = judge(made, [as_plain(*pair) for pair in zip(heard, turns, strict=True)])
    return {
        "timeline": made.truth()["plan"],
        "minutes": round(len(made.samples) / RATE_HZ / 60, 2),
        **ours,
        "peer": {
            "what": peer.WHAT,
            "wait_ms": plain["wait_ms"],
            "words": plain["words"],
            "times_longer": ratios(plain, ours),
        },
    }


def judge(made: Timeline, heard: Sequence[Receipt]) -> dict[str, Any]:
    """Compare what the pipeline told with the truth.

    Waits are counted from the true end of the last word, over the utterances that were heard as
    one; a negative one means that somebody was cut short. The word error rate is over all true
    utterances: the words of a missed one were deleted.
    """
    matching = scoring.match(made.spans, [receipt.heard for receipt in heard])
    alone = dict(matching.pairs)
    told: set[int] = set()  # of a merged utterance, the first true one gets the words
    rows = []
    for true, said in enumerate(made.utterances):
        parts = [found for found in matching.parts[true] if found not in told]
        told.update(parts)
        row = {"clip": said.clip, "said": said.text}
        row["heard"] = " ".join(heard[found].text for found in parts)
        rows.append(row | (_waits(heard[alone[true]], said.end_frame) if true in alone else {}))
    counts = [scoring.word_errors(row["said"], row["heard"]) for row in rows]
    return {
        "utterances": len(rows),
        "heard_as_one": len(matching.pairs),
        "missed": [made.utterances[true].clip for true in matching.missed],
        "split": [
            {"clip": said.clip, "longest_pause_ms": said.longest_pause_ms}
            for said in (made.utterances[true] for true in matching.split)
        ],
        "merged": [heard[found].text for found in matching.merged],
        "false": [heard[found].text for found in matching.false],
        "wait_ms": {
            moment: report.spread([row[moment] for row in rows if row.get(moment) is not None])
            for moment in MOMENTS
        },
        "words": word_report(counts),
        "rows": rows,
    }


def word_report(counts: Sequence[scoring.WordErrors]) -> dict[str, Any]:
    """A word error rate with its 95 % interval over the clips."""
    return {
        "wer": round(scoring.rate(counts), 4),
        "wer_95": [round(bound, 4) for bound in scoring.rate_interval(counts)],
        "words": sum(count.words for count in counts),
        "substituted": sum(count.substituted for count in counts),
        "deleted": sum(count.deleted for count in counts),
        "inserted": sum(count.inserted for count in counts),
    }


def as_plain(receipt: Receipt, turn: Turn) -> Receipt:
    """The receipt of the same utterance, had it been read and answered the plain way."""
    text_frame = receipt.endpoint_frame + _frames(turn.decode_ms)
    return replace(
        receipt,
        text=turn.text,
        decode_ms=turn.decode_ms,
        text_frame=text_frame,
        answer_frame=text_frame + _frames(turn.synthesis_ms) if turn.text else None,
    )


def ratios(plain: dict[str, Any], ours: dict[str, Any]) -> dict[str, float | None]:
    """How many times longer the plain way lets people wait, per moment and percentile."""
    return {
        f"{moment}_{percentile}": _ratio(
            plain["wait_ms"][moment][percentile], ours["wait_ms"][moment][percentile]
        )
        for moment in ("text", "answer")
        for percentile in ("p50", "p95")
    }


def _engines(settings: Settings) -> tuple[Transcriber, Synthesizer]:
    store = ModelStore(settings.models.folder_path, Catalogue.load())
    threads = inference_threads(settings)
    reader = store.ready(settings.transcription.model, Kind.WHISPER)
    voice = store.ready(settings.voice.model, Kind.PIPER)
    return (
        engines.make_transcriber(settings.transcription, reader, threads),
        engines.make_synthesizer(settings.voice, voice, threads),
    )


def _template(settings: Settings) -> str:
    return settings.answer[0].echo if settings.answer else ""


def _waits(receipt: Receipt, end_frame: int) -> dict[str, Any]:
    frames = (receipt.endpoint_frame, receipt.text_frame, receipt.answer_frame)
    return {
        moment: None if frame is None else round((frame - end_frame) * 1000 / RATE_HZ, 1)
        for moment, frame in zip(MOMENTS, frames, strict=True)
    } | {"decode_ms": receipt.decode_ms, "reason": receipt.reason}


def _ratio(one: float | None, other: float | None) -> float | None:
    return round(one / other, 2) if one is not None and other else None


def _frames(duration_ms: float) -> int:
    return round(duration_ms * RATE_HZ / 1000)
