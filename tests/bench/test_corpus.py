"""Where recordings come from: a folder that is named, or a source package that pip fetches."""

from __future__ import annotations

import hashlib
import importlib.util
import io
import json
import os
import subprocess
import tarfile
import wave

import numpy as np
import pytest

import corpus


@pytest.fixture(autouse=True)
def forgotten():
    """What was found before must not decide, nor what is found here."""
    corpus._sought.cache_clear()
    yield
    corpus._sought.cache_clear()


def wav(frames=1600, rate_hz=16_000):
    content = io.BytesIO()
    with wave.open(content, "wb") as recording:
        recording.setnchannels(1)
        recording.setsampwidth(2)
        recording.setframerate(rate_hz)
        recording.writeframes(np.arange(frames, dtype="<i2").tobytes())
    return content.getvalue()


def test_the_folder_that_is_named_serves(tmp_path, monkeypatch):
    (tmp_path / "b.wav").write_bytes(wav())
    entries = [
        {"file": "b.wav", "kind": "speech", "text": "hello"},
        {"file": "a.wav", "kind": "noise", "text": ""},
        {"file": "c.wav", "kind": "speech", "text": None},
    ]
    (tmp_path / "manifest.json").write_text(json.dumps(entries), encoding="utf-8")
    monkeypatch.setenv("OYEZ_AUDIO", str(tmp_path))
    assert [clip.name for clip in corpus.recordings()] == ["a", "b", "c"]
    assert [clip.name for clip in corpus.recordings("noise")] == ["a"]
    (said,) = corpus.spoken()
    np.testing.assert_allclose(said.samples * 32768, np.arange(1600))


def test_a_named_folder_without_recordings_is_told_and_nothing_else_is_tried(tmp_path, monkeypatch):
    monkeypatch.setenv("OYEZ_AUDIO", str(tmp_path))
    with pytest.raises(corpus.NoRecordingsError, match="OYEZ_AUDIO names"):
        corpus.recordings()
    with pytest.raises(pytest.skip.Exception, match="no recordings: OYEZ_AUDIO"):
        corpus.recordings_or_skip()


def test_a_recording_of_another_rate_is_refused_by_name(tmp_path):
    (tmp_path / "fast.wav").write_bytes(wav(rate_hz=48_000))
    with pytest.raises(ValueError, match=r"fast\.wav is not 16 kHz"):
        _ = corpus.Clip(tmp_path / "fast.wav", "speech", None).samples


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A made-up source package in the only folder where pip looks; gives its sha256."""
    if importlib.util.find_spec("pip") is None:
        pytest.skip("this interpreter has no pip")
    backend = """
import pathlib

def prepare_metadata_for_build_wheel(folder, settings=None):
    info = pathlib.Path(folder, "pocketsphinx-5.1.1.dist-info")
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\\nName: pocketsphinx\\nVersion: 5.1.1\\n")
    return info.name
"""
    files = {
        "pyproject.toml": b'[build-system]\nrequires = []\nbuild-backend = "backend"\n'
        b'backend-path = ["."]\n',
        "backend.py": backend.encode(),
        "PKG-INFO": b"Metadata-Version: 2.1\nName: pocketsphinx\nVersion: 5.1.1\n",
        "test/data/goforward.raw": np.arange(800, dtype="<i2").tobytes(),
        "test/data/cards/cards.transcription": b"<s> ten of clubs  </s> (001)\n",
        "test/data/cards/001.wav": wav(),
        "test/data/librivox/transcription": b"<s> he was not </s> (sense_01-0880)\n",
        "test/data/librivox/sense_01-0880.wav": wav(),
    }
    links = tmp_path / "links"
    links.mkdir()
    archive = links / "pocketsphinx-5.1.1.tar.gz"
    with tarfile.open(archive, "w:gz") as packed:
        for name, content in files.items():
            member = tarfile.TarInfo(f"pocketsphinx-5.1.1/{name}")
            member.size = len(content)
            packed.addfile(member, io.BytesIO(content))
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    for name, value in {
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(links),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }.items():
        monkeypatch.setenv(name, value)
    return hashlib.sha256(archive.read_bytes()).hexdigest()


def test_a_package_with_another_checksum_is_refused_and_nothing_is_kept(package, tmp_path):
    with pytest.raises(ValueError, match=f"has the sha256 {package} instead of"):
        corpus._from_package()
    assert list((tmp_path / "cache" / "oyez-tests").iterdir()) == []


def test_the_package_is_fetched_once_and_its_texts_come_with_it(package, tmp_path, monkeypatch):
    monkeypatch.setattr(corpus, "_SHA256", package)
    clips = corpus._from_package()
    texts = {clip.name: clip.text for clip in clips}
    assert texts == {
        "cards_001": "ten of clubs",
        "goforward": "go forward ten meters",
        "librivox_0880": "he was not",
    }
    assert [len(clip.samples) for clip in clips] == [1600, 800, 1600]
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "nowhere"))
    assert corpus._from_package() == clips


def test_a_half_written_cache_is_replaced(package, tmp_path, monkeypatch):
    monkeypatch.setattr(corpus, "_SHA256", package)
    half = tmp_path / "cache" / "oyez-tests" / "pocketsphinx-5.1.1"
    half.mkdir(parents=True)
    (half / "goforward.wav").write_bytes(b"RIFF")
    assert len(corpus._from_package()) == 3


def test_without_folder_and_package_every_reason_is_told(package, tmp_path, monkeypatch):
    monkeypatch.delenv("OYEZ_AUDIO", raising=False)
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "nowhere"))
    monkeypatch.setattr(corpus, "__file__", str(tmp_path / "checkout" / "tests" / "corpus.py"))
    with pytest.raises(corpus.NoRecordingsError, match=r"shared/audio is not there.*pocketsphinx"):
        corpus.recordings()


def test_the_real_package_holds_eleven_recordings_with_their_words():
    try:
        clips = corpus._from_package()
    except (OSError, subprocess.SubprocessError) as error:  # a wrong checksum is neither
        pytest.skip(f"the package index is out of reach: {error}")
    assert len(clips) == 11
    assert all(clip.text and len(clip.samples) > 16_000 for clip in clips)
