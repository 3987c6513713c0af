"""Progress: lines in a log, a bar on a real terminal that never wraps."""

from __future__ import annotations

import fcntl
import io
import os
import struct
import termios
from contextlib import contextmanager, suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oyez.models.progress import bar_line, progress_on, size_text


@contextmanager
def terminal(columns):
    """A real pseudo-terminal; yields the program's stream and, once closed, what was shown."""
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    shown = []
    try:
        with os.fdopen(slave, "w") as stream:
            yield stream, shown
        with suppress(OSError):  # a closed terminal ends with an error
            while piece := os.read(master, 1 << 16):
                shown.append(piece.decode())
    finally:
        os.close(master)


def test_a_log_gets_a_line_at_the_beginning_at_each_quarter_and_at_the_end():
    log = io.StringIO()
    progress = progress_on(log)
    progress.start("fetching x", 4_000_000)
    for _ in range(40):
        progress.advance(100_000)
    progress.done()
    assert log.getvalue().splitlines() == [
        "fetching x (4.0 MB)",
        "fetching x: 25 %",
        "fetching x: 50 %",
        "fetching x: 75 %",
        "fetching x: done",
    ]


def test_a_log_survives_work_of_unknown_size():
    log = io.StringIO()
    progress = progress_on(log)
    progress.start("x", 0)
    progress.advance(10)
    progress.done()
    assert log.getvalue().splitlines()[-1] == "x: done"


def test_the_last_state_of_a_bar_stays_on_the_terminal():
    with terminal(columns=60) as (stream, shown):
        progress = progress_on(stream)
        progress.start("fetching x", 1_000_000)
        progress.advance(250_000)
        progress.done()
    text = "".join(shown)
    assert text.endswith("100% of 1.0 MB\r\n")
    assert text.count("\n") == 1
    assert text.count("\r\x1b[K") >= 2


@pytest.mark.parametrize("columns", [20, 60, 200])
def test_a_bar_is_as_wide_as_the_terminal_and_never_wraps(columns):
    with terminal(columns) as (stream, shown):
        progress = progress_on(stream)
        progress.start("rewriting the weights", 1_000_000)
    assert len("".join(shown).removeprefix("\r\x1b[K")) == columns - 1


def test_a_note_has_a_line_of_its_own_below_an_unfinished_bar():
    with terminal(columns=60) as (stream, shown):
        progress = progress_on(stream)
        progress.start("x", 1_000_000)
        progress.note("the line broke")
        progress.start("x", 1_000_000)
    lines = "".join(shown).split("\r\n")
    assert lines[1] == "the line broke"
    assert lines[0].startswith("\r\x1b[Kx [")
    assert lines[2].startswith("\r\x1b[Kx [")


@given(
    label=st.text("abc ", min_size=1, max_size=90),
    count=st.integers(0, 2 * 10**9),
    total=st.integers(1, 10**9),
    columns=st.integers(1, 200),
)
def test_a_bar_never_exceeds_its_columns(label, count, total, columns):
    assert len(bar_line(label, count, total, columns)) <= columns


def test_a_bar_fills_in_proportion():
    line = bar_line("x", 250, 1000, 40)
    filled, empty = line.count("#"), line.count(".") - 1  # one dot is in the size
    assert filled == (filled + empty) // 4
    assert " 25% of 1.0 kB" in line


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0.0 kB"), (4794, "4.8 kB"), (32_166_155, "32.2 MB")]
)
def test_sizes_are_decimal(count, text):
    assert size_text(count) == text
