"""The fixtures of these tests."""

from __future__ import annotations

from alsa_card import card_library, pulse, pulse_server, rack

__all__ = ["card_library", "pulse", "pulse_server", "rack"]
