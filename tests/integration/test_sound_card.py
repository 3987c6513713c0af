"""The product on a sound card, through PortAudio and libasound; the card alone is a plugin."""

from __future__ import annotations

import signal

import numpy as np
import pytest

from bench import scoring
from e2e import sounds
from e2e.reading import FEW, wrong_words
from integration.card import Card, build
from oyez.audio.pcm import to_float, to_pcm16

pytestmark = [pytest.mark.models, pytest.mark.usefixtures("models_folder")]

QUESTION = "Could you turn on the kitchen light and the lamp in the hall?"
INTERJECTION = "What time is it?"
NEXT_QUESTION = "How far is it to the next village?"
ROOM_IS_QUIET = 40
"""Periods of silence after which the gate is open again for sure: 0.8 s."""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return build(tmp_path_factory.mktemp("card"))


@pytest.fixture
def card(library, tmp_path):
    with Card(tmp_path, library) as plugged_in:
        yield plugged_in


@pytest.fixture
def listening(product):
    """Starts a run on a card."""

    def start(card, *options, **audio):
        config = product.configured(audio={"backend": "portaudio"} | audio)
        arguments = ("run", "--json", "--config", config, *options)
        return product.running(*arguments, env=card.environment)

    return start


def heard(done):
    """The words of each utterance, in their order."""
    receipts = sorted(done.receipts, key=lambda receipt: receipt["utterance"])
    return [scoring.words(receipt["text"]) for receipt in receipts]


def spoken(card, reader):
    """What the card has played, as a text."""
    played = sounds.at_16_khz(to_float(card.played()), card.rate_hz)
    return reader.read_whole(to_pcm16(played)).text


def test_what_the_microphone_hears_is_answered_through_the_speaker(
    library, listening, said, reader, tmp_path
):
    # Stereo, as most cards insist on, with a microphone on the right side alone.
    with (
        Card(tmp_path, library, rate_hz=48_000, channels=2) as card,
        listening(card, "--once") as running,
    ):
        running.event("state")
        card.say(said(QUESTION))
        done = running.end()
        assert done.code == 0
        assert "microphone: default (48000 Hz, 2 ch, S16_LE); speaker: default" in done.err
        assert heard(done) == [scoring.words(QUESTION)]
        assert wrong_words(f"You said: {QUESTION}", spoken(card, reader)) < FEW


@pytest.mark.parametrize("echo", ["gate", "external"])
def test_the_gate_is_closed_while_the_device_speaks_and_opens_afterwards(
    card, listening, said, echo
):
    with listening(card, echo=echo) as running:
        running.event("state")
        card.say(said(QUESTION))
        card.wait_until(lambda: card.speaking)
        card.say(said(INTERJECTION))
        card.wait_until(lambda: card.silent_periods > ROOM_IS_QUIET)
        card.say(said(NEXT_QUESTION))
        card.wait_until(lambda: card.speaking)
        done, _ = running.stop(signal.SIGTERM)
    assert done.code == 0
    between = [INTERJECTION] if echo == "external" else []
    assert heard(done) == [scoring.words(t) for t in (QUESTION, *between, NEXT_QUESTION)]


@pytest.mark.parametrize("moment", ["while it listens", "while it speaks"])
def test_a_card_that_is_unplugged_is_told_and_ends_it(card, listening, said, moment):
    with listening(card) as running:
        running.event("state")
        if moment == "while it speaks":
            card.say(said(QUESTION))
            card.wait_until(lambda: card.speaking)
        card.unplug()
        done = running.end()
    assert done.code == 69
    *_, problem, remedy = done.err.splitlines()
    assert problem.startswith("oyez: the ")
    assert " default cannot be used: " in problem
    assert "plugged in" in remedy
    assert "Traceback" not in done.err
    assert len(done.err) < 10_000  # PortAudio's own waiting would fill the journal


def test_an_utterance_that_an_unplugged_card_cuts_off_has_its_receipt(card, listening, said):
    with listening(card) as running:
        running.event("state")
        card.say(np.concatenate([said(QUESTION), said(QUESTION)]))
        card.wait_until(lambda: card.left_to_say < len(said(QUESTION)))
        card.unplug()
        done = running.end()
    assert done.code == 69
    (receipt,) = done.receipts
    assert (receipt["outcome"], receipt["reason"]) == ("stopped", "stopped")


def test_a_card_that_stands_still_is_told_and_ends_it(card, listening):
    with listening(card) as running:
        running.event("state")
        card.stall()
        done = running.end()
    assert done.code == 69
    assert "oyez: the microphone default cannot be used: it stands still" in done.err


def test_a_card_that_stands_still_does_not_keep_it_from_ending(card, listening):
    with listening(card) as running:
        running.event("state")
        card.stall()
        done, _ = running.stop(signal.SIGTERM)
    assert done.code == 0


def test_ctrl_c_while_the_device_speaks(card, listening, said):
    with listening(card) as running:
        running.event("state")
        card.say(said(QUESTION))
        card.wait_until(lambda: card.speaking)
        running.event("receipt")  # the first sample has left the card's buffer
        done, _ = running.stop(signal.SIGINT)
    assert done.code == 0
    assert [receipt["outcome"] for receipt in done.receipts] == ["answered"]


def test_a_text_is_said_aloud_to_its_end(card, product, reader):
    done = product.run("say", "--config", product.config, QUESTION, env=card.environment)
    assert (done.code, done.out, done.err) == (0, "", "")
    text = spoken(card, reader)
    assert wrong_words(QUESTION, text) < FEW
    assert scoring.words(text)[-1] == "hall"
