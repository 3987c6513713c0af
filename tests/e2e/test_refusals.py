"""What cannot work is refused by its name, with the remedy and the exit code, and harms nothing."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import oyez
from e2e import sounds

LOADED = "listening after"
"""What a run says once it has loaded its models."""


@pytest.fixture
def recording(tmp_path):
    return sounds.write(tmp_path / "recording.wav", sounds.noise(1_000, level=0.01))


@pytest.fixture
def models(models_folder, tmp_path):
    """A folder of one's own with the default models in it."""
    folder = tmp_path / "models"
    folder.mkdir()
    for path in models_folder.iterdir():
        if path.is_file() and not path.name.startswith("."):
            (folder / path.name).symlink_to(path)
    return folder


def refused(done, code):
    """What a command that was refused with ``code`` said on stderr, line by line."""
    assert done.code == code, done.err
    assert done.out == ""
    assert "Traceback" not in done.err
    assert LOADED not in done.err
    return done.err.splitlines()


# -- the configuration ------------------------------------------------------------------------


WRONG = """\
audio:
  backend: pulse
endpointing:
  hangover_ms: 0.6
  preroll_ms: 400
answer:
  - echo: "You said: {words}"
"""


@pytest.mark.parametrize("command", ["check", "run", "transcribe", "say"])
def test_all_mistakes_of_a_configuration_are_told_at_once(product, command, tmp_path):
    path = tmp_path / "wrong.yaml"
    path.write_text(WRONG, encoding="utf-8")
    arguments = {
        "check": [path],
        "run": ["--config", path],
        "transcribe": ["--config", path, "recording.wav"],
        "say": ["--config", path, "a text"],
    }
    lines = refused(product.run(command, *arguments[command]), 78)
    told = [line.split(": ")[:2] for line in lines]
    assert told == [
        [f"{path}:2:12", "audio.backend"],
        [f"{path}:4:16", "endpointing.hangover_ms"],
        [f"{path}:5:3", "endpointing.preroll_ms"],
        [f"{path}:7:11", "answer.echo"],
    ]


def test_a_language_that_the_model_does_not_know_is_a_wrong_configuration(product):
    config = product.configured(transcription={"language": "de"})
    (line,) = refused(product.run("run", "--config", config), 78)
    assert "transcription.language: de needs a multilingual model" in line


def test_a_configuration_that_is_not_there_is_named(product, tmp_path):
    lines = refused(product.run("run", "--config", tmp_path / "none.yaml"), 66)
    assert lines[0] == f"oyez: there is no file {tmp_path / 'none.yaml'}"


# -- models -----------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["run", "transcribe"])
def test_missing_models_are_named_with_the_way_to_get_them(product, recording, command, tmp_path):
    config = product.configured(models={"folder": str(tmp_path / "none")})
    files = ["--input", recording] if command == "run" else [recording]
    lines = refused(product.run(command, "--config", config, *files), 69)
    assert lines[0].startswith("oyez: the model tiny.en-q5_1 cannot be used: ")
    assert "`oyez models fetch tiny.en-q5_1`" in lines[1]
    assert not (tmp_path / "none").exists()


@pytest.mark.models
@pytest.mark.parametrize("name", ["ggml-tiny.en-q5_1.bin", "en_US-joe-medium.onnx"])
def test_a_truncated_model_is_refused_before_it_is_loaded(product, recording, models, name):
    whole = (models / name).resolve()
    (models / name).unlink()
    shutil.copyfile(whole, models / name)
    os.truncate(models / name, whole.stat().st_size - 1)
    config = product.configured(models={"folder": str(models)})
    lines = refused(product.run("run", "--config", config, "--input", recording), 69)
    assert name in lines[0]
    assert "`oyez models fetch" in lines[1]


@pytest.mark.models
def test_a_web_page_in_the_place_of_a_model_is_refused(product, recording, models):
    (models / "ggml-tiny.en-q5_1.bin").unlink()
    (models / "ggml-tiny.en-q5_1.bin").write_text("<!DOCTYPE html>\n<title>Sign in</title>\n")
    config = product.configured(models={"folder": str(models)})
    lines = refused(product.run("transcribe", "--config", config, recording), 69)
    assert "ggml-tiny.en-q5_1.bin" in lines[0]
    assert "web page" in lines[0]


@pytest.mark.models
def test_a_voice_without_its_description_is_refused(product, models):
    (models / "en_US-joe-medium.onnx.json").unlink()
    config = product.configured(models={"folder": str(models)})
    lines = refused(product.run("say", "--config", config, "a text"), 69)
    assert "en_US-joe-medium.onnx.json" in lines[0]


