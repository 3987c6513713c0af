"""The turns of the conversation: what is answered, and what the receipts say."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from dialog import messages
from oyez.config import EchoAnswer
from oyez.dialog.turns import Turns
from oyez.messages import (
    RATE_HZ,
    AnswerRequest,
    AnswerUnspoken,
    Blip,
    Dropped,
    DropReason,
    EndReason,
    InputEnded,
    SpeechStarted,
)
from oyez.ops.receipt import Decode, Outcome, Spoken

ECHO = (EchoAnswer(echo="You said: {text}"),)
NOON = datetime(2024, 5, 17, 12, tzinfo=UTC)


@pytest.fixture
def turns():
    return Turns(ECHO, paced=True, now=lambda: NOON)


def tell(turns, *told):
    """All actions that follow."""
    return [action for message in told for action in turns.take(message)]


def test_an_answered_utterance_leaves_one_receipt_when_its_first_sample_goes_out(turns):
    assert tell(turns, messages.heard()) == []
    assert tell(turns, messages.transcript()) == [AnswerRequest(number=1, text="You said: hello")]
    assert tell(turns, messages.ready()) == []
    (receipt,) = tell(turns, messages.begins())
    assert receipt.outcome is Outcome.ANSWERED
    assert (receipt.utterance, receipt.time) == (1, NOON)
    assert (receipt.text, receipt.answer) == ("hello", "You said: hello")
    assert receipt.reason is EndReason.SILENCE
    assert (receipt.begin_frame, receipt.end_frame) == (16_000, 48_000)
    assert (receipt.speech_begin_frame, receipt.speech_end_frame) == (24_000, 40_000)
    assert receipt.endpoint_frame == 48_000
    assert (receipt.peak_dbfs, receipt.clipped_ms) == (-12.5, 20)
    assert receipt.decode == Decode(
        decode_ms=150.0,
        endpoint_to_text_ms=200.0,
        text_frame=messages.ENDPOINT + 3_360,
        context=512,
        tries=2,
        probability=0.8,
    )
    assert receipt.spoken == Spoken(synthesis_ms=70.0, answer_frame=messages.ENDPOINT + 4_800)
    assert receipt.wait_ms == 800  # 500 ms of hangover and 300 ms until the answer
    assert tell(turns, messages.ends()) == []


def test_in_an_unpaced_run_what_was_computed_is_charged_as_if_the_stream_had_gone_on():
    turns = Turns(ECHO, paced=False, now=lambda: NOON)
    *_, receipt = tell(
        turns, messages.heard(), messages.transcript(), messages.ready(), messages.begins()
    )
    text_frame = messages.ENDPOINT + RATE_HZ * 200 // 1000
    assert receipt.decode.text_frame == text_frame
    assert receipt.spoken.answer_frame == text_frame + RATE_HZ * 70 // 1000
    assert receipt.wait_ms == 500 + 200 + 70


def test_a_text_with_braces_is_repeated_as_it_is(turns):
    tell(turns, messages.heard())
    (request,) = tell(turns, messages.transcript(text="{text} {0} {{"))
    assert request.text == "You said: {text} {0} {{"


def test_without_words_there_is_nothing_to_answer(turns):
    (receipt,) = tell(turns, messages.heard(), messages.transcript(text=""))
    assert receipt.outcome is Outcome.NO_TEXT
    assert receipt.decode is not None
    assert turns.all_over


def test_without_a_configured_answer_a_text_is_all():
    turns = Turns((), paced=True)
    (receipt,) = tell(turns, messages.heard(), messages.transcript())
    assert receipt.outcome is Outcome.TRANSCRIBED
    assert (receipt.text, receipt.answer, receipt.spoken) == ("hello", "", None)
    assert turns.all_over


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [
        (DropReason.BUSY, Outcome.BUSY),
        (DropReason.LOST, Outcome.LOST),
        (DropReason.STOPPED, Outcome.STOPPED),
    ],
)
def test_what_was_dropped_says_why(turns, reason, outcome):
    (receipt,) = tell(turns, messages.heard(), Dropped(number=1, reason=reason))
    assert receipt.outcome is outcome
    assert receipt.decode is None
    assert turns.all_over


def test_every_reason_to_drop_has_its_outcome(turns):
    for number, reason in enumerate(DropReason):
        assert tell(turns, messages.heard(number), Dropped(number=number, reason=reason))


def test_an_answer_that_cannot_be_spoken_is_told_with_its_text(turns):
    tell(turns, messages.heard(), messages.transcript())
    (receipt,) = tell(turns, AnswerUnspoken(number=1))
    assert receipt.outcome is Outcome.UNSPOKEN
    assert (receipt.text, receipt.answer) == ("hello", "You said: hello")
    assert turns.all_over


def test_an_answer_for_which_the_voice_has_no_room_is_told(turns):
    tell(turns, messages.heard())
    (request,) = tell(turns, messages.transcript())
    receipt = turns.refused(request)
    assert receipt.outcome is Outcome.UNHEARD
    assert receipt.text == "hello"
    assert turns.all_over


def test_at_the_stop_every_open_turn_gets_its_receipt_in_order(turns):
    tell(turns, messages.heard(1), messages.heard(2), messages.heard(3))
    tell(turns, messages.transcript(3), messages.transcript(1), messages.ready(1))
    tell(turns, messages.begins(1))
    receipts = turns.close_all()
    assert [receipt.utterance for receipt in receipts] == [2, 3]
    assert {receipt.outcome for receipt in receipts} == {Outcome.STOPPED}
    assert receipts[1].text == "hello"
    assert turns.close_all() == []


def test_all_is_over_only_when_the_last_answer_was_spoken_to_its_end(turns):
    assert turns.all_over
    for message in (messages.heard(), messages.transcript(), messages.ready(), messages.begins()):
        tell(turns, message)
        assert not turns.all_over
        assert turns.spoken_answers == 0
    tell(turns, messages.ends())
    assert turns.all_over
    assert turns.spoken_answers == 1


@pytest.mark.parametrize(
    "message",
    [
        SpeechStarted(number=1, frame=0, known_frame=960),
        Blip(begin_frame=0, end_frame=320),
        InputEnded(frame=16_000),
    ],
)
def test_messages_that_are_no_turn_s_have_no_consequence(turns, message):
    assert tell(turns, message) == []
    assert turns.all_over


def test_receipts_carry_the_local_time_by_default():
    turns = Turns((), paced=True)
    (receipt,) = tell(turns, messages.heard(), messages.transcript())
    assert receipt.time.utcoffset() is not None
