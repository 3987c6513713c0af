"""Whatever happens in whatever order: one receipt for each utterance."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from dialog import messages
from oyez.config import EchoAnswer
from oyez.dialog.turns import Turns
from oyez.messages import AnswerRequest, AnswerUnspoken, Dropped, DropReason
from oyez.ops.receipt import Outcome, Receipt

FATES = {
    "answered": Outcome.ANSWERED,
    "unspoken": Outcome.UNSPOKEN,
    "refused": Outcome.UNHEARD,
    "no text": Outcome.NO_TEXT,
    "busy": Outcome.BUSY,
    "lost": Outcome.LOST,
    "stopped": Outcome.STOPPED,
}
DROPS = {"busy": DropReason.BUSY, "lost": DropReason.LOST, "stopped": DropReason.STOPPED}


def course(turns, number, fate, *, answered):
    """The messages of one utterance in their order, taken one at each step; yields the actions."""
    yield turns.take(messages.heard(number))
    if fate in DROPS:
        yield turns.take(Dropped(number=number, reason=DROPS[fate]))
        return
    text = "" if fate == "no text" else "hello"
    actions = turns.take(messages.transcript(number, text))
    yield [action for action in actions if isinstance(action, Receipt)]
    if not text or not answered:
        return
    (request,) = actions
    assert isinstance(request, AnswerRequest)
    match fate:
        case "refused":
            yield [turns.refused(request)]
        case "unspoken":
            yield turns.take(AnswerUnspoken(number=number))
        case _:
            yield turns.take(messages.ready(number))
            yield turns.take(messages.begins(number))
            yield turns.take(messages.ends(number))


@given(
    fates=st.lists(st.sampled_from(sorted(FATES)), max_size=6),
    order=st.lists(st.integers(0, 5), max_size=40),
    answered=st.booleans(),
    paced=st.booleans(),
)
@settings(max_examples=400)
def test_every_utterance_ends_in_exactly_one_receipt_that_tells_its_fate(
    fates, order, answered, paced
):
    answers = (EchoAnswer(echo="{text}"),) if answered else ()
    turns = Turns(answers, paced=paced)
    courses = {
        number: course(turns, number, fate, answered=answered) for number, fate in enumerate(fates)
    }
    begun, finished, receipts = set(), set(), []
    for number in order:  # which utterance comes to its next step; then the stop
        if number not in courses or number in finished:
            continue
        begun.add(number)
        step = next(courses[number], None)
        if step is None:
            finished.add(number)
        else:
            receipts += step
        counted = {receipt.utterance for receipt in receipts}
        assert not turns.all_over or counted == begun
    told = {receipt.utterance: receipt.outcome for receipt in receipts}
    receipts += turns.close_all()
    assert Counter(receipt.utterance for receipt in receipts) == dict.fromkeys(begun, 1)
    for number in finished:
        said = fates[number] in ("answered", "unspoken", "refused") and not answered
        assert told[number] is (Outcome.TRANSCRIBED if said else FATES[fates[number]])
    open_still = [receipt for receipt in receipts if receipt.utterance not in told]
    assert {receipt.outcome for receipt in open_still} <= {Outcome.STOPPED}
    for receipt in receipts:
        assert receipt.fields(with_text=True)["utterance"] == receipt.utterance
        assert receipt.lines(with_text=False)
