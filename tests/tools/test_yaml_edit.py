"""The YAML keeps all that was not asked to change."""

from __future__ import annotations

import dataclasses
import re
import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oyez.config import Settings, parse
from oyez.config_texts import example
from oyez.errors import ConfigError, InputError, OutputError
from oyez.tools import yaml_edit

GAIN = "audio.capture.gain_db"
NEW = "audio:\n  capture:\n    gain_db: 12.5\n"
VAD = "vad.aggressiveness"
CHANGES = {GAIN: 12.5, VAD: 3}


def wanted(text, values):
    settings = parse(text, "").settings
    audio = settings.audio
    if GAIN in values:
        capture = dataclasses.replace(audio.capture, gain_db=values[GAIN])
        settings = dataclasses.replace(settings, audio=dataclasses.replace(audio, capture=capture))
    if VAD in values:
        vad = dataclasses.replace(settings.vad, aggressiveness=values[VAD])
        settings = dataclasses.replace(settings, vad=vad)
    return settings


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "audio:\n  capture:\n    gain_db: 12.5\n"),
        ("# mine", "# mine\naudio:\n  capture:\n    gain_db: 12.5\n"),
        ("---\n# mine\n", "---\naudio:\n  capture:\n    gain_db: 12.5\n# mine\n"),
        ("~ # all is well\n", "{audio: {capture: {gain_db: 12.5}}} # all is well\n"),
        (
            "vad:\n    engine: webrtc # the only one\n# the end\n",
            f"vad:\n    engine: webrtc # the only one\n{NEW}# the end\n",
        ),
        (
            "audio:\n    capture:\n        gain_db:   auto   # by itself\n        periods: 8\n",
            "audio:\n    capture:\n        gain_db:   12.5   # by itself\n        periods: 8\n",
        ),
        (
            "audio:\n  capture:\n    # a\n    device: 'M'  # b\n\n  # c\n  echo: gate\n",
            f"{NEW[:18]}    # a\n    device: 'M'  # b\n    gain_db: 12.5\n\n  # c\n  echo: gate\n",
        ),
        (
            "audio:\n  capture: # none yet\n    # device: Mic\nvad:\n",
            "audio:\n  capture: # none yet\n    gain_db: 12.5\n    # device: Mic\nvad:\n",
        ),
        ("audio: {capture: {device: Mic}}", "audio: {capture: {gain_db: 12.5, device: Mic}}"),
        ("audio: {capture}", "audio: {capture: {gain_db: 12.5}}"),
        ("audio: {capture: null}", "audio: {capture: {gain_db: 12.5}}"),
        ("audio: {}\r\n", "audio: {capture: {gain_db: 12.5}}\r\n"),
        ("audio:\r\n", "audio:\r\n  capture:\r\n    gain_db: 12.5\r\n"),
        (
            "audio:\n  capture:\n    gain_db: >- # loud\n      auto\n    # soft\n",
            "audio:\n  capture:\n    gain_db: 12.5 # loud\n    # soft\n",
        ),
        ("\ufeffvad: {}\n", "\ufeffvad: {}\naudio:\n  capture:\n    gain_db: 12.5\n"),
        (
            'answer:\n- echo: "{text}"\n\n\n# bye\n',
            'answer:\n- echo: "{text}"\naudio:\n  capture:\n    gain_db: 12.5\n\n\n# bye\n',
        ),
        (
            "answer:\n  - echo: |\n      {text}\n\n# bye\n",
            "answer:\n  - echo: |\n      {text}\naudio:\n  capture:\n    gain_db: 12.5\n\n# bye\n",
        ),
    ],
)
def test_only_the_value_changes(before, after):
    assert yaml_edit.edited(before, {GAIN: 12.5}) == after


def test_the_shipped_file_changes_in_two_lines():
    before, after = example(), yaml_edit.edited(example(), CHANGES)
    changed = [
        (old.strip(), new.strip())
        for old, new in zip(before.splitlines(), after.splitlines(), strict=True)
        if old != new
    ]
    assert changed == [
        ("gain_db: auto", "gain_db: 12.5"),
        ("aggressiveness: 2", "aggressiveness: 3"),
    ]
    assert parse(after, "").settings == wanted(before, CHANGES)


