"""Piper: what its contract test does not show."""

from __future__ import annotations

import pytest

from oyez.config import Settings
from oyez.errors import EngineError
from oyez.speech import engines

SETTINGS = Settings().voice

pytestmark = pytest.mark.models


@pytest.fixture(scope="module")
def voice(model_path, threads):
    return engines.make_synthesizer(SETTINGS, model_path(SETTINGS.model), threads)


def test_each_sentence_is_given_as_soon_as_it_is_made(voice):
    assert len(list(voice.speak("One. Two. Three."))) == 3


def test_a_failure_of_the_library_is_an_error_of_the_engine(voice, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("out of memory")

    monkeypatch.setattr(voice._voice, "phoneme_ids_to_audio", fail)
    with pytest.raises(EngineError, match="Piper failed: out of memory"):
        list(voice.speak("Hello."))
