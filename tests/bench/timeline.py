"""Timelines: recordings of people set into a room, one after the other, with the truth beside.

What each utterance says and at which frame its speech begins and ends is known from how the
timeline was built, and is written as JSON next to the WAV. The same plan gives the same samples.

The SNR counts the noise that is added. What a recording brought along of its own room stays in it,
so the noisiest clips are noisier than stated.
"""

from __future__ import annotations

import json
import random
import wave
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

import corpus
from oyez.audio import room
from oyez.messages import RATE_HZ

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from oyez.messages import Pcm16, PcmFloat

_SEAM_FRAMES = RATE_HZ // 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a timeline is to be like.

    ``reverb`` is the reverberation time of a synthetic room in ms, or the name of a recorded room
    response; ``noise`` the name of a recorded noise, or ``room tone``. After each utterance comes
    as much time as it took, in which an answer can repeat it, and then a pause, drawn evenly
    between the two bounds of ``pause_ms``.
    """

    snr_db: float = 25.0
    reverb: str = "300"
    noise: str = "room tone"
    lead_ms: float = 2000.0
    pause_ms: tuple[float, float] = (2000.0, 3500.0)
    tail_ms: float = 5000.0
    seed: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Utterance:
    """The truth about one utterance; frames of 16 kHz, ``end_frame`` is the one after the last."""

    clip: str
    text: str
    begin_frame: int
    end_frame: int
    longest_pause_ms: float
    snr_db: float
    room: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """Samples (int16 ``[n]``, 16 kHz), what is said in them, and how they were made.

    ``gain_db`` (0 or less) is what the whole was turned down by so that nothing clips.
    """

    samples: Pcm16
    utterances: tuple[Utterance, ...]
    plan: Plan
    gain_db: float

    @property
    def spans(self) -> list[tuple[int, int]]:
        """Begin and end frame of each utterance."""
        return [(said.begin_frame, said.end_frame) for said in self.utterances]

    def truth(self) -> dict[str, object]:
        """What is written beside the WAV."""
        return {
            "rate_hz": RATE_HZ,
            "frames": len(self.samples),
            "gain_db": self.gain_db,
            "plan": asdict(self.plan),
            "utterances": [asdict(said) for said in self.utterances],
        }


def choose(clips: Sequence[corpus.Clip], *, minutes: float, plan: Plan) -> list[corpus.Clip]:
    """Draw clips for a timeline of about this length, each once before any comes again."""
    drawn = random.Random(plan.seed)  # noqa: S311 - a fixed seed is the point
    left_ms = minutes * 60_000 - plan.lead_ms - plan.tail_ms
    chosen: list[corpus.Clip] = []
    while True:
        for clip in drawn.sample(list(clips), len(clips)):
            left_ms -= 2 * len(clip.samples) * 1000 / RATE_HZ + sum(plan.pause_ms) / 2
            if chosen and left_ms < 0:
                return chosen
            chosen.append(clip)


def build(clips: Sequence[corpus.Clip], plan: Plan) -> Timeline:
    """Set the clips, in this order, into the room and the noise of the plan.

    Raises:
        ValueError: the plan names a response or noise that the recordings here do not hold.
    """
    drawn = random.Random(plan.seed)  # noqa: S311 - a fixed seed is the point
    takes = [room.take(clip.samples, clip.active) for clip in clips]
    scene = room.compose(
        takes,
        lead_ms=plan.lead_ms,
        gaps_ms=[
            take.speech_frames * 1000 / RATE_HZ + drawn.uniform(*plan.pause_ms)
            for take in takes[:-1]
        ],
        tail_ms=plan.tail_ms,
        snr_db=plan.snr_db,
        response=_response(plan),
        noise=(
            partial(room.room_tone, seed=plan.seed)
            if plan.noise == "room tone"
            else partial(looped, _recorded(plan.noise, "noise", "music"))
        ),
    )
    return Timeline(
        samples=scene.samples,
        utterances=tuple(
            Utterance(
                clip=clip.name,
                text=clip.text or "",
                begin_frame=begin,
                end_frame=end,
                longest_pause_ms=clip.longest_pause_ms,
                snr_db=plan.snr_db,
                room=f"{plan.reverb} ms" if plan.reverb.isdigit() else plan.reverb,
            )
            for clip, (begin, end) in zip(clips, scene.spans, strict=True)
        ),
        plan=plan,
        gain_db=scene.gain_db,
    )


def write(timeline: Timeline, folder: Path, name: str = "timeline") -> Path:
    """Write ``name.wav`` and ``name.json`` into the folder; gives the path of the WAV."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.wav"
    with wave.open(str(path), "wb") as recording:
        recording.setnchannels(1)
        recording.setsampwidth(2)
        recording.setframerate(RATE_HZ)
        recording.writeframes(timeline.samples.astype("<i2").tobytes())
    truth = json.dumps(timeline.truth(), indent=1, ensure_ascii=False)
    path.with_suffix(".json").write_text(truth + "\n", encoding="utf-8")
    return path


def looped(noise: PcmFloat, frames: int) -> PcmFloat:
    """A noise for any length: where it begins again, its end fades into its begin."""
    seam = min(_SEAM_FRAMES, len(noise) // 4)
    fade = np.sqrt(np.linspace(0, 1, seam, dtype=np.float32))
    body = noise[seam:].copy()
    body[len(body) - seam :] *= fade[::-1]
    body[len(body) - seam :] += noise[:seam] * fade
    return np.resize(body, frames)


def _response(plan: Plan) -> PcmFloat:
    if plan.reverb.isdigit():
        return room.impulse_response(reverb_ms=int(plan.reverb), seed=plan.seed)
    return _recorded(plan.reverb, "rir")


def _recorded(name: str, *kinds: str) -> PcmFloat:
    named = {clip.name: clip for clip in corpus.recordings(*kinds)}
    if name not in named:
        raise ValueError(f"there is no {kinds[0]} {name!r} here, only {sorted(named) or 'none'}")
    return named[name].samples
