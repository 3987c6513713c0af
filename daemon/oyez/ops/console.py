"""What a run prints on stdout: heard words, answers and receipts, for a person or as JSON lines.

Main's thread only. Talk (start, warnings, errors) goes through logging to stderr instead.
"""

from __future__ import annotations

import json
import logging
import os
import select
import sys
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from oyez.ops.receipt import Receipt

logger = logging.getLogger(__name__)

PATIENCE_MS = 5_000
"""So long may a reader take for a line before those that follow are counted and left out."""
LOOK_MS = 100
"""How often a wait for the reader looks whether the run is asked to stop."""


def reaches_journal(descriptor: int) -> bool:
    """Whether a file descriptor is connected to systemd's journal (see systemd.exec(5))."""
    try:
        device, inode = map(int, os.environ.get("JOURNAL_STREAM", "").split(":"))
        status = os.fstat(descriptor)
    except (ValueError, OSError):
        return False
    return (status.st_dev, status.st_ino) == (device, inode)


class Console:
    """Prints to ``stream``.

    Args:
        as_json: one JSON object a line instead of text.
        with_text: whether what people said and heard may be shown.
    """

    def __init__(self, *, as_json: bool, with_text: bool, stream: TextIO | None = None) -> None:
        self._as_json = as_json
        self._with_text = with_text
        self._stream = stream or sys.stdout
        self._hurried = False
        self._unprinted = 0

    def hurry(self) -> None:
        """Wait for no reader any more: the run is asked to stop. Signal handlers may call it."""
        self._hurried = True

    def state(self, state: str, **fields: Any) -> None:
        """The daemon's state has changed; shown as JSON alone, a person sees the log."""
        if self._as_json:
            self._json({"event": "state", "state": state, **fields})

    def heard(self, text: str) -> None:
        """The final text of an utterance."""
        if self._with_text and not self._as_json:
            self._print(f'heard   "{text}"')

    def answering(self, text: str) -> None:
        """What is going to be answered."""
        if self._with_text and not self._as_json:
            self._print(f'answer  "{text}"')

    def receipt(self, receipt: Receipt) -> None:
        """A turn is over."""
        if self._as_json:
            self._json(receipt.fields(with_text=self._with_text))
        else:
            self._print("\n".join(receipt.lines(with_text=self._with_text)))

    def _json(self, fields: dict[str, Any]) -> None:
        self._print(json.dumps(fields, ensure_ascii=False))

    def _print(self, text: str) -> None:
        # Main must not hang on a reader that has stopped reading (a paused pager): it could not
        # be stopped then, and its mailbox would overflow.
        if not self._is_read():
            self._unprinted += 1
            return
        if self._unprinted:
            logger.warning("%d lines were not printed: nobody read them", self._unprinted)
            self._unprinted = 0
        # A reader behind a pipe waits for each line; and another encoding than UTF-8 must not
        # end the daemon at the first curly quote.
        encoding = self._stream.encoding or "utf-8"
        self._stream.write(text.encode(encoding, "replace").decode(encoding) + "\n")
        self._stream.flush()

    def _is_read(self) -> bool:
        """Whether there is room for a line, after some patience where there was until now.

        A pipe that is ready takes PIPE_BUF (4,096) bytes at once, which no line reaches.
        """
        try:
            poll = select.poll()
            poll.register(self._stream.fileno(), select.POLLOUT)
        except OSError:  # no file at all: a text in memory
            return True
        patience_ms = 0 if self._unprinted else PATIENCE_MS
        while not poll.poll(min(patience_ms, LOOK_MS)):
            patience_ms -= LOOK_MS
            if self._hurried or patience_ms <= 0:
                return False
        return True