# -- whatever a person may write ------------------------------------------------------------------

SCALARS = {
    "audio": {"backend": ["alsa", "'auto'", '"simulated"', "auto"], "echo": ["gate", "external"]},
    "capture": {
        "device": ["Mic", "'a # b'", '"hw:CARD=Mic,DEV=0"', "auto"],
        "gain_db": ["auto", "leave", "'auto'", '"leave"', "-3", "7.5"],
        "periods": ["4", "20"],
    },
    "playback": {"volume_db": ["leave", "-6"], "device": ["auto", "'{}'"]},
    "vad": {"engine": ["webrtc", "'webrtc'"], "aggressiveness": ["0", "1", "2", "3.0"]},
    "endpointing": {"hangover_ms": ["600", "400"]},
}
BLOCKS = {"gain_db": ["auto", "leave"], "device": ["Mic", "a # b: c"], "backend": ["alsa"]}
NESTED = {"audio": ["capture", "playback"]}
COMMENT = st.sampled_from(["", "", " # short", "  #", "\t# gain_db: 3", " # {a: [b"])
FILLER = st.lists(
    st.sampled_from(["", "# mine", "      # gain_db: auto", "#", "   ", "# audio: {"]), max_size=2
)


@st.composite
def block_section(draw, name, depth):
    """The lines of a section's body in block style; [] for none."""
    indent = depth and " " * (depth * draw(st.sampled_from([2, 3])))
    lines = []
    names = [*SCALARS.get(name, ()), *NESTED.get(name, ())]
    if name is None:
        names = ["audio", "vad", "endpointing", "answer"]
    for key in draw(st.permutations(names)):
        if draw(st.booleans()):
            continue
        lines += draw(FILLER)
        shown = draw(st.sampled_from([key, key, f"'{key}'", f'"{key}"']))
        space = draw(st.sampled_from([": ", ":   "]))
        comment = draw(COMMENT)
        values = SCALARS.get(name, {}).get(key)
        if values and key in BLOCKS and draw(st.booleans()):
            mark = draw(st.sampled_from(["|-", ">-"]))
            text = draw(st.sampled_from(BLOCKS[key]))
            lines += [f"{indent}{shown}: {mark}{comment}", f"{indent}   {text}"]
        elif values:
            value = draw(st.sampled_from(values))
            gap = draw(st.sampled_from(["", "", f"\n{indent}   "]))
            lines.append(f"{indent}{shown}{space}{gap}{value}{comment}")
        elif key == "answer":
            lines.append(
                draw(
                    st.sampled_from(
                        [
                            "answer: []",
                            "answer:\n- echo: '{text}'",
                            "answer:\n  - {echo: a}\n  # b",
                            "answer:\n  - echo: >\n      # a {text}\n\n      b\n",
                        ]
                    )
                )
            )
        else:
            kind = draw(st.sampled_from(["block", "flow", "null", "word"]))
            if kind == "block":
                body = draw(block_section(key, depth + 1))
                lines += [f"{indent}{shown}:{comment}", *body]
            elif kind == "flow":
                lines.append(f"{indent}{shown}{space}{draw(flow_section(key))}{comment}")
            else:
                word = "" if kind == "null" else draw(st.sampled_from(["~", "null"]))
                lines.append(f"{indent}{shown}: {word}{comment}")
    return lines


@st.composite
def flow_section(draw, name):
    """A section between braces, on one line or on several."""
    gap = draw(st.sampled_from(["", " ", "\n      ", " # why\n      "]))
    entries = []
    for key in draw(st.permutations([*SCALARS[name], *NESTED.get(name, ())])):
        if draw(st.booleans()):
            continue
        values = SCALARS[name].get(key)
        if values:
            entries.append(f"{key}: {draw(st.sampled_from(values))}")
        else:
            inner = draw(st.sampled_from(["flow", "null", "bare", "word"]))
            entries.append(
                {
                    "flow": f"{key}: {draw(flow_section(key))}",
                    "null": f"{key}: ",
                    "bare": key,
                    "word": f"{key}: ~",
                }[inner]
            )
    comma = draw(st.sampled_from(["", ","])) if entries else ""
    return "{" + gap + f",{gap or ' '}".join(entries) + comma + gap + "}"


