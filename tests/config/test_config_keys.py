"""Unknown keys, sections that are none, and values that contradict each other."""

from __future__ import annotations

import pytest

from oyez.config import Settings, parse
from oyez.errors import ConfigError


def problems_of(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse(text, "oyez.yaml")
    return caught.value.problems


def problem_of(text: str) -> str:
    (problem,) = problems_of(text)
    return problem


def settings_of(text: str) -> Settings:
    return parse(text, "oyez.yaml").settings


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "vad: {agressivness: 1}",
            "1:7: vad.agressivness: unknown key, did you mean aggressiveness?",
        ),
        ("VAD: {}", "1:1: VAD: unknown key, did you mean vad?"),
        ("endpointing: {Hangover-MS: 5}", "Hangover-MS: unknown key, did you mean hangover_ms?"),
        ("endpointing: {hangover: 5}", "hangover: unknown key, did you mean hangover_ms?"),
        ("endpointing: {hangover_s: 1}", "hangover_s: unknown key, did you mean hangover_ms?"),
        ("hangover_ms: 5", "1:1: hangover_ms: unknown key, is it endpointing.hangover_ms?"),
        ("vad: {Hangover_ms: 5}", "vad.Hangover_ms: unknown key, is it endpointing.hangover_ms?"),
        ("vad: {langauge: de}", "vad.langauge: unknown key, is it transcription.language?"),
        ("vad: {voice: {}}", "vad.voice: unknown key, is it voice?"),
        (
            "audio: {device: x}",
            "audio.device: unknown key, is it audio.capture.device or audio.playback.device?",
        ),
        (
            "engine: x",
            "engine: unknown key, is it vad.engine, transcription.engine or voice.engine?",
        ),
        ("vad.engine: webrtc", "vad.engine: unknown key, write the section and the key on a line"),
        (
            "vad: {xyz: 1}",
            "1:7: vad.xyz: unknown key, allowed are the keys engine, aggressiveness",
        ),
        ('"a\\nb": 1', r"1:1: a\nb: unknown key, allowed are the keys audio, simulation"),
    ],
)
def test_an_unknown_key_is_refused_with_the_one_that_was_probably_meant(text, said):
    assert said in problem_of(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- vad\n", "1:1: a list stands where keys are wanted, remove the dashes"),
        ("just words\n", "1:1: a value stands where keys are wanted, write key: value with"),
        ("vad: webrtc\n", "1:6: vad: a value stands where keys are wanted, write key: value"),
        ("vad:\n  - engine: webrtc\n", "2:3: vad: a list stands where keys are wanted, remove"),
        (
            "endpointing:\n  hangover_ms:500\n",
            (
                "2:3: endpointing: a value stands where keys are wanted, write key: value with a "
                "space between, allowed are the keys pre_roll_ms, hangover_ms, min_speech_ms, "
            ),
        ),
    ],
)
def test_a_section_that_is_none_is_refused(text, said):
    assert problem_of(text).startswith(f"oyez.yaml:{said}")


@pytest.mark.parametrize(
    "text",
    [
        "!!map {vad: {}}",
        "!!str vad: {engine: silero}",
        "vad: !!map {engine: silero}",
        "vad: {aggressiveness: !!int 9}",
        "answer: !!seq [{echo: ''}]",
        "answer: [!!map {echo: ''}]",
        "simulation: {questions: [!!int 9]}",
    ],
)
def test_a_tagged_value_is_refused_once_and_not_looked_into(text):
    assert "tags are not supported, remove !!" in problem_of(text)


def test_a_name_with_a_line_break_does_not_break_the_message():
    with pytest.raises(ConfigError) as caught:
        parse("x: 1", "a\nb\udcff.yaml")
    assert caught.value.problems[0].startswith("a\\nb\\udcff.yaml:1:1: x: unknown key")


# Contradictions


@pytest.mark.parametrize("language", ["de", "auto", "no"])
def test_a_language_is_refused_with_a_model_that_knows_english_alone(language):
    assert problem_of(f"transcription:\n  language: {language}\n") == (
        f"oyez.yaml:2:13: transcription.language: {language} needs a multilingual model, but "
        "tiny.en-q5_1 knows English alone, set transcription.model to base-q5_1"
    )


@pytest.mark.parametrize("model", ["tiny.en", "tiny.en-q8_0", "base.en-q5_1"])
def test_every_english_model_is_known_by_its_name(model):
    text = f"transcription: {{model: {model}, language: fr}}"
    assert f"{model} knows English alone" in problem_of(text)


@pytest.mark.parametrize("language", ["en", "de", "auto"])
def test_a_multilingual_model_takes_every_language(language):
    settings_of(f"transcription: {{model: base-q5_1, language: {language}}}")


def test_an_utterance_must_have_room_for_what_it_is_made_of():
    text = "endpointing: {pre_roll_ms: 1000, hangover_ms: 1000, max_utterance_s: 2}"
    assert problem_of(text) == (
        "oyez.yaml:1:70: endpointing.max_utterance_s: 2 s is less than pre_roll_ms, "
        "min_speech_ms and hangover_ms together (2120 ms), so no utterance could end in silence"
    )
    settings_of(text.replace("hangover_ms: 1000", "hangover_ms: 880"))


def test_a_refused_value_is_not_told_to_contradict_another():
    text = "endpointing: {pre_roll_ms: 2000, hangover_ms: 0.6, max_utterance_s: 2}"
    assert "hangover_ms: 0.6 is too small" in problem_of(text)


def test_contradictions_are_told_along_with_the_other_mistakes():
    assert len(problems_of("transcription: {language: de, threads: 0}")) == 2
