"""How well what was heard agrees with what was said: pure functions, no I/O.

Words: ``words`` brings two spellings of the same speech together (capitals, punctuation, "10" and
"ten", "Mr." and "mister") and nothing more: a wrong ending, a contraction or a compound that was
written apart counts as an error. Times: ``match`` joins what the pipeline cut with what was there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

# fmt: off
_ONES = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine",
    "ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen",
    "eighteen", "nineteen",
]
_TENS = [
    "zero", "ten", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety",
]
# fmt: on
_SCALES = ((10**9, "billion"), (10**6, "million"), (1000, "thousand"), (100, "hundred"))
_ORDINALS = {
    "one": "first",
    "two": "second",
    "three": "third",
    "five": "fifth",
    "eight": "eighth",
    "nine": "ninth",
    "twelve": "twelfth",
}
_SPOKEN = {"mr": "mister", "mrs": "missus", "dr": "doctor", "%": "percent", "&": "and"}
_TOKEN = re.compile(
    r"(?P<whole>[0-9]+(?:,[0-9]{3})*)(?:\.(?P<fraction>[0-9]+))?(?P<ordinal>st|nd|rd|th)?"
    r"|(?P<word>[^\W\d_]+(?:'[^\W\d_]+)*|[%&])"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WordErrors:
    """Counts over one reference text: WER is ``errors / words``."""

    words: int
    substituted: int
    deleted: int
    inserted: int

    @property
    def errors(self) -> int:
        """All three kinds together."""
        return self.substituted + self.deleted + self.inserted


@dataclass(frozen=True, slots=True, kw_only=True)
class Matching:
    """Which heard utterances belong to which true ones, by their indices.

    ``parts`` holds for each true one what was heard of it. ``pairs`` holds those that belong to
    each other alone; ``split`` the true ones that came in several pieces, ``merged`` the heard
    ones that span several true ones, ``missed`` the true ones that nothing was heard of, ``false``
    the heard ones that are no speech.
    """

    parts: tuple[tuple[int, ...], ...]
    pairs: tuple[tuple[int, int], ...]
    split: tuple[int, ...]
    merged: tuple[int, ...]
    missed: tuple[int, ...]
    false: tuple[int, ...]


def words(text: str) -> list[str]:
    """The words of a text, spelled one way: lower case, numbers in words, no punctuation."""
    spelled: list[str] = []
    for token in _TOKEN.finditer(text.lower().replace("\u2019", "'")):
        if word := token["word"]:
            spelled.append(_SPOKEN.get(word, word))
        else:
            spelled += _number_words(token["whole"], token["fraction"], token["ordinal"])
    return spelled


def word_errors(reference: str, heard: str) -> WordErrors:
    """The fewest words to substitute, delete and insert that turn the reference into ``heard``."""
    said, found = words(reference), words(heard)
    # Each cell: errors, substituted, deleted, inserted on the cheapest way to it.
    row = [(n, 0, 0, n) for n in range(len(found) + 1)]
    for deleted, word in enumerate(said, start=1):
        above, row = row, [(deleted, 0, deleted, 0)]
        for column, other in enumerate(found, start=1):
            wrong = int(word != other)
            swap, drop, add = above[column - 1], above[column], row[-1]
            row.append(
                min(
                    (swap[0] + wrong, swap[1] + wrong, swap[2], swap[3]),
                    (drop[0] + 1, drop[1], drop[2] + 1, drop[3]),
                    (add[0] + 1, add[1], add[2], add[3] + 1),
                )
            )
    _, substituted, deleted, inserted = row[-1]
    return WordErrors(words=len(said), substituted=substituted, deleted=deleted, inserted=inserted)


def rate(counts: Sequence[WordErrors]) -> float:
    """The word error rate over several texts: all errors by all words; NaN without any word."""
    total = sum(count.words for count in counts)
    return sum(count.errors for count in counts) / total if total else float("nan")


def rate_interval(
    counts: Sequence[WordErrors],
    than: Sequence[WordErrors] | None = None,
    *,
    seed: int = 0,
    draws: int = 2000,
) -> tuple[float, float]:
    """Where the true rate lies, 95 %: clips drawn anew, with repetition (percentile bootstrap).

    With ``than``, counts for the same clips in the same order, it is the difference of both rates
    that is judged, each draw taking the same clips on both sides.
    """
    drawn = np.random.default_rng(seed).integers(0, len(counts), (draws, len(counts)))
    errors = np.array([count.errors for count in counts])
    if than is not None:
        errors = errors - np.array([count.errors for count in than])
    total = np.array([count.words for count in counts])
    rates = errors[drawn].sum(axis=1) / np.maximum(total[drawn].sum(axis=1), 1)
    low, high = np.percentile(rates, [2.5, 97.5])
    return float(low), float(high)


def match(truth: Sequence[tuple[int, int]], heard: Sequence[tuple[int, int]]) -> Matching:
    """Join true and heard utterances (begin frame, frame after the end) by their overlap.

    Two belong together when they share more than half of the shorter one; a pre-roll that reaches
    back into the utterance before does not make it part of this one.
    """
    of_true: list[list[int]] = [[] for _ in truth]
    of_heard: list[list[int]] = [[] for _ in heard]
    for t, (true_begin, true_end) in enumerate(truth):
        for h, (begin, end) in enumerate(heard):
            shared = min(true_end, end) - max(true_begin, begin)
            if 2 * shared > min(true_end - true_begin, end - begin):
                of_true[t].append(h)
                of_heard[h].append(t)
    return Matching(
        parts=tuple(tuple(found) for found in of_true),
        pairs=tuple(
            (t, found[0])
            for t, found in enumerate(of_true)
            if len(found) == 1 and len(of_heard[found[0]]) == 1
        ),
        split=tuple(t for t, found in enumerate(of_true) if len(found) > 1),
        merged=tuple(h for h, found in enumerate(of_heard) if len(found) > 1),
        missed=tuple(t for t, found in enumerate(of_true) if not found),
        false=tuple(h for h, found in enumerate(of_heard) if not found),
    )


def _number_words(whole: str, fraction: str | None, ordinal: str | None) -> list[str]:
    spelled = _cardinal(int(whole.replace(",", "")))
    if fraction:
        spelled += ["point", *(_ONES[int(digit)] for digit in fraction)]
    if ordinal:
        last = spelled[-1]
        regular = last[:-1] + "ieth" if last.endswith("y") else last + "th"
        spelled[-1] = _ORDINALS.get(last, regular)
    return spelled


def _cardinal(number: int) -> list[str]:
    for scale, name in _SCALES:
        if number >= scale:
            rest = number % scale
            return [*_cardinal(number // scale), name, *(_cardinal(rest) if rest else [])]
    if number < len(_ONES):
        return [_ONES[number]]
    return [_TENS[number // 10], *([_ONES[number % 10]] if number % 10 else [])]
