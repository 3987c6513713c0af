"""What holds for every text and for all settings."""

from __future__ import annotations

import re
from pathlib import Path
from string import Formatter
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from oyez.config import (
    AudioSettings,
    CaptureSettings,
    EchoAnswer,
    EndpointingSettings,
    JournalSettings,
    Loaded,
    ModelsSettings,
    PlaybackSettings,
    Settings,
    SimulationSettings,
    TranscriptionSettings,
    VadSettings,
    VoiceSettings,
    parse,
)
from oyez.config_sections import plain
from oyez.config_texts import example, schema, show
from oyez.errors import ConfigError

PROBLEM = re.compile(r"oyez\.yaml:[1-9]\d*:[1-9]\d*: \S.*")

FRAGMENTS = st.sampled_from(
    [
        *"[]{}:,-?#&*!|>'\"%@`~ \n\t\r\\<=",
        *(
            "  ",
            "\r\n",
            "---\n",
            "...\n",
            "%YAML 1.1\n",
            "!!str ",
            "&a ",
            "*a ",
            "<<: ",
            "? ",
            ": ",
        ),
        *("- ", '"\\x', "\\u00", '"\\U00110000"', "|2\n", ">-\n", "\u2028", "\ufeff", "\x85"),
        *("\x00", "\ud800", "\U0001f600", "null", "''", "0x1f", "1e999", "0.6", "500ms", "{text}"),
        *("endpointing:\n", "  hangover_ms: ", "audio", "answer:\n  - echo: "),
    ]
)
YAML_LIKE = st.lists(FRAGMENTS, max_size=30).map("".join)


@st.composite
def damaged_examples(draw: st.DrawFn) -> str:
    """The shipped file with a few lines of it torn by something else."""
    lines = [line for line in example().splitlines() if "#" not in line]
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(lines) - 1))
        column = draw(st.integers(0, len(lines[at])))
        lines[at] = (
            lines[at][:column] + draw(YAML_LIKE) + lines[at][column + draw(st.integers(0, 3)) :]
        )
    return "\n".join(lines)


@given(st.one_of(st.text(), YAML_LIKE, damaged_examples()))
def test_any_text_is_loaded_or_refused_in_lines_of_the_right_form(text):
    outcome: Loaded | list[str]
    try:
        outcome = parse(text, "oyez.yaml")
    except ConfigError as error:
        outcome = error.problems
    if isinstance(outcome, Loaded):
        assert parse(show(outcome, as_json=False), "shown").settings == outcome.settings
    else:
        assert outcome
        assert all(PROBLEM.fullmatch(line) and line.isprintable() for line in outcome)


def texts() -> st.SearchStrategy[str]:
    """Lines of text, the treacherous ones among them."""
    treacherous = [
        "no",
        "true",
        "~",
        "null",
        "1e3",
        ".5",
        "- a",
        "a: b",
        "#x",
        "{",
        "auto ",
        '"',
        "'",
    ]
    return st.one_of(
        st.sampled_from(treacherous),
        st.text(
            st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp", "Cn")), min_size=1
        ).filter(lambda text: text.strip() and "\ufeff" not in text),
    )


def devices() -> st.SearchStrategy[str]:
    return st.just("auto") | texts().filter(lambda text: text.strip().lower() != "auto")


def paths() -> st.SearchStrategy[Path]:
    names = texts().filter(lambda text: not text.startswith("/"))
    return st.sampled_from([Path("auto"), Path("~x"), Path("/a b/c")]) | names.map(Path)


def templates() -> st.SearchStrategy[str]:
    pieces = st.sampled_from(["{text}", "{{", "}}"]) | texts().map(
        lambda text: re.sub("[{}]", "", text)
    )
    return st.lists(pieces, min_size=1).map("".join).filter(str.strip)


