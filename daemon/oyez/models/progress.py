"""Telling how far a long piece of work is: a bar on a terminal, a few lines in a log.

Used by the one thread that does the work. ``progress_on`` chooses by the stream; sizes are
bytes, shown as kilobytes of 10^3 or megabytes of 10^6.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from typing import TextIO

_REDRAW_S = 0.1
_MEGABYTE = 1_000_000
_QUARTERS = 4
_SHORTEST_BAR = 8
_COLUMNS_UNKNOWN = 80


class Progress(Protocol):
    """One piece of work at a time; starting the next one ends an unfinished one."""

    def start(self, label: str, total_bytes: int) -> None:
        """Begin a piece of work."""

    def advance(self, count: int) -> None:
        """``count`` more bytes are done."""

    def done(self) -> None:
        """The piece of work is finished."""

    def note(self, text: str) -> None:
        """Say something in a line of its own."""


def progress_on(stream: TextIO) -> Progress:
    """A bar where a person watches, lines where a log does."""
    return TerminalBar(stream) if stream.isatty() else PlainProgress(stream)


def size_text(count: int) -> str:
    """A size for people: ``4.8 kB``, ``32.2 MB``."""
    return f"{count / 1e6:.1f} MB" if count >= _MEGABYTE else f"{count / 1e3:.1f} kB"


class PlainProgress:
    """A line at the beginning, at each quarter, and at the end."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._label = ""
        self._total = 1
        self._count = 0
        self._quarter = 0

    def start(self, label: str, total_bytes: int) -> None:
        """Begin a piece of work."""
        self._label, self._total, self._count, self._quarter = label, max(1, total_bytes), 0, 0
        self.note(f"{label} ({size_text(total_bytes)})")

    def advance(self, count: int) -> None:
        """``count`` more bytes are done."""
        self._count += count
        quarter = min(_QUARTERS - 1, self._count * _QUARTERS // self._total)
        if quarter > self._quarter:
            self._quarter = quarter
            self.note(f"{self._label}: {quarter * 100 // _QUARTERS} %")

    def done(self) -> None:
        """The piece of work is finished."""
        self.note(f"{self._label}: done")

    def note(self, text: str) -> None:
        """Say something in a line of its own."""
        self._stream.write(text + "\n")
        self._stream.flush()


class TerminalBar:
    """A bar that is drawn over itself; its last state stays."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._label = ""
        self._total = 1
        self._count = 0
        self._drawn_s = 0.0
        self._open = False

    def start(self, label: str, total_bytes: int) -> None:
        """Begin a piece of work."""
        self._end_line()
        self._label, self._total, self._count = label, max(1, total_bytes), 0
        self._draw()

    def advance(self, count: int) -> None:
        """``count`` more bytes are done."""
        self._count += count
        if time.monotonic() - self._drawn_s >= _REDRAW_S:
            self._draw()

    def done(self) -> None:
        """The piece of work is finished."""
        self._count = self._total
        self._draw()
        self._end_line()

    def note(self, text: str) -> None:
        """Say something in a line of its own."""
        self._end_line()
        self._stream.write(text + "\n")
        self._stream.flush()

    def _end_line(self) -> None:
        if self._open:
            self._stream.write("\n")
            self._open = False

    def _draw(self) -> None:
        self._open = True
        self._drawn_s = time.monotonic()
        try:
            columns = os.get_terminal_size(self._stream.fileno()).columns or _COLUMNS_UNKNOWN
        except OSError:
            columns = _COLUMNS_UNKNOWN
        self._stream.write(
            "\r\x1b[K" + bar_line(self._label, self._count, self._total, columns - 1)
        )
        self._stream.flush()


def bar_line(label: str, count: int, total: int, columns: int) -> str:
    """One line of at most ``columns`` characters; the bar shrinks first, then the label."""
    share = min(1.0, count / total)
    figures = f"{share:4.0%} of {size_text(total)}"
    room = columns - len(label) - len(figures) - 4
    if room < _SHORTEST_BAR:
        return f"{label[: max(0, columns - len(figures) - 1)]} {figures}"[:columns]
    filled = int(share * room)
    return f"{label} [{'#' * filled}{'.' * (room - filled)}] {figures}"
