"""The turns of the conversation: what main decides on each message. No I/O, no thread, no model.

Every utterance opens a turn and every turn ends in exactly one receipt, whatever happens to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeAlias

from oyez.messages import (
    RATE_HZ,
    AnswerMark,
    AnswerReady,
    AnswerRequest,
    AnswerUnspoken,
    Dropped,
    DropReason,
    Heard,
    Transcript,
)
from oyez.ops.receipt import Decode, Outcome, Receipt, Spoken

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from oyez.config import EchoAnswer

Action: TypeAlias = AnswerRequest | Receipt

_DROPPED = {
    DropReason.BUSY: Outcome.BUSY,
    DropReason.LOST: Outcome.LOST,
    DropReason.STOPPED: Outcome.STOPPED,
}


@dataclass(slots=True)
class _Turn:
    heard: Heard
    time: datetime
    decode: Decode | None = None
    spoken: Spoken | None = None
    synthesis_ms: float = 0.0
    text: str = ""
    answer: str = ""


class Turns:
    """The turns that are open. Main's thread only.

    Args:
        answers: the configured answers; none means that nothing is answered.
        paced: False when the stream stands still while something is computed (see ``Receipt``).
        now: the wall clock, for the receipts.
    """

    def __init__(
        self,
        answers: Sequence[EchoAnswer],
        *,
        paced: bool,
        now: Callable[[], datetime] = lambda: datetime.now(UTC).astimezone(),
    ) -> None:
        self._answers = answers
        self._paced = paced
        self._now = now
        self._open: dict[int, _Turn] = {}
        self._speaking: set[int] = set()
        self.spoken_answers = 0
        """How many answers were spoken to their end."""

    @property
    def all_over(self) -> bool:
        """Whether every utterance so far has its receipt, and every answer was spoken."""
        return not self._open and not self._speaking

    def take(self, message: object) -> Sequence[Action]:
        """What follows from a message of a worker; nothing from those that are no turn's."""
        match message:
            case Heard():
                self._open[message.span.number] = _Turn(message, self._now())
            case Dropped():
                return [self._close(message.number, _DROPPED[message.reason])]
            case Transcript():
                return [self._transcribed(message)]
            case AnswerReady():
                self._open[message.number].synthesis_ms = message.synthesis_ms
            case AnswerUnspoken():
                self._speaking.discard(message.number)
                return [self._close(message.number, Outcome.UNSPOKEN)]
            case AnswerMark(last=False):
                return [self._answer_begins(message)]
            case AnswerMark():
                self._speaking.discard(message.number)
                self.spoken_answers += 1
        return []

    def refused(self, request: AnswerRequest) -> Receipt:
        """The voice has no room for one more answer."""
        self._speaking.discard(request.number)
        return self._close(request.number, Outcome.UNHEARD)

    def close_all(self) -> list[Receipt]:
        """The daemon ends: a receipt for everything that is open."""
        return [self._close(number, Outcome.STOPPED) for number in sorted(self._open)]

    def _transcribed(self, message: Transcript) -> Action:
        """Its text is there: what to answer, or the receipt."""
        turn = self._open[message.number]
        reading = message.reading
        turn.text = reading.text
        text_frame = message.text_frame
        if not self._paced:
            text_frame = turn.heard.span.endpoint_frame + _frames(message.after_endpoint_ms)
        turn.decode = Decode(
            decode_ms=message.decode_ms,
            endpoint_to_text_ms=message.after_endpoint_ms,
            text_frame=text_frame,
            context=reading.context,
            tries=reading.tries,
            probability=reading.probability,
        )
        if not reading.text:
            return self._close(message.number, Outcome.NO_TEXT)
        if not self._answers:
            return self._close(message.number, Outcome.TRANSCRIBED)
        turn.answer = self._answers[0].echo.format(text=reading.text)
        self._speaking.add(message.number)
        return AnswerRequest(number=message.number, text=turn.answer)

    def _answer_begins(self, message: AnswerMark) -> Receipt:
        """The first sample of the answer went to the speaker."""
        turn = self._open[message.number]
        frame = message.frame
        if not self._paced and turn.decode is not None:
            frame = turn.decode.text_frame + _frames(turn.synthesis_ms)
        turn.spoken = Spoken(synthesis_ms=turn.synthesis_ms, answer_frame=frame)
        return self._close(message.number, Outcome.ANSWERED)

    def _close(self, number: int, outcome: Outcome) -> Receipt:
        turn = self._open.pop(number)
        span = turn.heard.span
        return Receipt(
            utterance=number,
            time=turn.time,
            outcome=outcome,
            reason=span.reason,
            begin_frame=span.begin_frame,
            end_frame=span.end_frame,
            speech_begin_frame=span.speech_begin_frame,
            speech_end_frame=span.speech_end_frame,
            endpoint_frame=span.endpoint_frame,
            peak_dbfs=turn.heard.peak_dbfs,
            clipped_ms=turn.heard.clipped_ms,
            decode=turn.decode,
            spoken=turn.spoken,
            text=turn.text,
            answer=turn.answer,
        )


def _frames(duration_ms: float) -> int:
    return round(duration_ms * RATE_HZ / 1000)
