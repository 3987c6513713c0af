"""The product as its owner starts it: ``oyez`` in a process of its own, read through its JSON."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

OYEZ = (sys.executable, "-m", "oyez")


class PipelineError(Exception):
    """The product failed, or did not say what it should; the message ends with what it said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What the pipeline tells of one utterance; frames of 16 kHz since the stream opened.

    ``heard`` runs from the first voiced block to the end of the last. ``text_frame`` and
    ``answer_frame`` (None where nothing was said) are the newest frame when the final text was
    there, and when the first sample of the answer was handed to the speaker.
    """

    heard: tuple[int, int]
    cut: tuple[int, int]
    endpoint_frame: int
    text_frame: int | None
    answer_frame: int | None
    decode_ms: float | None
    reason: str
    text: str


def receipts(lines: Iterable[str]) -> list[Receipt]:
    """The receipts among the events that the product printed.

    Raises:
        PipelineError: a line is no JSON, or a receipt lacks a field.
    """
    found = []
    for line in lines:
        try:
            event = json.loads(line)
            if event["event"] == "receipt":
                found.append(_receipt(event))
        except (ValueError, KeyError, TypeError) as error:
            raise PipelineError(f"not an event: {line.strip()!r} ({error!r})") from error
    return found


def stream(recording: Path, *, config: Path | None, paced: bool) -> list[Receipt]:
    """Put a recording in the microphone's place, and give the receipts.

    Raises:
        PipelineError: the product failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        arguments = running(recording, Path(folder) / "answer.wav", config=config)
        return receipts(_run([*arguments, *([] if paced else ["--unpaced"])]))


def running(recording: Path, answer: Path, *, config: Path | None) -> list[str]:
    """The arguments for a run with a recording as microphone and a WAV as speaker."""
    files = ["--input", str(recording), "--output", str(answer)]
    return ["run", "--json", *files, *_config(config)]


def transcribe(recordings: Sequence[Path], *, config: Path | None) -> list[str]:
    """The texts of whole recordings at the recognizer's full context, in their order.

    Raises:
        PipelineError: the product failed.
    """
    paths = [str(path) for path in recordings]
    lines = _run(["transcribe", "--json", *_config(config), *paths])
    texts = {entry["file"]: entry["text"] for entry in map(json.loads, lines)}
    if set(texts) != set(paths):
        raise PipelineError(f"texts for {sorted(texts)} instead of {sorted(paths)}")
    return [texts[path] for path in paths]


def _receipt(event: dict[str, Any]) -> Receipt:
    return Receipt(
        heard=(event["speech_begin_frame"], event["speech_end_frame"]),
        cut=(event["begin_frame"], event["end_frame"]),
        endpoint_frame=event["endpoint_frame"],
        text_frame=event["text_frame"],
        answer_frame=event["answer_frame"],
        decode_ms=event["decode_ms"],
        reason=event["reason"],
        text=event["text"] or "",
    )


def _config(path: Path | None) -> list[str]:
    return [] if path is None else ["--config", str(path)]


def _run(arguments: Sequence[str]) -> list[str]:
    done = subprocess.run([*OYEZ, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise PipelineError(f"oyez {arguments[0]} ended with {done.returncode}: {done.stderr}")
    return done.stdout.splitlines()
