"""A file that is not the model is called by what it is, and a verified one is not read again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from models import makers
from oyez.models import checks

CONTENT = makers.whisper_content()
FILE = makers.entry("ggml-x.bin", CONTENT)
CONFIG = makers.entry("v.onnx.json", makers.VOICE_CONFIG)


@pytest.fixture
def path(tmp_path):
    file = tmp_path / FILE.name
    file.write_bytes(CONTENT)
    return file


def why(path, file=FILE, *, deep=True):
    damage = checks.damage_in(path, file, deep=deep)
    return damage.why if damage else None


def test_the_right_file_has_no_damage(path):
    assert why(path) is None


def test_a_missing_file_is_missing(tmp_path):
    damage = checks.damage_in(tmp_path / "x", FILE, deep=False)
    assert damage.missing
    assert damage.why == "is missing"


@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize(
    ("content", "said", "keep"),
    [
        (b"", "is empty", False),
        (CONTENT[:-1], "is truncated: it has 39,999 of 40,000 bytes", False),
        (CONTENT + b"x", "is another file: it has 40,001 bytes, not 40,000", True),
        (b"<!DOCTYPE html><html>" + CONTENT, "is a web page", False),
        (b"\n  <html>", "is a web page", False),
        (
            b"version https://git-lfs.github.com/spec/v1\noid sha256:0",
            "is a git-lfs pointer",
            False,
        ),
    ],
)
def test_a_file_of_the_wrong_kind_is_told_at_a_glance(path, content, said, keep, deep):
    path.write_bytes(content)
    damage = checks.damage_in(path, FILE, deep=deep)
    assert damage.why.startswith(said)
    assert damage.keep is keep
    assert not damage.missing


def test_one_changed_bit_is_told_by_the_checksum_alone(path):
    path.write_bytes(CONTENT[:-1] + bytes([CONTENT[-1] ^ 1]))
    assert why(path, deep=False) is None
    damage = checks.damage_in(path, FILE, deep=True)
    assert damage.why == (
        f"is damaged or another file: its sha256 is {checks.sha256_of(path)}, not {FILE.sha256}"
    )
    assert damage.keep


def test_a_folder_in_the_place_of_a_file_is_told(path):
    path.unlink()
    path.mkdir()
    assert why(path) == "is not a file"


def test_a_file_that_may_not_be_read_is_told(path):
    # A path below a file cannot be looked at by anybody, root included.
    assert why(path / "x", deep=False) == "cannot be read: Not a directory"


def test_a_file_whose_reading_fails_as_on_a_dying_card_is_told():
    memory = Path("/proc/self/mem")  # nothing is mapped at its beginning
    assert why(memory) == "cannot be read: Input/output error"
    assert checks.foreign_damage(memory).why == "cannot be read: Input/output error"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"{'audio': 1}", "is not JSON"),
        (b"\xff\xfe", "is not JSON"),
        (b"[]", "does not describe a Piper voice"),
        (b"{}", "does not describe a Piper voice"),
        (b'{"audio": 3}', "does not describe a Piper voice"),
        (b'{"audio": {"sample_rate": true}, "phoneme_id_map": {}}', "does not describe"),
        (b'{"audio": {"sample_rate": "22050"}, "phoneme_id_map": {}}', "does not describe"),
        (b'{"audio": {"sample_rate": 22050}, "phoneme_id_map": []}', "does not describe"),
    ],
)
def test_the_settings_of_a_voice_must_describe_a_voice(tmp_path, content, said):
    path = tmp_path / CONFIG.name
    path.write_bytes(content)
    assert why(path, makers.entry(CONFIG.name, content)).startswith(said)


def test_a_file_that_was_verified_is_known_again(path):
    assert not checks.is_recorded(path, FILE)
    checks.record_verified(path, FILE)
    assert checks.is_recorded(path, FILE)
    checks.forget_verified(path)
    assert not checks.is_recorded(path, FILE)


def touch(path):
    status = path.stat()
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1))


def replace_with_a_copy(path):
    status = path.stat()
    copy = path.with_name("copy")
    copy.write_bytes(path.read_bytes())
    os.utime(copy, ns=(status.st_atime_ns, status.st_mtime_ns))
    copy.replace(path)


def append(path):
    with path.open("ab") as file:
        file.write(b"x")


def append_and_set_the_clock_back(path):
    status = path.stat()
    append(path)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def spoil_the_record(path):
    (record,) = path.parent.glob(".*")
    record.write_text("{")


@pytest.mark.parametrize(
    "change",
    [touch, replace_with_a_copy, append, append_and_set_the_clock_back, spoil_the_record],
)
def test_a_file_that_changed_since_is_not_known_again(path, change):
    checks.record_verified(path, FILE)
    change(path)
    assert not checks.is_recorded(path, FILE)


def test_a_record_of_another_release_of_the_model_does_not_count(path):
    checks.record_verified(path, FILE)
    assert not checks.is_recorded(path, makers.entry(FILE.name, b"another release"))


def test_a_ggml_model_of_the_owners_own_is_accepted_by_its_form(path):
    assert checks.foreign_damage(path) is None


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"GGUF\x03\x00\x00\x00", "is not a ggml model of Whisper"),
        (b"<html>", "is a web page"),
        (b"", "is empty"),
    ],
)
def test_a_model_of_the_owners_own_in_another_form_is_refused(path, content, said):
    path.write_bytes(content)
    assert checks.foreign_damage(path).why.startswith(said)


def test_a_voice_of_the_owners_own_needs_its_settings_beside_it(tmp_path):
    voice = tmp_path / "v.onnx"
    voice.write_bytes(makers.VOICE)
    assert checks.foreign_damage(voice).why == "cannot be used: v.onnx.json is missing"
    (tmp_path / "v.onnx.json").write_bytes(b"{}")
    assert "v.onnx.json does not describe a Piper voice" in checks.foreign_damage(voice).why
    (tmp_path / "v.onnx.json").write_bytes(makers.VOICE_CONFIG)
    assert checks.foreign_damage(voice) is None


def test_a_voice_that_is_no_onnx_file_is_refused(tmp_path):
    voice = tmp_path / "v.onnx"
    voice.write_bytes(CONTENT)
    assert checks.foreign_damage(voice).why == "is not an ONNX file"
