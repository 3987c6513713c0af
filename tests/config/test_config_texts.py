"""What is written about the settings: show, the JSON Schema, the shipped YAML, the docs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator, Draft202012Validator

from oyez import places
from oyez.config import ROOT, Settings, load, parse
from oyez.config_sections import Section, plain
from oyez.config_texts import SCHEMA_FILE, example, schema, schema_text, show, table
from oyez.errors import ConfigError
from oyez.yaml_writer import flow

LEAVES = [
    (dotted, key) for dotted, key, _ in ROOT.walk(Settings()) if not isinstance(key.kind, Section)
]
SHIPPED = places.shipped("oyez.yaml")
CHECKOUT = Path(__file__).resolve().parents[2]


def schema_faults(instance: Any) -> list[str]:
    return [error.message for error in Draft202012Validator(schema()).iter_errors(instance)]


# The shipped YAML


def test_the_shipped_file_sets_every_key_to_its_default():
    loaded = load(SHIPPED)
    assert loaded.settings == Settings()
    assert sorted(loaded.origins) == sorted(dotted for dotted, _ in LEAVES)
    assert "default" not in loaded.origins.values()


@pytest.mark.parametrize(("dotted", "key"), LEAVES, ids=[dotted for dotted, _ in LEAVES])
def test_each_key_of_the_shipped_file_is_commented_with_its_range_and_default(dotted, key):
    lines = SHIPPED.read_text(encoding="utf-8").splitlines()
    at = int(load(SHIPPED).origins[dotted].rpartition(":")[2]) - 1
    first = at
    while lines[first - 1].lstrip().startswith("#"):
        first -= 1
    comment = " ".join(line.lstrip(" #") for line in lines[first:at])
    default = "as here" if isinstance(key.default, tuple) else flow(plain(key.default))
    assert comment.startswith(key.about)
    assert comment.endswith(f"Allowed: {key.kind.allowed(dotted)}. Default: {default}.")


def test_the_shipped_file_is_what_the_settings_make_of_it():
    assert SHIPPED.read_text(encoding="utf-8") == example()


def test_the_shipped_file_names_in_its_first_line_the_schema_beside_it():
    first = SHIPPED.read_text(encoding="utf-8").splitlines()[0]
    named = re.fullmatch(r"# yaml-language-server: \$schema=(\S+)", first)
    assert named
    assert json.loads((SHIPPED.parent / named[1]).read_text(encoding="utf-8")) == schema()


def test_other_yaml_readers_find_the_same_in_the_shipped_file():
    text = SHIPPED.read_text(encoding="utf-8")
    assert yaml.safe_load(text) == plain(Settings())


# The JSON Schema


def test_the_shipped_schema_is_current():
    assert places.shipped(SCHEMA_FILE).read_text(encoding="utf-8") == schema_text()


def test_the_schema_is_one_to_both_drafts_that_editors_know():
    Draft202012Validator.check_schema(schema())
    Draft7Validator.check_schema(schema())


def test_the_schema_describes_every_key_and_repeats_its_default():
    for dotted, key in LEAVES:
        found = schema()
        for name in dotted.split("."):
            found = found["properties"][name]
        assert found["description"] == key.about
        assert found["default"] == plain(key.default)


@pytest.mark.parametrize("validator", [Draft202012Validator, Draft7Validator])
def test_the_shipped_file_fits_the_schema(validator):
    content = yaml.safe_load(SHIPPED.read_text(encoding="utf-8"))
    assert list(validator(schema()).iter_errors(content)) == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "vad:\n",
        "answer: []",
        "transcription: {threads: 4}",
        "models: {folder: /srv/models}",
        "endpointing: {hangover_ms: 700.0, max_utterance_s: 12.5}",
        'transcription: {language: "no", model: base-q5_1}',
        'answer: [{echo: "{{ {text} }}"}]',
    ],
)
def test_what_the_loader_takes_the_schema_takes(text):
    parse(text, "oyez.yaml")
    assert schema_faults(yaml.safe_load(text)) == []


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "vad: webrtc",
        "extra: 1",
        "vad: {extra: 1}",
        "vad: {engine: silero}",
        "vad: {aggressiveness: 4}",
        "vad: {aggressiveness: 1.5}",
        "vad: {aggressiveness: true}",
        'vad: {aggressiveness: "1"}',
        "endpointing: {hangover_ms: 0.6}",
        "endpointing: {hangover_ms: 500ms}",
        "endpointing: {hangover_ms: null}",
        "endpointing: {max_utterance_s: 29}",
        'journal: {log_transcripts: "true"}',
        "transcription: {threads: 0}",
        "transcription: {threads: Auto}",
        "transcription: {language: english}",
        "voice: {model: ' '}",
        "voice: {model: 5}",
        "simulation: {questions: []}",
        "simulation: {questions: [1]}",
        "simulation: {questions: Who}",
        "answer: [{echo: '{txt}'}]",
        "answer: [{echo: '{text'}]",
        "answer: [{}]",
        "answer: [{chat: a}]",
        "answer: [{echo: a}, {echo: b}]",
    ],
)
def test_what_the_loader_refuses_the_schema_refuses(text):
    with pytest.raises(ConfigError):
        parse(text, "oyez.yaml")
    assert schema_faults(yaml.safe_load(text))


# Show


CHANGED = """\
vad:
  aggressiveness: 1
