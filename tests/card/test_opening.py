"""Finding cards in /proc/asound, and what is asked of them and granted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from alsa.card import Offer, Range
from card.chain import WISH
from oyez.audio import alsa, cards
from oyez.audio.cards import Direction, resolve
from oyez.audio.pcm import SampleFormat

STEREO_48K = Offer(rates=(48000,), channels=(2,))
CAPTURE, PLAYBACK = Direction.CAPTURE, Direction.PLAYBACK


def opened(rack, offer, **wish):
    """A card with this offer, opened; it is closed at once, what was granted stays to be seen."""
    rack.plug(rack.card("Mic", capture=offer))
    handle = alsa.open_device("hw:CARD=Mic,DEV=0", CAPTURE, replace(WISH, **wish))
    handle.close()
    return handle


def test_cards_are_found_by_id_whatever_their_index(rack):
    rack.plug(rack.card("Box", name="Loud Box", playback=STEREO_48K), index=1)
    rack.plug(rack.card("Mic", name="USB Microphone", capture=Offer()), index=4)
    known = cards.cards(rack.proc)
    assert [(card.index, card.id, card.name) for card in known] == [
        (1, "Box", "Loud Box"),
        (4, "Mic", "USB Microphone"),
    ]
    for name in ("auto", "Mic", "microphone", "USB Micro"):
        assert resolve(name, CAPTURE, known) == "hw:CARD=Mic,DEV=0"
    assert resolve("auto", PLAYBACK, known) == "hw:CARD=Box,DEV=0"
    assert resolve("Mic", PLAYBACK, known) is None
    assert resolve("plughw:CARD=Any,DEV=3", CAPTURE, known) == "plughw:CARD=Any,DEV=3"


def test_without_any_card_there_is_none(rack, tmp_path):
    assert cards.cards(rack.proc) == []
    assert cards.cards(tmp_path / "missing") == []
    assert resolve("auto", CAPTURE, []) is None


def test_what_was_not_granted_is_told_with_both_figures(rack):
    handle = opened(
        rack, Offer(rates=(88200,), channels=(2,), period_frames=(341,)), rate_hz=96000, channels=1
    )
    assert (handle.stream.rate_hz, handle.stream.channels) == (88200, 2)
    assert handle.complaints[:3] == (
        "rate: 96000 Hz was asked for, 88200 Hz is granted",
        "channels: 1 was asked for, 2 is granted",
        "period: 1920 frames (20 ms) was asked for, 341 frames (3.866 ms) is granted",
    )


def test_what_was_granted_as_asked_is_no_complaint(rack):
    assert opened(rack, STEREO_48K).complaints == ()


@pytest.mark.parametrize("frames", [128, 341])
def test_much_smaller_periods_make_no_shorter_buffer(rack, frames):
    handle = opened(rack, Offer(rates=(48000,), period_frames=(frames,)), periods=8)
    assert handle.period_frames == frames
    assert handle.buffer_frames >= 48 * 20 * 8


def test_a_buffer_that_cannot_be_larger_is_taken_as_it_is(rack):
    offer = Offer(rates=(16000,), buffer_frames=Range(lowest=32, highest=1024))
    assert opened(rack, offer).buffer_frames <= 1024


@pytest.mark.parametrize(
    ("name", "sample_format"),
    [
        ("S16_LE", SampleFormat.S16),
        ("S24_LE", SampleFormat.S24),
        ("S24_3LE", SampleFormat.S24_3),
        ("S32_LE", SampleFormat.S32),
        ("FLOAT_LE", SampleFormat.FLOAT),
    ],
)
def test_the_format_that_is_offered_is_taken(rack, name, sample_format):
    handle = opened(rack, Offer(formats=(name,)))
    assert handle.stream.sample_format is sample_format
    assert handle.complaints == ()
