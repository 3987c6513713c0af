"""The messages of a turn, with round numbers."""

from __future__ import annotations

from oyez.messages import (
    RATE_HZ,
    AnswerMark,
    AnswerReady,
    EndReason,
    Heard,
    Reading,
    Span,
    Transcript,
)

ENDPOINT = 3 * RATE_HZ


def heard(number: int = 1, reason: EndReason = EndReason.SILENCE) -> Heard:
    """One second of speech that ended half a second before the endpoint."""
    span = Span(
        number=number,
        begin_frame=RATE_HZ,
        end_frame=ENDPOINT,
        speech_begin_frame=RATE_HZ + RATE_HZ // 2,
        speech_end_frame=2 * RATE_HZ + RATE_HZ // 2,
        endpoint_frame=ENDPOINT,
        reason=reason,
    )
    return Heard(span=span, peak_dbfs=-12.5, level_dbfs=-22.0, clipped_ms=20)


def transcript(number: int = 1, text: str = "hello") -> Transcript:
    """Decoded in 150 ms, 200 ms after the endpoint; the stream was 210 ms further on."""
    return Transcript(
        number=number,
        reading=Reading(text=text, probability=0.8, context=512, tries=2),
        decode_ms=150.0,
        after_endpoint_ms=200.0,
        text_frame=ENDPOINT + RATE_HZ * 210 // 1000,
    )


def ready(number: int = 1) -> AnswerReady:
    """Its first sample was made in 70 ms."""
    return AnswerReady(number=number, synthesis_ms=70.0)


def begins(number: int = 1) -> AnswerMark:
    """It went out 300 ms after the endpoint."""
    return AnswerMark(number=number, last=False, frame=ENDPOINT + RATE_HZ * 300 // 1000)


def ends(number: int = 1) -> AnswerMark:
    """Its last sample went out."""
    return AnswerMark(number=number, last=True, frame=ENDPOINT + 2 * RATE_HZ)
