"""The tables of engines; and a machine on which an optional library is missing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import oyez
from oyez import config
from oyez.config import Settings
from oyez.errors import EngineError
from oyez.speech import engines

SETTINGS = Settings()

# Run by an interpreter of its own, on which the named modules cannot be imported. Prints for each
# module of ours that fails to import, and for each feature that is tried, what was raised.
WITHOUT = """
import importlib, json, pkgutil, sys
from pathlib import Path


class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in sys.argv[1:]:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Missing())
import oyez

told = {}


def attempt(what, function):
    try:
        function()
    except Exception as error:
        text = f"{error} {getattr(error, 'remedy', '')}"
        told[what] = [type(error).__name__, getattr(error, "code", ""), text]


for module in pkgutil.walk_packages(oyez.__path__, "oyez."):
    if module.name != "oyez.__main__":
        attempt(module.name, lambda: importlib.import_module(module.name))

from oyez.audio import portaudio
from oyez.audio.wav import Recording
from oyez.config import Settings
from oyez.speech import engines

settings, nowhere = Settings(), Path("/nonexistent")
attempt("vad", lambda: engines.make_vad(settings.vad))
attempt("stt", lambda: engines.make_transcriber(settings.transcription, nowhere, 1))
attempt("tts", lambda: engines.make_synthesizer(settings.voice, nowhere, 1))
attempt("card", portaudio.has_microphone)
attempt("recording", lambda: Recording(nowhere))
print(json.dumps(told))
"""

FEATURES = {
    "vad": ("webrtcvad", "finding speech needs webrtcvad"),
    "stt": ("_pywhispercpp", "transcription needs pywhispercpp"),
    "tts": ("piper", "speaking needs piper-tts"),
    "card": ("sounddevice", "the sound card needs sounddevice"),
    "recording": ("soundfile", "reading recordings needs soundfile"),
}
OPTIONAL = {library for library, _ in FEATURES.values()} | {
    *("onnxruntime", "pywhispercpp", "alsaaudio", "systemd", "filelock"),
}


def told_without(*libraries):
    environment = {**os.environ, "PYTHONPATH": str(Path(oyez.__file__).parents[1])}
    run = subprocess.run(
        [sys.executable, "-c", WITHOUT, *libraries],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return json.loads(run.stdout)


@pytest.fixture(scope="module")
def told_without_all():
    return told_without(*OPTIONAL)


def test_without_any_optional_library_every_module_can_be_imported(told_without_all):
    assert set(told_without_all) == set(FEATURES)


@pytest.mark.parametrize("feature", FEATURES)
def test_a_feature_whose_library_is_missing_is_named_with_the_remedy(told_without_all, feature):
    kind, code, text = told_without_all[feature]
    assert (kind, code) == ("MissingLibraryError", "missing-library")
    assert FEATURES[feature][1] in text
    assert "install" in text


def test_a_voice_without_its_runtime_is_missing_a_library():
    kind, _, text = told_without("onnxruntime")["tts"]
    assert kind == "MissingLibraryError"
    assert "speaking" in text


def test_an_engine_that_is_not_in_the_table_is_refused_with_those_that_are():
    with pytest.raises(EngineError, match="no engine parrot") as caught:
        engines.make_transcriber(replace(SETTINGS.transcription, engine="parrot"), Path("model"), 1)
    assert "whisper.cpp" in caught.value.remedy


@pytest.mark.parametrize(
    ("table", "allowed"),
    [
        (engines.VADS, config.VadEngine),
        (engines.TRANSCRIBERS, config.TranscriptionEngine),
        (engines.SYNTHESIZERS, config.VoiceEngine),
    ],
)
def test_the_configuration_allows_exactly_the_engines_in_the_table(table, allowed):
    assert set(allowed.__args__) == set(table)


@pytest.mark.parametrize("octets", [b"", b"<html>not found</html>"])
@pytest.mark.parametrize("damaged", ["voice.onnx", "voice.onnx.json"])
def test_a_voice_that_cannot_be_loaded_is_refused_by_name(tmp_path, damaged, octets):
    pytest.importorskip("piper", reason="Piper is not installed")
    (tmp_path / "voice.onnx.json").write_text('{"audio": {"sample_rate": 22050}}')
    (tmp_path / "voice.onnx").write_bytes(b"")
    (tmp_path / damaged).write_bytes(octets)
    with pytest.raises(EngineError, match=r"Piper cannot load .*voice\.onnx"):
        engines.make_synthesizer(SETTINGS.voice, tmp_path / "voice.onnx", 1)


def test_a_voice_without_its_description_is_refused_by_name(tmp_path):
    pytest.importorskip("piper", reason="Piper is not installed")
    (tmp_path / "voice.onnx").write_bytes(b"")
    with pytest.raises(EngineError, match=r"voice\.onnx"):
        engines.make_synthesizer(SETTINGS.voice, tmp_path / "voice.onnx", 1)