simulation:
  questions: ["Who: you?", no]
  answer_wav: ./auto
transcription: {language: no, model: base-q5_1}
voice: {volume_db: -6.5}
answer: []
"""


def test_what_is_shown_loads_to_the_same_settings():
    loaded = parse(CHANGED, "my.yaml")
    assert parse(show(loaded, as_json=False), "shown.yaml").settings == loaded.settings


def test_each_shown_value_has_its_origin_behind_it():
    lines = show(parse(CHANGED, "my.yaml"), as_json=False).splitlines()
    assert re.fullmatch(r"  aggressiveness: 1 +# my\.yaml:2", lines[lines.index("vad:") + 2])
    assert re.fullmatch(r"  engine: webrtc +# default", lines[lines.index("vad:") + 1])
    assert any(re.fullmatch(r"answer: \[\] +# my\.yaml:8", line) for line in lines)
    assert sum("  # " in line for line in lines) == len(LEAVES)


def test_the_first_shown_line_names_the_file_or_says_that_there_is_none(tmp_path):
    path = tmp_path / "my.yaml"
    path.write_text("", encoding="utf-8")
    assert show(load(path), as_json=False).splitlines()[0] == f"# {path}"
    assert show(parse("", ""), as_json=False).splitlines()[0] == "# no file"


def test_the_same_is_shown_as_json(tmp_path):
    path = tmp_path / "my.yaml"
    path.write_text(CHANGED, encoding="utf-8")
    loaded = load(path)
    shown = json.loads(show(loaded, as_json=True))
    assert shown["file"] == str(path)
    assert shown["settings"] == plain(loaded.settings)
    assert shown["settings"]["endpointing"]["max_utterance_s"] == 20
    assert shown["origins"] == loaded.origins
    assert schema_faults(shown["settings"]) == []


# The documentation


def test_the_table_in_the_documentation_is_current():
    page = (CHECKOUT / "docs" / "configuration.md").read_text(encoding="utf-8")
    assert table() in page


def test_the_example_in_the_documentation_loads():
    page = (CHECKOUT / "docs" / "configuration.md").read_text(encoding="utf-8")
    (first, *_) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    settings = parse(first, "docs").settings
    assert settings.transcription.language == "de"


def test_the_mistakes_in_the_documentation_are_told_in_just_these_words():
    page = (CHECKOUT / "docs" / "configuration.md").read_text(encoding="utf-8")
    (told,) = re.findall(r"```\n(oyez\.yaml:.*?)```", page, re.DOTALL)
    mistaken = "endpointing:\n  hangover_ms: 0.6\ntranscription:\n  langauge: de\n  threads: '4'\n"
    with pytest.raises(ConfigError) as caught:
        parse(mistaken, "oyez.yaml")
    assert caught.value.problems == told.splitlines()


def test_writing_the_files_again_changes_nothing(tmp_path):
    for name in ("config/oyez.yaml", f"config/{SCHEMA_FILE}", "docs/configuration.md"):
        copy = tmp_path / name
        copy.parent.mkdir(exist_ok=True)
        copy.write_text((CHECKOUT / name).read_text(encoding="utf-8"), encoding="utf-8")
    script = tmp_path / "scripts" / "write_config_files.py"
    script.parent.mkdir()
    script.write_text((CHECKOUT / "scripts" / script.name).read_text(encoding="utf-8"))
    subprocess.run([sys.executable, script], check=True)
    for name in ("config/oyez.yaml", f"config/{SCHEMA_FILE}", "docs/configuration.md"):
        assert (tmp_path / name).read_text() == (CHECKOUT / name).read_text()


def test_the_configuration_imports_no_heavy_library():
    code = (
        "import sys, oyez.config_texts\n"
        "heavy = {'numpy', 'sounddevice', 'piper', 'onnxruntime', 'pywhispercpp', 'alsaaudio'}\n"
        "print(heavy & set(sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "set()\n"