@pytest.mark.models
def test_a_model_of_ones_own_that_knows_english_alone_is_refused_another_language(
    product, recording, models, tmp_path
):
    own = tmp_path / "own.bin"
    shutil.copyfile((models / "ggml-tiny.en-q5_1.bin").resolve(), own)
    config = product.configured(transcription={"model": str(own), "language": "de"})
    lines = refused(product.run("transcribe", "--config", config, recording), 69)
    assert lines[0] == "oyez: own.bin knows English alone, the language asked for is de"


# -- what is heard ----------------------------------------------------------------------------


@pytest.mark.parametrize("older", [False, True], ids=["", "with an older answer beside it"])
def test_a_recording_that_is_missing_is_named(product, older, tmp_path):
    answer = tmp_path / "answer.wav"
    if older:
        answer.touch()
    files = ("--input", tmp_path / "none.wav", "--output", answer)
    lines = refused(product.run("run", "--config", product.config, *files), 66)
    assert lines[0] == f"oyez: there is no file {tmp_path / 'none.wav'}"


@pytest.mark.parametrize("content", [b"", b"no sound at all\n", b"RIFF\x24\x00\x00\x00WAVEfmt "])
def test_what_is_no_recording_is_refused(product, content, tmp_path):
    path = tmp_path / "text.wav"
    path.write_bytes(content)
    lines = refused(product.run("run", "--config", product.config, "--input", path), 65)
    assert lines[0].startswith(f"oyez: {path} ")
    assert path.read_bytes() == content


def test_a_folder_is_no_recording(product, tmp_path):
    lines = refused(product.run("run", "--config", product.config, "--input", tmp_path), 65)
    assert lines[0] == f"oyez: {tmp_path} is not a file"


# -- where the answer goes --------------------------------------------------------------------


def test_the_recording_is_never_overwritten_by_the_answer(product, recording, tmp_path):
    before = recording.read_bytes()
    other_name = tmp_path / "other.wav"
    other_name.symlink_to(recording)
    for output in (recording, other_name):
        files = ("--input", recording, "--output", output)
        lines = refused(product.run("run", "--config", product.config, *files), 2)
        assert lines[0] == f"oyez: the answer would overwrite the recording {recording}"
    assert recording.read_bytes() == before


def test_with_a_sound_card_there_is_no_file_for_the_answer(product, tmp_path):
    config = product.configured(audio={"backend": "portaudio"})
    lines = refused(product.run("run", "--config", config, "--output", tmp_path / "a.wav"), 2)
    assert "sound card" in lines[0]
    assert "--output" in lines[1]


@pytest.mark.models
@pytest.mark.usefixtures("models_folder")
@pytest.mark.parametrize("place", ["a missing folder", "a folder that takes no files", "a folder"])
def test_an_answer_that_cannot_be_written_is_refused(product, recording, place, tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    output = {
        "a missing folder": tmp_path / "none" / "answer.wav",
        # Root may write into any folder of a disk.
        "a folder that takes no files": (closed if os.geteuid() else Path("/proc")) / "answer.wav",
        "a folder": tmp_path,
    }[place]
    files = ("--input", recording, "--output", output)
    lines = refused(product.run("run", "--config", product.config, *files), 74)
    assert lines[-2].startswith(f"oyez: {output} ")
    assert recording.exists()


# -- a card -----------------------------------------------------------------------------------


def test_a_card_that_is_asked_for_and_not_there_is_named(product, no_card, models_folder):
    config = product.configured(audio={"backend": "portaudio", "capture": {"device": "USB Mic"}})
    lines = refused(product.run("run", "--config", config, env=no_card), 69)
    assert lines[0].startswith("oyez: the microphone USB Mic cannot be used: ")
    assert "plugged in" in lines[1]


def test_without_a_speaker_nothing_can_be_said_aloud(product, no_card, models_folder):
    lines = refused(product.run("say", "--config", product.config, "a text", env=no_card), 69)
    assert lines[0].startswith("oyez: the speaker (the default) cannot be used: ")


def test_a_damaged_catalogue_is_told_with_the_remedy(product, tmp_path):
    copy = tmp_path / "daemon" / "oyez"
    shutil.copytree(Path(oyez.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "models.yaml").write_text("models: {}\n")
    done = product.run("models", "list", env={"PYTHONPATH": str(copy.parent)})
    assert done.code == 78
    assert "models.yaml" in done.err
    assert "install Oyez again" in done.err
