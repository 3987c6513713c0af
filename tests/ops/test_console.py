"""What a run prints, and who can read it."""

from __future__ import annotations

import contextlib
import io
import json
import os
import socket
from contextlib import contextmanager

import pytest

from ops.receipts import ANSWERED
from oyez.ops.console import Console, reaches_journal


@contextmanager
def a_pipe():
    reading, writing = os.pipe()
    yield writing
    os.close(reading)
    os.close(writing)


@contextmanager
def a_socket():
    # What systemd connects a unit's output with is a stream socket.
    near, far = socket.socketpair()
    with near, far:
        yield near.fileno()


def identity(descriptor):
    status = os.fstat(descriptor)
    return f"{status.st_dev}:{status.st_ino}"


@pytest.mark.parametrize("connected", [a_socket, a_pipe])
def test_output_that_goes_to_the_journal_is_known_by_its_device_and_inode(connected, monkeypatch):
    with connected() as descriptor:
        monkeypatch.setenv("JOURNAL_STREAM", identity(descriptor))
        assert reaches_journal(descriptor)


@pytest.mark.parametrize("connected", [a_socket, a_pipe])
def test_output_that_was_redirected_does_not_go_to_the_journal(connected, monkeypatch):
    # The variable is still set for what a unit starts in a pipe or with a file.
    with a_socket() as journal, connected() as descriptor:
        monkeypatch.setenv("JOURNAL_STREAM", identity(journal))
        assert not reaches_journal(descriptor)


@pytest.mark.parametrize("said", [None, "", "8", "8:", "a:b", "1:2:3", ":"])
def test_without_a_stream_of_the_journal_nothing_goes_there(said, monkeypatch):
    monkeypatch.delenv("JOURNAL_STREAM", raising=False)
    if said is not None:
        monkeypatch.setenv("JOURNAL_STREAM", said)
    with a_pipe() as descriptor:
        assert not reaches_journal(descriptor)


def test_output_that_is_closed_does_not_go_to_the_journal(monkeypatch):
    with a_pipe() as descriptor:
        monkeypatch.setenv("JOURNAL_STREAM", identity(descriptor))
    assert not reaches_journal(descriptor)


def printed(*, as_json=False, with_text=True):
    """A whole turn, as it is printed."""
    stream = io.StringIO()
    console = Console(as_json=as_json, with_text=with_text, stream=stream)
    console.state("listening", ready_ms=800)
    console.heard("hello")
    console.answering("You said: hello")
    console.receipt(ANSWERED)
    return stream.getvalue().splitlines()


def test_a_person_sees_text_answer_and_receipt():
    assert printed() == [
        'heard   "hello"',
        'answer  "You said: hello"',
        *ANSWERED.lines(with_text=True),
    ]


def test_without_text_a_person_sees_the_receipt_alone():
    assert printed(with_text=False) == ANSWERED.lines(with_text=False)


@pytest.mark.parametrize("with_text", [True, False])
def test_a_program_sees_one_json_object_a_line(with_text):
    state, receipt = map(json.loads, printed(as_json=True, with_text=with_text))
    assert state == {"event": "state", "state": "listening", "ready_ms": 800}
    assert receipt == ANSWERED.fields(with_text=with_text)


@pytest.mark.parametrize("as_json", [True, False])
@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_an_output_that_knows_few_characters_does_not_end_the_run(encoding, as_json):
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding)
    console = Console(as_json=as_json, with_text=True, stream=stream)
    console.state("hören", text="日本")
    console.heard("“日本” \udc80")
    console.receipt(ANSWERED)
    lines = raw.getvalue().decode(encoding).splitlines()
    assert any("turn on the kitchen light" in line for line in lines)


def test_each_line_is_there_at_once_for_a_reader_behind_a_pipe():
    reading, writing = os.pipe()
    with os.fdopen(writing, "w", encoding="utf-8") as stream:
        Console(as_json=False, with_text=True, stream=stream).heard("hello")
        assert os.read(reading, 100) == b'heard   "hello"\n'
    os.close(reading)


def test_without_a_stream_it_prints_on_stdout(capsys):
    Console(as_json=False, with_text=True).heard("hello")
    assert capsys.readouterr().out == 'heard   "hello"\n'


@contextmanager
def a_full_pipe():
    """A pipe that nobody reads and that takes no more; (its reading end, a text stream into it)."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writing, bytes(4096))
    os.set_blocking(writing, True)
    with os.fdopen(writing, "w") as stream:
        yield reading, stream
    os.close(reading)


def test_a_run_that_is_asked_to_stop_waits_for_no_reader():
    with a_full_pipe() as (_, stream):
        console = Console(as_json=True, with_text=True, stream=stream)
        console.hurry()
        console.receipt(ANSWERED)  # it would block for ever


def test_lines_that_nobody_read_are_counted_and_told_when_somebody_reads(caplog):
    with a_full_pipe() as (reading, stream):
        console = Console(as_json=True, with_text=True, stream=stream)
        console.hurry()
        console.state("listening")
        console.receipt(ANSWERED)
        os.read(reading, 1 << 16)
        assert not caplog.records
        console.state("listening")
        assert [record.getMessage() for record in caplog.records] == [
            "2 lines were not printed: nobody read them"
        ]
