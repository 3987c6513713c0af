"""What every voice in ``engines.SYNTHESIZERS`` has in common: ``engines.Synthesizer``."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from oyez.config import Settings
from oyez.speech import engines

MODELS = {"piper": "en_US-joe-medium"}
"""With which voice each engine is tried: whoever adds an engine adds one here."""
TEXT = "The museum opens at nine. Come in!"

pytestmark = pytest.mark.models


def make(engine, model_path, threads, volume_db=0.0):
    settings = replace(Settings().voice, engine=engine, volume_db=volume_db)
    return engines.make_synthesizer(settings, model_path(MODELS[engine]), threads)


@pytest.fixture(scope="module", params=sorted(engines.SYNTHESIZERS))
def engine(request):
    return request.param


@pytest.fixture(scope="module")
def voice(engine, model_path, threads):
    return make(engine, model_path, threads)


def spoken(voice, text, *, steady=True):
    """All pieces, each looked at."""
    pieces = list(voice.speak(text, steady=steady))
    for piece in pieces:
        assert piece.dtype == np.float32
        assert piece.ndim == 1
        assert np.isfinite(piece).all()
        assert np.abs(piece).max(initial=0) <= 1
    return np.concatenate([np.zeros(0, np.float32), *pieces])


def test_each_voice_has_a_model_to_be_tried_with():
    assert set(MODELS) == set(engines.SYNTHESIZERS)


def test_a_sentence_is_audible_and_about_as_long_as_it_takes_to_say_it(voice):
    sound = spoken(voice, TEXT)
    assert type(voice.rate_hz) is int
    assert 1 < len(sound) / voice.rate_hz < 6
    assert np.sqrt(np.mean(sound**2)) > 0.01


def test_a_longer_text_takes_longer(voice):
    assert len(spoken(voice, TEXT + " " + TEXT)) > 1.5 * len(spoken(voice, TEXT))


@pytest.mark.parametrize("text", ["", " ", "...", "[[", "]]", "😀", "\x00\x1b\n\t", "- – —"])  # noqa: RUF001
def test_a_text_that_says_nothing_gives_nothing(voice, text):
    assert list(voice.speak(text)) == []


@pytest.mark.parametrize(
    "text",
    [
        "日本",
        "Ça va, naïve Zoë?",
        "Здравствуйте",
        "a" * 200,
        "[[ h @ l oU ]] [[[x]]]",
        "21 %, 3.14 & <b>x</b> {text} \\n",
        "one\ntwo\x00three\udc80",
        "😀 hello 😀",
        "7",
        "I",
        "1e400",
    ],
)
def test_odd_texts_do_no_harm(voice, text):
    spoken(voice, text)


def test_brackets_are_no_order_to_speak_phonemes(voice):
    # As phonemes this would be a short "hello"; the letters take longer.
    assert len(spoken(voice, "[[ h @ l oU ]]")) == len(spoken(voice, "[ [ h @ l oU ] ]"))


def test_a_steady_text_gives_the_same_samples_also_after_others_in_between(voice):
    first = spoken(voice, TEXT)
    spoken(voice, "Something else.")
    spoken(voice, TEXT, steady=False)
    np.testing.assert_array_equal(spoken(voice, TEXT), first)


def test_a_text_that_is_left_in_the_middle_does_not_disturb_the_next(voice):
    first = spoken(voice, TEXT)
    left = voice.speak(TEXT + " " + TEXT, steady=True)
    next(left)
    left.close()
    np.testing.assert_array_equal(spoken(voice, TEXT), first)


def test_a_lively_text_is_spoken_too(voice):
    assert len(spoken(voice, TEXT, steady=False)) > voice.rate_hz


def test_the_volume_is_in_db(engine, voice, model_path, threads):
    softer = make(engine, model_path, threads, volume_db=-20.0)
    np.testing.assert_allclose(spoken(softer, "Hello."), spoken(voice, "Hello.") / 10, atol=1e-4)


def test_a_volume_too_high_clips_and_goes_no_further(engine, model_path, threads):
    assert np.abs(spoken(make(engine, model_path, threads, volume_db=12.0), TEXT)).max() == 1
