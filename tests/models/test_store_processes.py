"""Fetches of several processes, and fetches that are killed: real processes, a real hub.

Nothing here waits for a time: the hub holds a download until the test lets it go on.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

import oyez
from models import makers
from oyez.models.store import ModelStore

CONTENT = makers.whisper_content(4_000_000)
HALF = len(CONTENT) // 2
PROGRAM = """
import resource, signal, sys
from models import makers
from oyez.errors import OyezError
from oyez.models.progress import progress_on
from test_store_processes import build
signal.signal(signal.SIGINT, signal.default_int_handler)  # also when started in the background
url, folder, limit_bytes = sys.argv[1], sys.argv[2], int(sys.argv[3])
if limit_bytes:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, limit_bytes))
try:
    build(url, folder).fetch("tiny", offline=False, progress=progress_on(sys.stderr))
except OyezError as exc:
    sys.exit(f"{exc.code}: {exc}")
"""


def build(url, folder):
    source = makers.hub_source(url)
    return ModelStore(
        Path(folder), makers.catalogue(makers.model("tiny", {"ggml-tiny.bin": CONTENT}, [source]))
    )


@contextmanager
def fetching(hub, folder, *, limit_bytes=0):
    """Another process that fetches the model."""
    here = Path(__file__).parent
    paths = [Path(oyez.__file__).parents[1], here, here.parent]
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, hub.url, str(folder), str(limit_bytes)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def until(process, words):
    """Read what a process says until it says ``words``."""
    said = []
    for line in process.stderr:
        said.append(line)
        if words in line:
            return said
    raise AssertionError(f"the process ended without saying {words!r}: {said}")


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "models"
    path.mkdir()
    return path


@pytest.fixture
def held(hub):
    """The hub sends half of the first download and the rest when the event is set."""
    hub.put({"ggml-tiny.bin": CONTENT})
    go_on = threading.Event()

    def answer(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(CONTENT)))
        handler.end_headers()
        handler.wfile.write(CONTENT[:HALF])
        handler.wfile.flush()
        go_on.wait()
        try:
            handler.wfile.write(CONTENT[HALF:])
        except ConnectionError:
            handler.close_connection = True  # the process was killed meanwhile
        return True

    hub.faults = [answer]
    yield go_on
    go_on.set()


def test_a_second_fetch_waits_says_so_and_finds_the_file_there(hub, folder, held):
    with fetching(hub, folder) as first:
        until(first, "25 %")
        with fetching(hub, folder) as second:
            until(second, f"another fetch is at work in {folder}; waiting for it")
            held.set()
            assert first.wait(60) == 0
            assert second.wait(60) == 0
    assert len(hub.requests) == 1
    assert (folder / "ggml-tiny.bin").read_bytes() == CONTENT


@pytest.mark.parametrize("deadly", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_killed_fetch_leaves_no_half_file_and_no_lock_and_is_resumed(hub, folder, held, deadly):
    with fetching(hub, folder) as killed:
        until(killed, "25 %")
        killed.send_signal(deadly)
        assert killed.wait(60) != 0
    assert not (folder / "ggml-tiny.bin").exists()
    begun_bytes = (folder / ".fetching" / "ggml-tiny.bin.part").stat().st_size
    assert 0 < begun_bytes <= HALF

    said = makers.Said()
    store = build(hub.url, folder)
    assert store.fetch("tiny", offline=False, progress=said).read_bytes() == CONTENT
    assert said.notes == []
    assert hub.requests[1][1] == f"bytes={begun_bytes}-"
    assert not (folder / ".fetching").exists()


def test_a_file_that_may_not_grow_further_is_an_output_error_and_leaves_nothing(hub, folder):
    hub.put({"ggml-tiny.bin": CONTENT})
    with fetching(hub, folder, limit_bytes=1_000_000) as limited:
        until(limited, f"output: {folder} is full: File too large")
        assert limited.wait(60) == 1
    assert not (folder / "ggml-tiny.bin").exists()
    assert not (folder / ".fetching").exists()
