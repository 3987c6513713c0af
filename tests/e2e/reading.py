"""How well a voice can be understood: it says the same text a little differently each time."""

from __future__ import annotations

from bench import scoring

FEW = 0.3
"""So many words of a synthetic voice the smallest recognizer may get wrong; garbage is above 1."""


def wrong_words(said: str, found: str) -> float:
    """The word error rate of one text."""
    return scoring.rate([scoring.word_errors(said, found)])
