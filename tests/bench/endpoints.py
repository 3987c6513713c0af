"""``bench endpoints``: what the detector and the endpointer alone make of people in noise.

No model and no waiting: the same timelines, for each setting in turn with the others as
configured. So the defaults of the detector, of the hangover, the shortest speech and the pre-roll
can be judged in a minute.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bench import report, scoring, timeline
from oyez.messages import BLOCK_FRAMES, RATE_HZ, EndReason, Span
from oyez.speech.endpointer import Endpointer
from oyez.speech.vad_webrtc import WebRtcVad

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from corpus import Clip
    from oyez.config import Settings
    from oyez.messages import Pcm16

ROOMS = (
    ("quiet", timeline.Plan(snr_db=30)),
    ("usual", timeline.Plan(snr_db=20)),
    ("noisy", timeline.Plan(snr_db=10)),
)
LEVELS_DB = (0, -20)
"""As loud as the timelines are (speech at -26 dB of full scale), and far from the microphone."""
AGGRESSIVENESS = (0, 1, 2, 3)
HANGOVER_MS = (200, 300, 400, 500, 600, 800)
MIN_SPEECH_MS = (40, 80, 120, 160, 200, 300)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """The settings that decide where an utterance begins and ends."""

    aggressiveness: int
    hangover_ms: int
    min_speech_ms: int
    pre_roll_ms: int
    max_utterance_ms: int


def configured(settings: Settings) -> Cut:
    """What the configuration says."""
    ends = settings.endpointing
    return Cut(
        aggressiveness=settings.vad.aggressiveness,
        hangover_ms=ends.hangover_ms,
        min_speech_ms=ends.min_speech_ms,
        pre_roll_ms=ends.pre_roll_ms,
        max_utterance_ms=round(ends.max_utterance_s * 1000),
    )


def measure(clips: Sequence[Clip], cut: Cut) -> dict[str, Any]:
    """The verdict for each room, level and setting."""
    rows = []
    for room, plan in ROOMS:
        made = timeline.build(clips, replace(plan, pause_ms=(1000, 2000)))
        for level_db in LEVELS_DB:
            samples = np.rint(made.samples * 10 ** (level_db / 20)).astype(np.int16)
            flags = {voice: list(_flags(samples, voice)) for voice in AGGRESSIVENESS}
            for setting, tried in _variations(cut):
                spans = _spans(flags[tried.aggressiveness], tried)
                rows.append(
                    {"room": room, "level_db": level_db, "setting": setting}
                    | judge(made.spans, spans)
                )
    return {"utterances": len(clips), "rows": rows}


def judge(truth: Sequence[tuple[int, int]], spans: Sequence[Span]) -> dict[str, Any]:
    """Count the faults, and how late speech was noticed and let go, in ms.

    ``begin_late`` is what the pre-roll must make good; ``end_late`` counts from the true last word
    to the last voiced block (negative: a soft ending was not heard), ``endpoint`` to the decision.
    """
    matching = scoring.match(truth, [(s.speech_begin_frame, s.speech_end_frame) for s in spans])
    pairs = [(truth[true], spans[found]) for true, found in matching.pairs]
    return {
        "heard_as_one": len(pairs),
        "missed": len(matching.missed),
        "split": len(matching.split),
        "merged": len(matching.merged),
        "false": len(matching.false),
        "begin_late": report.spread([_ms(s.speech_begin_frame - t[0]) for t, s in pairs]),
        "end_late": report.spread([_ms(s.speech_end_frame - t[1]) for t, s in pairs]),
        "endpoint": report.spread([_ms(s.endpoint_frame - t[1]) for t, s in pairs]),
    }


def _variations(cut: Cut) -> Iterator[tuple[str, Cut]]:
    """The configured settings, then each of three settings at every other value."""
    yield "as configured", cut
    for name, values in (
        ("aggressiveness", AGGRESSIVENESS),
        ("hangover_ms", HANGOVER_MS),
        ("min_speech_ms", MIN_SPEECH_MS),
    ):
        for value in values:
            if value != getattr(cut, name):
                yield f"{name} {value}", replace(cut, **{name: value})


def _flags(samples: Pcm16, aggressiveness: int) -> Iterator[bool]:
    vad = WebRtcVad(aggressiveness)
    for at in range(0, len(samples) - BLOCK_FRAMES + 1, BLOCK_FRAMES):
        yield vad.is_speech(samples[at : at + BLOCK_FRAMES])


def _spans(flags: Sequence[bool], cut: Cut) -> list[Span]:
    endpointer = Endpointer(
        pre_roll_ms=cut.pre_roll_ms,
        hangover_ms=cut.hangover_ms,
        min_speech_ms=cut.min_speech_ms,
        max_utterance_ms=cut.max_utterance_ms,
    )
    events = [event for flag in flags for event in endpointer.process(speech=flag)]
    events += endpointer.flush(EndReason.END_OF_INPUT)
    return [event for event in events if isinstance(event, Span)]


def _ms(frames: int) -> float:
    return frames * 1000 / RATE_HZ
