"""Receipts with round numbers, for tests."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

from oyez.messages import RATE_HZ, EndReason
from oyez.ops.receipt import Decode, Outcome, Receipt, Spoken

NOON = datetime(2024, 5, 17, 12, 0, 0, 250_499, tzinfo=timezone(timedelta(hours=2)))
DECODE = Decode(
    decode_ms=171.25,
    endpoint_to_text_ms=180.0,
    text_frame=3 * RATE_HZ + RATE_HZ // 5,
    context=256,
    tries=1,
    probability=0.87654321,
)
SPOKEN = Spoken(synthesis_ms=74.4, answer_frame=3 * RATE_HZ + 3 * RATE_HZ // 10)
ANSWERED = Receipt(
    utterance=42,
    time=NOON,
    outcome=Outcome.ANSWERED,
    reason=EndReason.SILENCE,
    begin_frame=RATE_HZ,
    end_frame=3 * RATE_HZ,
    speech_begin_frame=RATE_HZ + RATE_HZ // 2,
    speech_end_frame=2 * RATE_HZ + RATE_HZ // 2,
    endpoint_frame=3 * RATE_HZ,
    peak_dbfs=-6.0206,
    clipped_ms=0,
    decode=DECODE,
    spoken=SPOKEN,
    text="turn on the kitchen light",
    answer="You said: turn on the kitchen light",
)
STOPPED = replace(
    ANSWERED,
    outcome=Outcome.STOPPED,
    reason=EndReason.STOPPED,
    decode=None,
    spoken=None,
    text="",
    answer="",
    time=NOON.astimezone(UTC),
)
