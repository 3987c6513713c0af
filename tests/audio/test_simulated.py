"""The simulated room: questions from a voice, as a source like any other."""

from __future__ import annotations

import numpy as np
import pytest

from audio.sounds import buzz, pitch_hz
from oyez.audio.pcm import to_float
from oyez.audio.simulated import GAP_MS, LEAD_MS, TAIL_MS, simulated_room
from oyez.config import SimulationSettings
from oyez.errors import ConfigError
from oyez.messages import RATE_HZ
from workers.scripted import ScriptedVoice

VOICE_HZ = 22_050
QUESTION = to_float(buzz(500, VOICE_HZ))
QUIET = SimulationSettings(questions=("One?", "Two?"), snr_db=60, reverb_ms=0)


def heard(settings, voice):
    source = simulated_room(settings, voice)
    return np.frombuffer(source.read(10**7), "<i2"), source


def between(samples, begin_ms, end_ms):
    return to_float(samples[RATE_HZ * begin_ms // 1000 : RATE_HZ * end_ms // 1000])


def test_the_questions_are_asked_one_after_the_other_with_room_for_the_answers():
    voice = ScriptedVoice(QUESTION[:4_000], QUESTION[4_000:], rate_hz=VOICE_HZ)
    samples, source = heard(QUIET, voice)
    assert voice.texts == ["One?", "Two?"]
    assert source.stream.rate_hz == RATE_HZ
    length_ms = LEAD_MS + 500 + GAP_MS + 500 + TAIL_MS
    assert len(samples) == pytest.approx(RATE_HZ * length_ms // 1000, abs=RATE_HZ // 100)
    second_ms = LEAD_MS + 500 + GAP_MS
    loud = [between(samples, begin, begin + 500).std() for begin in (LEAD_MS, second_ms)]
    still = [between(samples, begin, begin + 500).std() for begin in (0, LEAD_MS + 600)]
    assert min(loud) > 100 * max(still)


def test_a_voice_of_any_rate_keeps_its_pitch():
    samples, _ = heard(QUIET, ScriptedVoice(QUESTION, rate_hz=VOICE_HZ))
    word = between(samples, LEAD_MS, LEAD_MS + 500)
    assert pitch_hz(word, RATE_HZ) == pytest.approx(pitch_hz(QUESTION, VOICE_HZ), rel=0.005)


def test_the_same_settings_give_the_same_sound_and_another_seed_another():
    first, again, other = (
        heard(SimulationSettings(questions=("One?",), seed=seed), ScriptedVoice(QUESTION))[0]
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_a_question_that_cannot_be_spoken_is_left_out():
    class Picky(ScriptedVoice):
        def speak(self, text, *, steady=False):
            assert steady
            return super().speak(text) if text != "..." else iter(())

    samples, _ = heard(SimulationSettings(questions=("...", "One?")), Picky(QUESTION))
    alone, _ = heard(SimulationSettings(questions=("One?",)), Picky(QUESTION))
    np.testing.assert_array_equal(samples, alone)


def test_a_room_in_which_nothing_can_be_asked_is_a_fault_of_the_configuration():
    with pytest.raises(ConfigError, match=r"simulation\.questions"):
        simulated_room(SimulationSettings(questions=("...",)), ScriptedVoice())