def numbers(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(low, high).map(lambda number: number + 0.0)


@st.composite
def all_settings(draw: st.DrawFn) -> Settings:
    model = draw(st.sampled_from(["tiny.en-q5_1", "base-q5_1", "small"]))
    languages = ["en"] if ".en" in model else ["en", "no", "auto", "de", "haw"]
    return Settings(
        audio=AudioSettings(
            backend=draw(st.sampled_from(["auto", "portaudio", "simulated"])),
            capture=CaptureSettings(device=draw(devices()), period_ms=draw(st.integers(10, 60))),
            playback=PlaybackSettings(device=draw(devices())),
            echo=draw(st.sampled_from(["gate", "external"])),
        ),
        simulation=SimulationSettings(
            questions=tuple(draw(st.lists(texts(), min_size=1, max_size=4))),
            snr_db=draw(numbers(0, 60)),
            reverb_ms=draw(st.integers(0, 2000)),
            seed=draw(st.integers(0, 2**32 - 1)),
            answer_wav=draw(paths()),
        ),
        vad=VadSettings(aggressiveness=draw(st.integers(0, 3))),
        endpointing=EndpointingSettings(
            pre_roll_ms=draw(st.integers(0, 2000)),
            hangover_ms=draw(st.integers(200, 3000)),
            min_speech_ms=draw(st.integers(20, 2000)),
            max_utterance_s=draw(numbers(7, 25)),
        ),
        transcription=TranscriptionSettings(
            model=model,
            language=draw(st.sampled_from(languages)),
            threads=draw(st.just("auto") | st.integers(1, 64)),
        ),
        voice=VoiceSettings(model=draw(texts()), volume_db=draw(numbers(-40, 12))),
        answer=draw(st.just(()) | templates().map(lambda text: (EchoAnswer(echo=text),))),
        models=ModelsSettings(folder=draw(st.just("auto") | paths())),
        journal=JournalSettings(log_transcripts=draw(st.booleans())),
    )


def shown(settings: Settings) -> str:
    origins = dict.fromkeys(parse("", "").origins, "a file: with # and ' in its name:7")
    return show(Loaded(settings=settings, path=None, origins=origins), as_json=False)


@given(all_settings())
def test_settings_that_are_shown_and_loaded_again_are_the_same(settings):
    assert parse(shown(settings), "oyez.yaml").settings == settings


@given(all_settings())
def test_shown_settings_are_the_same_to_other_yaml_readers_and_fit_the_schema(settings):
    content: Any = yaml.load(shown(settings), Loader=TextAndNumbers)  # noqa: S506  (a SafeLoader)
    assert content == plain(settings)
    assert list(Draft202012Validator(schema()).iter_errors(content)) == []


class TextAndNumbers(yaml.SafeLoader):
    """PyYAML reads numbers such as 1e-07 as text, as YAML 1.1 wants; editors go by YAML 1.2."""


TextAndNumbers.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?"),
    list("-+.0123456789"),
)


@given(templates())
def test_every_template_that_loads_can_be_spoken(template):
    (answer,) = parse(f"answer:\n  - echo: {flow_text(template)}", "oyez.yaml").settings.answer
    assert answer.echo.format(text="hello")


def can_be_spoken(template: str) -> bool:
    """What Python's own parser of templates says."""
    try:
        fields = list(Formatter().parse(template))
    except ValueError:
        return False
    return bool(template.strip()) and all(
        name is None or (name, spec, conversion) == ("text", "", None)
        for _, name, spec, conversion in fields
    )


@given(st.lists(st.sampled_from(["{", "}", "{text}", "text", " ", "x"]), min_size=1).map("".join))
def test_a_template_loads_just_when_it_can_be_spoken_with_its_one_field(template):
    text = f"answer: [{{echo: {flow_text(template)}}}]"
    if can_be_spoken(template):
        (answer,) = parse(text, "oyez.yaml").settings.answer
        assert answer.echo == template
    else:
        with pytest.raises(ConfigError):
            parse(text, "oyez.yaml")


def flow_text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
