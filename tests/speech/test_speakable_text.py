"""What a voice is given to say: one line, no tricks, and nothing where nothing can be said."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oyez.speech.tts_piper import speakable_text


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
