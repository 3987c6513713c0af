"""The scoring of the bench, against what a person would say and against brute force."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import scoring


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("Ten of clubs.", "ten of clubs"),
        ("10 of clubs!", "ten of clubs"),
        ("The 21st of 3,456", "the twenty first of three thousand four hundred fifty six"),
        ("It's 19.5%", "it's nineteen point five percent"),
        ("the 12th, the 20th, the 100th", "the twelfth the twentieth the one hundredth"),
        ("Mr. Dashwood & Mrs. Dashwood", "mister dashwood and missus dashwood"),
        ("an ill-disposed \u201cman\u201d", "an ill disposed man"),
        ("don\u2019t", "don't"),
        ("at 7:30", "at seven thirty"),
        ("- [ ... ] *", ""),
        ("0 and 1000000", "zero and one million"),
        ("M\u00e4dchen caf\u00e9", "m\u00e4dchen caf\u00e9"),
        ("Turn on lamp2", "turn on lamp two"),
    ],
)
def test_spellings_of_the_same_speech_become_the_same_words(written, spoken):
    assert scoring.words(written) == spoken.split()
    assert scoring.words(spoken) == spoken.split()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("five five", "55"),
        ("meters", "meter"),
        ("do not", "don't"),
        ("nevermind", "never mind"),
        ("to", "two"),
    ],
)
def test_different_words_stay_different(one, other):
    assert scoring.words(one) != scoring.words(other)


@given(st.integers(0, 10**12 - 1))
def test_numbers_are_spelled_as_they_count(number):
    values = {word: value for value, word in enumerate(scoring._ONES)}
    values |= {word: 10 * value for value, word in enumerate(scoring._TENS) if value > 1}
    total = group = 0
    for word in scoring.words(str(number)):
        scale = {name: value for value, name in scoring._SCALES}.get(word)
        if scale is None:
            group += values[word]
        elif scale == 100:
            group *= 100
        else:
            total, group = total + group * scale, 0
    assert total + group == number


@given(st.text())
def test_any_text_becomes_words_and_those_are_left_as_they_are(text):
    once = scoring.words(text)
    assert scoring.words(" ".join(once)) == once


def test_errors_are_counted_by_their_kind():
    counts = scoring.word_errors("turn on the living room lamp", "turn the leaving room lamp now")
    assert counts == scoring.WordErrors(words=6, substituted=1, deleted=1, inserted=1)
    assert counts.errors == 3


sentences = st.lists(st.sampled_from(["a", "b", "c"]), max_size=5)


def fewest_edits(said, found):
    """By trying every way to keep a common subsequence in place."""
    best = max(len(said), len(found))
    for kept in range(min(len(said), len(found)) + 1):
        for here in itertools.combinations(range(len(said)), kept):
            for there in itertools.combinations(range(len(found)), kept):
                if all(said[a] == found[b] for a, b in zip(here, there, strict=True)):
                    cost, previous = 0, (-1, -1)
                    for place in [*zip(here, there, strict=True), (len(said), len(found))]:
                        cost += max(place[0] - previous[0], place[1] - previous[1]) - 1
                        previous = place
                    best = min(best, cost)
    return best


@given(said=sentences, found=sentences)
def test_the_errors_are_the_fewest_possible(said, found):
    counts = scoring.word_errors(" ".join(said), " ".join(found))
    assert counts.errors == fewest_edits(said, found)
    assert counts.words == len(said)
    assert len(said) - counts.deleted + counts.inserted == len(found)


def errors(wrong, of):
    return scoring.WordErrors(words=of, substituted=wrong, deleted=0, inserted=0)


def test_the_rate_weighs_each_word_and_not_each_text():
    assert scoring.rate([errors(1, 1), errors(0, 9)]) == pytest.approx(0.1)
    assert math.isnan(scoring.rate([]))


def test_the_interval_holds_the_rate_and_shrinks_with_more_clips():
    few = [errors(n % 3 == 0, 5) for n in range(9)]
    many = few * 30
    for counts in (few, many):
        low, high = scoring.rate_interval(counts)
        assert low < scoring.rate(counts) < high
    wide, narrow = (scoring.rate_interval(counts) for counts in (few, many))
    assert narrow[1] - narrow[0] < (wide[1] - wide[0]) / 3


def test_a_difference_of_pairs_is_surer_than_two_rates():
    one = [errors(n % 5, 10) for n in range(40)]
    other = [errors(n % 5 + 1, 10) for n in range(40)]
    assert scoring.rate_interval(other, one) == pytest.approx((0.1, 0.1))


def test_each_kind_of_mismatch_is_told_apart():
    truth = [(100, 200), (300, 400), (500, 600), (700, 800), (900, 1000)]
    heard = [(90, 210), (290, 340), (350, 410), (490, 810), (1100, 1150)]
    matching = scoring.match(truth, heard)
    assert matching.parts == ((0,), (1, 2), (3,), (3,), ())
    assert matching.pairs == ((0, 0),)
    assert matching.split == (1,)
    assert matching.merged == (3,)
    assert matching.missed == (4,)
    assert matching.false == (4,)


def test_a_pre_roll_over_the_end_of_the_last_utterance_joins_nothing():
    matching = scoring.match([(0, 100), (110, 210)], [(0, 102), (80, 212)])
    assert matching.pairs == ((0, 0), (1, 1))


spans = st.lists(st.integers(1, 50), max_size=12).map(
    lambda steps: [(sum(steps[:n]), sum(steps[: n + 1])) for n in range(0, len(steps) - 1, 2)]
)


@given(truth=spans, heard=spans)
def test_every_utterance_is_accounted_for_on_both_sides(truth, heard):
    matching = scoring.match(truth, heard)
    mirrored = scoring.match(heard, truth)
    assert mirrored.missed == matching.false
    assert mirrored.split == matching.merged
    assert sorted((t, h) for h, t in mirrored.pairs) == sorted(matching.pairs)
    seen = {t for t, _ in matching.pairs} | set(matching.split) | set(matching.missed)
    if not matching.merged:
        assert seen == set(range(len(truth)))
    assert scoring.match(truth, truth).pairs == tuple((n, n) for n in range(len(truth)))
