"""The fixtures of these tests."""

from __future__ import annotations

import pytest

from alsa.card import Offer
from alsa_card import card_library, rack
from card.chain import pattern

__all__ = ["card_library", "plain", "rack"]

MONO_16K = Offer(rates=(16000,), channels=(1,))
STEREO_48K = Offer(rates=(48000,), channels=(2,))


@pytest.fixture
def plain(rack):
    """A card with microphone and speaker, where each sample of the room tells its place."""
    card = rack.card("Mic", capture=MONO_16K, playback=STEREO_48K)
    card.goes_on = 1
    card.play(pattern(), rate=16000, loops=True)
    return rack.plug(card)
