"""The receipt: one record for each utterance, for a person and as JSON. Pure.

Positions are frames of the 16 kHz stream since it opened. The waits are differences of positions
(so they hold whatever the wall clock does); what was computed is in milliseconds of the monotonic
clock. In an unpaced run the stream stands still while something is computed; there the time that
it took is charged to ``text_frame`` and ``answer_frame``, as if the stream had gone on.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from oyez.messages import EndReason, frames_to_ms

if TYPE_CHECKING:
    from datetime import datetime


class Outcome(StrEnum):
    """What became of an utterance."""

    ANSWERED = "answered"
    TRANSCRIBED = "transcribed"
    """It has a text, and no answer is configured."""
    UNSPOKEN = "the answer cannot be spoken"
    NO_TEXT = "no words found"
    BUSY = "dropped: too many were waiting"
    UNHEARD = "not spoken: too many answers were waiting"
    LOST = "dropped: its sound was lost"
    STOPPED = "stopped"
    """The daemon was asked to end before the turn was over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decode:
    """What the text cost. ``probability`` is the mean over the text's tokens."""

    decode_ms: float
    endpoint_to_text_ms: float
    text_frame: int
    context: int
    tries: int
    probability: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoken:
    """What the answer cost: ``synthesis_ms`` to its first sample, which went out at a frame."""

    synthesis_ms: float
    answer_frame: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """One utterance, from the first voiced block to the first sample of the answer."""

    utterance: int
    time: datetime
    outcome: Outcome
    reason: EndReason
    begin_frame: int
    end_frame: int
    speech_begin_frame: int
    speech_end_frame: int
    endpoint_frame: int
    peak_dbfs: float
    clipped_ms: int
    decode: Decode | None
    spoken: Spoken | None
    text: str
    answer: str

    @property
    def audio_ms(self) -> int:
        """The length of the sound that was transcribed."""
        return frames_to_ms(self.end_frame - self.begin_frame)

    @property
    def silence_ms(self) -> int:
        """From the last voiced block to the endpoint."""
        return frames_to_ms(self.endpoint_frame - self.speech_end_frame)

    @property
    def wait_ms(self) -> int | None:
        """The wait of the person: from their last voiced block to the answer's first sample."""
        if self.spoken is None:
            return None
        return frames_to_ms(self.spoken.answer_frame - self.speech_end_frame)

    def fields(self, *, with_text: bool) -> dict[str, Any]:
        """The record as JSON values; what people said and heard only ``with_text``."""
        cost = asdict(self.decode) if self.decode else dict.fromkeys(Decode.__slots__)
        cost |= asdict(self.spoken) if self.spoken else dict.fromkeys(Spoken.__slots__)
        rounded = {k: round(v, 3) if isinstance(v, float) else v for k, v in cost.items()}
        words = {"text": self.text, "answer": self.answer} if with_text else {}
        return {
            "event": "receipt",
            "utterance": self.utterance,
            "time": self.time.isoformat(timespec="milliseconds"),
            "outcome": self.outcome.value,
            "reason": self.reason.value,
            "begin_frame": self.begin_frame,
            "end_frame": self.end_frame,
            "speech_begin_frame": self.speech_begin_frame,
            "speech_end_frame": self.speech_end_frame,
            "endpoint_frame": self.endpoint_frame,
            "audio_ms": self.audio_ms,
            "peak_dbfs": round(self.peak_dbfs, 1),
            "clipped_ms": self.clipped_ms,
            **rounded,
            "wait_ms": self.wait_ms,
            **words,
        }

    def lines(self, *, with_text: bool) -> list[str]:
        """The record for a person, two or three lines."""
        words = f'  "{self.text}"' if with_text and self.text else ""
        ended = f"ended: {self.reason}"
        if self.reason is EndReason.SILENCE:
            ended += f" {self.silence_ms} ms"
        clipped = f"  clipped: {self.clipped_ms} ms" if self.clipped_ms else ""
        first = f"utterance {self.utterance}  {self.audio_ms / 1000:.2f} s{words}  {ended}{clipped}"
        as_ended = (Outcome.ANSWERED, Outcome.TRANSCRIBED, self.reason)  # "stopped" is both
        if self.outcome not in as_ended:
            first += f"  {self.outcome}"
        return [first, *self._costs(), *self._wait()]

    def _costs(self) -> list[str]:
        if self.decode is None:
            return []
        tries = f", {self.decode.tries} tries" if self.decode.tries > 1 else ""
        decode = f"decode {self.decode.decode_ms:.0f} ms, context {self.decode.context}{tries}"
        steps = [
            f"last word → endpoint {self.silence_ms} ms",
            f"endpoint → text {self.decode.endpoint_to_text_ms:.0f} ms ({decode})",
        ]
        if self.spoken is not None:
            passed = frames_to_ms(self.spoken.answer_frame - self.decode.text_frame)
            steps.append(
                f"text → first sample {passed} ms (synthesis {self.spoken.synthesis_ms:.0f} ms)"
            )
        return ["  " + " · ".join(steps)]

    def _wait(self) -> list[str]:
        return [] if self.wait_ms is None else [f"  the person waited {self.wait_ms} ms"]
