"""What is speech and what an invention: decisions on a decoder's text and on its sound."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from oyez.messages import RATE_HZ
from oyez.speech import honesty

WORDS = st.lists(st.sampled_from(["go", "left", "now", "and", "then"]), max_size=12)


@pytest.mark.parametrize(("seconds", "tokens"), [(0, 6), (0.5, 9), (1, 13), (20, 146)])
def test_a_token_budget_grows_with_the_sound_and_has_some_to_spare(seconds, tokens):
    assert honesty.token_budget(int(seconds * RATE_HZ)) == tokens


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hello", "hello"),
        ("  hello \n there ", "hello there"),
        ("[BLANK_AUDIO]", ""),
        (" (wind blowing) ", ""),
        ("*sighs*", ""),
        ("♪♪ la ♪", "la"),
        ("[music] hello (laughs) there", "hello there"),
        ("hello [unclosed", "hello [unclosed"),
        ("...", ""),
        ("? ! -", ""),
        ("", ""),
        ("7.", "7."),
        ("Ça va ?", "Ça va ?"),
        ("日本", "日本"),
    ],
)
def test_sounds_in_brackets_are_no_words(text, words):
    assert honesty.without_sounds(text) == words


@given(text=st.text(max_size=60))
def test_what_is_left_of_a_text_is_words_or_nothing_and_stays_so(text):
    words = honesty.without_sounds(text)
    assert words == "" or any(letter.isalnum() for letter in words)
    assert words == words.strip()
    assert honesty.without_sounds(words) == words


@pytest.mark.parametrize(
    "text",
    [
        "turn on the light turn on the light",
        "so it goes on and on it goes on and on and out",
        "no no no no",
        "the cat the cat the cat the cat",
        "Go left now. go, LEFT now!",
        "and then you you you you go",
    ],
)
def test_a_text_that_repeats_itself_is_a_loop(text):
    assert honesty.loops(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        "no no no",
        "bye bye",
        "the cat the cat the cat",
        "ask not what your country can do for you ask what you can do for your country",
        "turn on the light and turn on the light",
        "... ... ... ... ...",
    ],
)
def test_what_people_say_is_none(text):
    assert not honesty.loops(text)


@given(before=WORDS, run=WORDS.filter(lambda run: len(run) >= 3), after=WORDS)
def test_three_words_or_more_that_follow_themselves_are_found_wherever_they_are(before, run, after):
    assert honesty.loops(" ".join([*before, *run, *run, *after]))


@given(words=st.lists(st.text("abcdef", min_size=3, max_size=6), max_size=30, unique=True))
def test_words_that_are_all_different_never_loop(words):
    assert not honesty.loops(" ".join(words))


@pytest.mark.parametrize(
    "samples",
    [
        np.zeros(0, np.int16),
        np.zeros(RATE_HZ, np.int16),
        np.full(RATE_HZ, -32_768, np.int16),
        np.tile(np.array([-2, 0, 1, 2], np.int16), 4_000),
    ],
)
def test_nothing_a_constant_and_the_noise_of_the_last_bit_are_no_sound(samples):
    assert honesty.soundless(samples)


@given(samples=hnp.arrays(np.int16, st.integers(1, 50)))
def test_samples_that_are_further_apart_are_a_sound(samples):
    apart = max(samples.tolist()) - min(samples.tolist())
    assert honesty.soundless(samples) == (apart <= honesty.SOUNDLESS_STEPS)
