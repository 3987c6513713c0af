"""A card for the tests of sound; and hypothesis is in no hurry."""

from __future__ import annotations

from hypothesis import settings

from audio.cards import null_card

__all__ = ["null_card"]

# A busy machine must not fail a test.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
