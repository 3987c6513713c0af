"""Is this text speech, or an invention? Pure decisions on what a decoder gave.

A recognizer that is shown too little context, or no speech at all, does not fall silent: it
repeats itself, fills its token budget, or writes down a sound in brackets.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from oyez.messages import RATE_HZ

if TYPE_CHECKING:
    from oyez.messages import Pcm16

TOKENS_PER_SECOND = 7
"""The fastest speech stays under this many tokens a second; measured on read sentences."""
TOKENS_SPARE = 6
"""Besides: a short word may take several tokens, and timestamps count too."""
MIN_PROBABILITY = 0.5
"""A mean token probability below this was wrong more often than right at short contexts."""
SOUNDLESS_STEPS = 4
"""Samples that stay within so many of 65,535 steps hold no words: of recordings that were turned
down, those that filled eight were read wrongly or not at all, and those that filled four not."""
LOOP_WORDS = 3
"""So many words must come back to make a loop, or one word so many times in a row plus one."""

_SOUNDS = re.compile(r"\[[^\]]*\]|\([^)]*\)|\*[^*]*\*|[♪♫]+")
_SPACE = re.compile(r"\s+")


def token_budget(frames: int) -> int:
    """How many tokens ``frames`` of 16 kHz sound can hold at most."""
    return int(frames / RATE_HZ * TOKENS_PER_SECOND) + TOKENS_SPARE


def soundless(samples: Pcm16) -> bool:
    """Whether int16 [frames] hold no sound: nothing, a dead microphone, or its last bit's noise.

    A recognizer that scales what it gets to one loudness reads "you" out of digital silence.
    """
    return not len(samples) or int(samples.max()) - int(samples.min()) <= SOUNDLESS_STEPS


def without_sounds(text: str) -> str:
    """The text without bracketed sounds like ``[BLANK_AUDIO]``, ``(music)`` or ``♪``.

    People do not speak brackets. What has no letter or digit left is no text at all.
    """
    words = _SPACE.sub(" ", _SOUNDS.sub(" ", text)).strip()
    return words if any(letter.isalnum() for letter in words) else ""


def loops(text: str) -> bool:
    """Whether the text repeats itself as decoders do and people do not.

    True when a run of three words or more follows itself at once, or one or two words
    follow themselves at least four times.
    """
    words = [re.sub(r"\W+", "", word).casefold() for word in text.split()]
    words = [word for word in words if word]
    for length in range(1, len(words) // 2 + 1):
        times = 2 if length >= LOOP_WORDS else LOOP_WORDS + 1
        for start in range(len(words) - length * times + 1):
            first = words[start : start + length]
            if all(
                words[start + length * n : start + length * (n + 1)] == first
                for n in range(1, times)
            ):
                return True
    return False
