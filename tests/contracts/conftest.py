"""Models, and what stands in for a card."""

from __future__ import annotations

from audio.cards import null_card
from speech.model_files import model_path

__all__ = ["model_path", "null_card"]