@st.composite
def files(draw):
    """A sound configuration as somebody may have written it."""
    lines = draw(block_section(None, 0))
    if draw(st.booleans()):
        lines = ["---", *lines]
    lines += draw(FILLER)
    text = "\n".join(lines) + draw(st.sampled_from(["", "\n", "\n...\n"] if lines else [""]))
    text = text.replace("\n", draw(st.sampled_from(["\n", "\r\n"])))
    return draw(st.sampled_from(["", "\ufeff"])) + text


def is_sound(text):
    try:
        parse(text, "")
    except ConfigError:
        return False
    return True


@given(files().filter(is_sound), st.sampled_from([CHANGES, {GAIN: "auto"}, {VAD: 1}]))
def test_whatever_the_style_only_the_written_keys_differ(text, values):
    after = yaml_edit.edited(text, values)
    assert parse(after, "").settings == wanted(text, values)
    # Line by line: what is not about the keys stands there unchanged and in the old order. Lines
    # that hold a section in braces, or a value of the keys, are theirs.
    theirs = re.compile(r"gain_db|aggressiveness|[{}~]|null|auto|leave|^\W*([0-3]|3\.0|-3|7\.5)\b")
    kept = [line for line in text.lstrip("\ufeff").splitlines() if not theirs.search(line)]
    left = iter(after.lstrip("\ufeff").splitlines())
    for line in kept:
        assert line in left, line  # goes on from the last one found
    assert re.findall(r"#[^\r\n]*", text) == re.findall(r"#[^\r\n]*", after)
    assert ("\r\n" in after) == ("\r\n" in text)
    assert yaml_edit.edited(after, values) == after


def test_what_cannot_be_edited_is_left_alone_and_the_lines_are_told():
    text = "? audio\n? vad\n: {}\n"
    assert parse(text, "").settings == Settings()
    with pytest.raises(InputError, match="left as it is") as caught:
        yaml_edit.edited(text, {GAIN: 3.0})
    assert caught.value.remedy.endswith("audio:\n  capture:\n    gain_db: 3.0")


def test_the_file_keeps_its_mode_and_a_link_stays_a_link(tmp_path):
    real, link = tmp_path / "real.yaml", tmp_path / "oyez.yaml"
    real.write_bytes(b"vad:\r\n  aggressiveness: 1 # soft\r\n")
    real.chmod(0o640)
    link.symlink_to(real)
    yaml_edit.write_values(link, {VAD: 3})
    assert link.is_symlink()
    assert real.read_bytes() == b"vad:\r\n  aggressiveness: 3 # soft\r\n"
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert sorted(path.name for path in tmp_path.iterdir()) == ["oyez.yaml", "real.yaml"]


def test_a_file_that_is_not_there_is_made(tmp_path):
    yaml_edit.write_values(tmp_path / "new.yaml", CHANGES)
    text = (tmp_path / "new.yaml").read_text()
    assert text == "audio:\n  capture:\n    gain_db: 12.5\nvad:\n  aggressiveness: 3\n"
    assert stat.S_IMODE((tmp_path / "new.yaml").stat().st_mode) == 0o644


def test_a_file_that_is_wrong_is_not_touched(tmp_path):
    path = tmp_path / "oyez.yaml"
    path.write_text("vad: {aggressiveness: 7}\n")
    with pytest.raises(ConfigError):
        yaml_edit.write_values(path, CHANGES)
    assert path.read_text() == "vad: {aggressiveness: 7}\n"


def test_a_folder_that_is_not_there_is_told_before_anything_is_measured(tmp_path):
    with pytest.raises(OutputError, match="cannot be written"):
        yaml_edit.check_writable(tmp_path / "no" / "oyez.yaml")
    yaml_edit.check_writable(tmp_path / "oyez.yaml")


def test_the_lines_for_an_empty_file_load_to_the_values():
    text = "\n".join(yaml_edit.lines({**CHANGES, "audio.echo": "external"}))
    settings = parse(text, "").settings
    assert (settings.audio.capture.gain_db, settings.vad.aggressiveness) == (12.5, 3)
    assert settings.audio.echo == "external"
