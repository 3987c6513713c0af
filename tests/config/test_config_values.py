"""What each kind of value takes and refuses, in the words that a person reads."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

from oyez import places
from oyez.config import EchoAnswer, EndpointingSettings, ModelsSettings, Settings, parse
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


@pytest.mark.parametrize("text", ["", "# nothing\n", "\ufeff\r\n", "---\n", "{}", "null\n"])
def test_a_file_with_nothing_in_it_gives_every_default(text):
    loaded = parse(text, "oyez.yaml")
    assert loaded.settings == Settings()
    assert set(loaded.origins.values()) == {"default"}


def test_a_section_whose_keys_are_all_commented_out_has_its_defaults():
    assert settings_of("endpointing:\n  # hangover_ms: 500\nvad:\n") == Settings()


def test_what_the_file_sets_is_set_and_its_line_is_the_origin():
    loaded = parse("endpointing:\n  pre_roll_ms: 300\n\n  hangover_ms: 700\n", "my.yaml")
    assert loaded.settings.endpointing == EndpointingSettings(pre_roll_ms=300, hangover_ms=700)
    assert loaded.origins["endpointing.pre_roll_ms"] == "my.yaml:2"
    assert loaded.origins["endpointing.hangover_ms"] == "my.yaml:4"
    assert loaded.origins["endpointing.min_speech_ms"] == "default"


def test_settings_cannot_be_changed_after_loading():
    with pytest.raises(FrozenInstanceError):
        settings_of("").vad.aggressiveness = 3  # type: ignore[misc]


def test_all_mistakes_are_told_at_once_in_the_order_of_the_file():
    text = (
        "vad: {engine: silero, agressiveness: 3}\n"
        "endpointing:\n"
        "  hangover_ms: 0.6\n"
        "  hangover_ms: 500\n"
        "journal: {log_transcripts: off}\n"
        "extra: &x 1\n"
    )
    starts = [problem.split(": ")[:2] for problem in problems_of(text)]
    assert starts == [
        ["oyez.yaml:1:15", "vad.engine"],
        ["oyez.yaml:1:23", "vad.agressiveness"],
        ["oyez.yaml:3:16", "endpointing.hangover_ms"],
        ["oyez.yaml:4:3", "endpointing.hangover_ms"],
        ["oyez.yaml:5:28", "journal.log_transcripts"],
        ["oyez.yaml:6:1", "extra"],
        ["oyez.yaml:6:8", "extra"],
    ]


# Numbers


@pytest.mark.parametrize("value", ["500", "500.0", "5e2", "+500", "500."])
def test_a_whole_number_may_be_written_in_any_decimal_way(value):
    hangover_ms = settings_of(f"endpointing: {{hangover_ms: {value}}}").endpointing.hangover_ms
    assert hangover_ms == 500
    assert isinstance(hangover_ms, int)


@pytest.mark.parametrize("value", [200, 3000])
def test_the_ends_of_a_range_belong_to_it(value):
    settings = settings_of(f"endpointing: {{hangover_ms: {value}}}")
    assert settings.endpointing.hangover_ms == value


def test_a_number_with_a_fraction_is_taken_where_no_whole_one_is_meant():
    assert settings_of("voice: {volume_db: -6.5}").voice.volume_db == -6.5


def test_minus_zero_is_zero():
    assert str(settings_of("voice: {volume_db: -0.0}").voice.volume_db) == "0.0"


RANGE = "allowed is a whole number from 200 to 3000 ms"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("0.6", f"0.6 is too small, {RANGE}; did you mean 600?"),
        ("1", f"1 is too small, {RANGE}; did you mean 1000?"),
        ("0.0006", f"0.0006 is too small, {RANGE}"),
        ("199", f"199 is too small, {RANGE}"),
        ("3001", f"3001 is too large, {RANGE}"),
        ("500.5", f"500.5 is not whole, {RANGE}"),
        ("-500", f"-500 is too small, {RANGE}"),
        ("500ms", f"500ms has a unit, {RANGE}; the key's name says ms already, write 500"),
        ("500 MS", f"500 MS has a unit, {RANGE}; the key's name says ms already, write 500"),
        ("0.5s", f"0.5s has a unit, {RANGE}; the key's name says ms already, write 500"),
        ("99s", f"99s has a unit, {RANGE}; write a number alone"),
        ("5dB", f"5dB has a unit, {RANGE}; write a number alone"),
        ('"500"', f'"500" is text, {RANGE}; remove the quotes: 500'),
        ('"a"', f'"a" is text, {RANGE}'),
        (".nan", f".nan is not finite, {RANGE}"),
        ("-.Inf", f"-.Inf is not finite, {RANGE}"),
        ("1e999", f"1e999 is not finite, {RANGE}"),
        ("0500", f"0500 begins with a zero, {RANGE}; did you mean 500?"),
        ("0x1F4", f"0x1F4 is not a number, {RANGE}"),
        ("8:20", f"8:20 is not a number, {RANGE}"),
        ("1_000", f"1_000 is not a number, {RANGE}"),
        ("0,6", f"0,6 is not a number, {RANGE}"),
        ("\u0665\u0660", f"\u0665\u0660 is not a number, {RANGE}"),
        ("true", f"true is not a number, {RANGE}"),
        ("fast", f"fast is not a number, {RANGE}"),
        ("2024-01-01", f"2024-01-01 is not a number, {RANGE}"),
        ("[500]", f"a list stands where one value is wanted, {RANGE}"),
        ("{a: 500}", f"keys stand where one value is wanted, {RANGE}"),
    ],
)
def test_a_wrong_number_of_milliseconds_is_refused_with_what_was_probably_meant(value, said):
    text = f"endpointing:\n  hangover_ms: {value}\n"
    assert problem_of(text) == f"oyez.yaml:2:16: endpointing.hangover_ms: {said}"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("20000", "20000 is too large, allowed is a number from 2 to 25 s; did you mean 20?"),
        ("20s", "the key's name says s already, write 20"),
        ("20000ms", "the key's name says s already, write 20"),
        ("2500 ms", "the key's name says s already, write 2.5"),
    ],
)
def test_milliseconds_where_seconds_are_meant_are_noticed(value, said):
    assert problem_of(f"endpointing: {{max_utterance_s: {value}}}").endswith(said)


@pytest.mark.parametrize("value", ["-6dB", "-6 db", "-6DB"])
def test_decibels_are_not_written_behind_the_number(value):
    said = problem_of(f"voice: {{volume_db: {value}}}")
    assert said.endswith("the key's name says dB already, write -6")


def test_a_pre_roll_in_seconds_is_noticed_though_it_is_in_the_range():
    said = problem_of("endpointing: {pre_roll_ms: 0.4}")
    assert "0.4 is not whole" in said
    assert said.endswith("did you mean 400?")


def test_a_key_without_a_unit_takes_no_unit_for_one():
    said = problem_of("transcription: {threads: 4s}")
    assert said.endswith("allowed is auto, or a whole number from 1 to 64; write a number alone")


@pytest.mark.parametrize("value", ["", " ~", " null"])
def test_a_key_without_a_value_is_refused_with_its_default(value):
    said = problem_of(f"endpointing:\n  hangover_ms:{value}\n")
    assert said.endswith(
        "endpointing.hangover_ms: no value is given, remove the line to have the default, 500, "
        "or give a whole number from 200 to 3000 ms"
    )


# Booleans


@pytest.mark.parametrize(("value", "meant"), [("true", True), ("false", False)])
def test_true_and_false_are_the_booleans(value, meant):
    loaded = settings_of(f"journal: {{log_transcripts: {value}}}")
    assert loaded.journal.log_transcripts is meant


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("yes", "yes is no boolean, allowed is true or false; did you mean true?"),
        ("on", "on is no boolean, allowed is true or false; did you mean true?"),
        ("True", "True is no boolean, allowed is true or false; did you mean true?"),
        ("no", "no is no boolean, allowed is true or false; did you mean false?"),
        ("Off", "Off is no boolean, allowed is true or false; did you mean false?"),
        ("0", "0 is no boolean, allowed is true or false; did you mean false?"),
        ('"off"', '"off" is text, allowed is true or false; remove the quotes: false'),
        ("'true'", '"true" is text, allowed is true or false; remove the quotes: true'),
        ('"maybe"', '"maybe" is text, allowed is true or false'),
        ("2", "2 is no boolean, allowed is true or false"),
    ],
)
def test_no_other_word_is_a_boolean_and_no_quoted_one(value, said):
    text = f"journal: {{log_transcripts: {value}}}"
    assert problem_of(text) == f"oyez.yaml:1:28: journal.log_transcripts: {said}"


# Text, choices and auto


def test_the_language_no_is_norwegian():
    settings = settings_of("transcription: {language: no, model: base-q5_1}")
    assert settings.transcription.language == "no"


@pytest.mark.parametrize("value", ["off", "yes", "USB Audio", "hw:1,0", "12:30", "Línea 2", "on"])
def test_a_plain_word_stays_text(value):
    assert settings_of(f"audio: {{capture: {{device: '{value}'}}}}").audio.capture.device == value
    block = f"audio:\n  capture:\n    device: {value}\n"
    assert settings_of(block).audio.capture.device == value


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("2", '2 is a number, allowed is .*; as text it needs quotes: "2"'),
        ("1e3", '1e3 is a number, allowed is .*; as text it needs quotes: "1e3"'),
        (".inf", '.inf is a number, allowed is .*; as text it needs quotes: ".inf"'),
        ("true", 'true is a boolean, allowed is .*; as text it needs quotes: "true"'),
        ("True", 'True is a boolean, allowed is .*; as text it needs quotes: "True"'),
        ('""', "an empty text, allowed is"),
        ('"  "', "an empty text, allowed is"),
        ('"a\\nb"', r'"a\\nb" holds a line break or another control character'),
        ('"a\\0b"', r'"a\\x00b" holds a line break or another control character'),
        ('"\\ud800"', r'"\\ud800" holds a line break or another control character'),
    ],
)
def test_a_text_that_is_none_is_refused(value, said):
    with pytest.raises(ConfigError, match=said):
        parse(f"voice: {{model: {value}}}", "oyez.yaml")


def test_a_text_block_may_hold_a_question():
    text = "simulation:\n  questions:\n    - >\n      What time\n      is it?\n"
    assert settings_of(text).simulation.questions == ("What time is it?",)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "audio: {echo: gates}",
            (
                "1:15: audio.echo: gates is not among the choices, allowed is gate or external; "
                "did you mean gate?"
            ),
        ),
        (
            "audio: {backend: PortAudio}",
            (
                "1:18: audio.backend: PortAudio is not among the choices, allowed is auto, "
                "alsa, portaudio or simulated; did you mean portaudio?"
            ),
        ),
        (
            "audio: {echo: off}",
            "1:15: audio.echo: off is not among the choices, allowed is gate or external",
        ),
        (
            "transcription: {engine: whisper}",
            (
                "1:25: transcription.engine: whisper is not among the choices, allowed is "
                "whisper.cpp; did you mean whisper.cpp?"
            ),
        ),
        (
            "transcription: {language: english}",
            (
                "1:27: transcription.language: english is not among the choices, allowed is auto, "
                "or one of Whisper's codes, such as en, de or fr"
            ),
        ),
        (
            "transcription: {threads: Auto}",
            (
                "1:26: transcription.threads: Auto is misspelled, allowed is auto, or a whole "
                "number from 1 to 64; did you mean auto?"
            ),
        ),
    ],
)
def test_a_choice_that_does_not_exist_is_refused_with_those_that_do(text, said):
    assert problem_of(text) == f"oyez.yaml:{said}"


@pytest.mark.parametrize(("typed", "meant"), [("EN", "en"), ("en-US", "en"), ("de_AT", "de")])
def test_a_language_with_capitals_or_a_region_is_guessed(typed, meant):
    said = problem_of(f"transcription: {{language: {typed}, model: base-q5_1}}")
    assert said.endswith(f"; did you mean {meant}?")


def test_cantonese_is_refused_because_the_small_models_do_not_know_it():
    assert "yue is not among the choices" in problem_of(
        "transcription: {language: yue, model: base-q5_1}"
    )


def test_a_path_may_begin_at_the_home_folder(monkeypatch):
    monkeypatch.setenv("HOME", "/home/ann")
    settings = settings_of("simulation: {answer_wav: ~/a.wav}\nmodels: {folder: ~/models}")
    assert settings.simulation.answer_wav == Path("/home/ann/a.wav")
    assert settings.models.folder_path == Path("/home/ann/models")


def test_a_home_folder_that_nobody_has_is_refused():
    said = problem_of("models: {folder: ~nobody-of-this-name/models}")
    assert "needs a home folder that is not known here" in said


def test_the_folder_auto_is_the_one_of_the_places(monkeypatch):
    monkeypatch.setenv("OYEZ_MODELS_DIR", "/somewhere/models")
    assert ModelsSettings().folder_path == places.models_folder() == Path("/somewhere/models")


# Lists


def test_the_questions_are_kept_in_their_order():
    settings = settings_of("simulation:\n  questions:\n    - Who?\n    - Why?\n")
    assert settings.simulation.questions == ("Who?", "Why?")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("[]", "a list of 0, allowed is a list of 1 or more (text that is not empty)"),
        ("Who", "no list, write each item on a line of its own after a dash, allowed is a list"),
        ("{a: b}", "no list, write each item on a line of its own after a dash, allowed is a list"),
        ("[[Who]]", "a list stands where one value is wanted, allowed is text"),
        ("[~]", "no value is given, allowed is text that is not empty"),
        ("", 'no value is given, remove the line to have the default, ["What time does'),
    ],
)
def test_a_list_of_questions_that_is_none_is_refused(value, said):
    assert said in problem_of(f"simulation: {{questions: {value}}}")


def test_each_bad_item_of_a_list_is_told():
    lines = problems_of("simulation:\n  questions:\n    - 1\n    - Who?\n    - ''\n")
    assert [line.split(" ")[0] for line in lines] == ["oyez.yaml:3:7:", "oyez.yaml:5:7:"]


# Answers


def test_an_empty_list_of_answers_means_silence():
    assert settings_of("answer: []").answer == ()


@pytest.mark.parametrize(
    ("template", "spoken"),
    [
        ("{text}", "hello"),
        ("I heard {text}, {text}!", "I heard hello, hello!"),
        ("{{text}} {{{text}}}", "{text} {hello}"),
        ("Yes.", "Yes."),
    ],
)
def test_a_template_speaks_the_text_in_the_place_of_its_field(template, spoken):
    (answer,) = settings_of(f'answer: [{{echo: "{template}"}}]').answer
    assert answer == EchoAnswer(echo=template)
    assert answer.echo.format(text="hello") == spoken


@pytest.mark.parametrize(
    ("template", "said", "hint"),
    [
        ("{txt}", "the field {txt} is unknown", "; did you mean {text}?"),
        ("{}", "the field {} is unknown", ""),
        ("{0}", "the field {0} is unknown", ""),
        ("{text!r}", "the field {text!r} is unknown", "; did you mean {text}?"),
        ("{text:>20}", "the field {text:>20} is unknown", "; did you mean {text}?"),
        ("{text.upper}", "the field {text.upper} is unknown", "; did you mean {text}?"),
        ("{text", "a { has no partner", "; the character itself is written {{"),
        ("text}", "a } has no partner", "; the character itself is written }}"),
        ("{{text}", "a } has no partner", "; the character itself is written }}"),
        ("", "an empty text", ""),
    ],
)
def test_a_template_that_could_not_be_spoken_is_refused_at_load(template, said, hint):
    allowed = "allowed is text in which only {text} is in braces"
    assert problem_of(f'answer: [{{echo: "{template}"}}]') == (
        f"oyez.yaml:1:17: answer.echo: {said}, {allowed}{hint}"
    )


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("[{ecco: a}]", "1:11: answer.ecco: unknown key, did you mean echo?"),
        ("[{chat: a}]", "1:11: answer.chat: unknown key, allowed is echo: and text in which"),
        ("[{echo: a, x: b}]", "1:20: answer.x: unknown key, allowed is echo: and text"),
        ("[hello]", "1:10: answer: an item without a key, allowed is echo: and text"),
        ("[{}]", "1:10: answer: an item without a key, allowed is echo: and text"),
        ("[{echo: a}, {echo: b}]", "1:9: answer: a list of 2, allowed is a list of at most 1"),
        ("{echo: a}", "1:9: answer: no list, write each item on a line of its own after a dash"),
        ("", "1:8: answer: no value is given, remove the line to have the default, [{echo: "),
    ],
)
def test_an_answer_that_does_not_exist_is_refused(value, said):
    assert problem_of(f"answer: {value}").startswith(f"oyez.yaml:{said}")
