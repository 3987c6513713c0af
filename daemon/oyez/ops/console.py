"""What a run prints on stdout: heard words, answers and receipts, for a person or as JSON lines.

Main's thread only. Talk (start, warnings, errors) goes through logging to stderr instead.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from oyez.ops.receipt import Receipt


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
        # A reader behind a pipe waits for each line; and another encoding than UTF-8 must not
        # end the daemon at the first curly quote.
        encoding = self._stream.encoding or "utf-8"
        self._stream.write(text.encode(encoding, "replace").decode(encoding) + "\n")
        self._stream.flush()
