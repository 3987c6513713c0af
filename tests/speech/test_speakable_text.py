"""What a voice is given to say: one line, no tricks, and nothing where nothing can be said."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oyez.speech.tts_piper import PASSAGE_LETTERS, passages, speakable_text


@pytest.mark.parametrize(
    ("text", "speakable"),
    [
        ("Hello there.", "Hello there."),
        ("  two\n lines\tand a tab ", "two lines and a tab"),
        ("bell\x07 and\x00 zero", "bell and zero"),
        ("zero\u200bwidth", "zero width"),
        ("lone \udc80 surrogate", "lone surrogate"),
        ("[[ h @ l oU ]]", "[ [ h @ l oU ] ]"),
        ("[[[ h ]]]", "[ [ [ h ] ] ]"),
        ("21 %", "21 %"),
        ("日本", "日本"),
        ("", ""),
        ("...", ""),
        ("[[", ""),
        ("😀 ~ ♪", ""),
        (" \n\t\x00", ""),
    ],
)
def test_a_text_becomes_one_line_that_can_be_said(text, speakable):
    assert speakable_text(text) == speakable


@given(text=st.text(max_size=40) | st.text(alphabet="[]a \x00", max_size=12))
def test_no_control_character_and_no_phoneme_bracket_is_left(text):
    speakable = speakable_text(text)
    assert not any(unicodedata.category(letter)[0] == "C" for letter in speakable)
    assert "[[" not in speakable
    assert "]]" not in speakable
    assert speakable == "" or any(letter.isalnum() for letter in speakable)
    assert {c for c in text if c.isalnum()} == {c for c in speakable if c.isalnum()}


@given(st.text(alphabet="ab .!?。", max_size=3000))
def test_passages_are_the_whole_text_in_order_and_none_is_long(text):
    plain = speakable_text(text)
    parts = list(passages(plain))
    assert "".join(parts).replace(" ", "") == plain.replace(" ", "")
    assert all(0 < len(part) <= 2 * PASSAGE_LETTERS for part in parts)


def test_an_answer_of_usual_length_is_one_passage():
    assert list(passages("Yes. The museum opens at ten.")) == ["Yes. The museum opens at ten."]


def test_a_long_text_is_cut_after_a_sentence():
    parts = list(passages("This is one sentence of many. " * 40))
    assert len(parts) > 1
    assert all(part.endswith("many.") for part in parts)


@pytest.mark.parametrize(("word", "longest"), [("word ", 600), ("x", 600), ("yes. ", 305)])
def test_a_text_is_cut_at_a_space_or_where_it_must_be_if_it_has_no_sentences(word, longest):
    text = speakable_text(word * 500)
    parts = list(passages(text))
    assert max(map(len, parts)) <= longest
    assert all(part.endswith(word.strip()) for part in parts)
