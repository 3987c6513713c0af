"""The receipt: the same record for a person and as JSON."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from ops.receipts import ANSWERED, DECODE, STOPPED
from oyez.messages import RATE_HZ, EndReason
from oyez.ops.receipt import Outcome


def test_all_fields_of_an_answered_utterance_as_json():
    fields = json.loads(json.dumps(ANSWERED.fields(with_text=True)))
    assert fields == {
        "event": "receipt",
        "utterance": 42,
        "time": "2024-05-17T12:00:00.250+02:00",
        "outcome": "answered",
        "reason": "silence",
        "begin_frame": 16_000,
        "end_frame": 48_000,
        "speech_begin_frame": 24_000,
        "speech_end_frame": 40_000,
        "endpoint_frame": 48_000,
        "audio_ms": 2_000,
        "peak_dbfs": -6.0,
        "clipped_ms": 0,
        "decode_ms": 171.25,
        "endpoint_to_text_ms": 180.0,
        "text_frame": 51_200,
        "context": 256,
        "tries": 1,
        "probability": 0.877,
        "synthesis_ms": 74.4,
        "answer_frame": 52_800,
        "wait_ms": 800,
        "text": "turn on the kitchen light",
        "answer": "You said: turn on the kitchen light",
    }


def test_a_record_has_the_same_fields_whatever_became_of_the_utterance():
    stopped = STOPPED.fields(with_text=True)
    assert list(stopped) == list(ANSWERED.fields(with_text=True))
    nothing = ("decode_ms", "text_frame", "probability", "synthesis_ms", "answer_frame", "wait_ms")
    assert {stopped[name] for name in nothing} == {None}


@pytest.mark.parametrize("receipt", [ANSWERED, STOPPED])
def test_without_text_nothing_of_what_was_said_is_shown(receipt):
    fields = receipt.fields(with_text=False)
    assert {"text", "answer"}.isdisjoint(fields)
    shown = json.dumps(fields) + "\n".join(receipt.lines(with_text=False))
    assert "kitchen" not in shown
    assert "You said" not in shown


def test_three_lines_for_a_person():
    assert ANSWERED.lines(with_text=True) == [
        'utterance 42  2.00 s  "turn on the kitchen light"  ended: silence 500 ms',
        (
            "  last word → endpoint 500 ms · endpoint → text 180 ms (decode 171 ms, context 256)"
            " · text → first sample 100 ms (synthesis 74 ms)"
        ),
        "  the person waited 800 ms",
    ]


def test_an_utterance_without_text_has_one_line():
    assert STOPPED.lines(with_text=True) == ["utterance 42  2.00 s  ended: stopped"]


def test_what_is_not_answered_says_what_the_text_cost():
    receipt = replace(ANSWERED, outcome=Outcome.TRANSCRIBED, spoken=None, answer="")
    first, costs = receipt.lines(with_text=True)
    assert first.endswith("ended: silence 500 ms")
    assert costs.endswith("(decode 171 ms, context 256)")
    assert receipt.fields(with_text=True)["wait_ms"] is None


@pytest.mark.parametrize("outcome", sorted(set(Outcome) - {Outcome.ANSWERED, Outcome.TRANSCRIBED}))
def test_an_outcome_that_is_not_the_good_one_is_told(outcome):
    first, *_ = replace(ANSWERED, outcome=outcome).lines(with_text=False)
    assert first.endswith(f"  {outcome.value}")


@pytest.mark.parametrize("reason", sorted(set(EndReason) - {EndReason.SILENCE}))
def test_the_reason_of_the_end_is_told(reason):
    first, *_ = replace(ANSWERED, reason=reason).lines(with_text=False)
    assert first.endswith(f"ended: {reason.value}")


def test_clipping_and_further_tries_are_told_where_there_were_any():
    receipt = replace(ANSWERED, clipped_ms=40, decode=replace(DECODE, tries=3, context=768))
    first, costs, _ = receipt.lines(with_text=False)
    assert first.endswith("clipped: 40 ms")
    assert "context 768, 3 tries)" in costs


def test_the_wait_is_from_the_last_word_to_the_first_sample():
    assert ANSWERED.spoken is not None
    later = replace(ANSWERED.spoken, answer_frame=ANSWERED.speech_end_frame + RATE_HZ)
    assert replace(ANSWERED, spoken=later).wait_ms == 1_000
