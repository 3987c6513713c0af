"""Engines that do what a test says, and a microphone that can be held."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from oyez.audio.ports import Period
from oyez.messages import Reading
from oyez.speech.engines import Aborted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy as np

    from oyez.audio.ports import Capture
    from oyez.rt.mailbox import Mailbox

PATIENCE_S = 20
"""A test that waits longer than this has failed; it is never waited for in a passing one."""


def wait_until(condition: Callable[[], bool]) -> None:
    """Come back when the condition holds, which another thread sees to."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline_s, "it never came true"


def next_of(mailbox: Mailbox[object]) -> object:
    """The next message; a wake-up that came for one that was taken already is passed over."""
    deadline_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline_s:
        if (message := mailbox.take(100)) is not None:
            return message
    raise AssertionError("no message came")


def reading(text: str) -> Reading:
    """A text with plausible costs."""
    return Reading(text=text, probability=0.9, context=256, tries=1)


class ScriptedTranscriber:
    """Answers with ``texts``, in turn; an exception among them is raised.

    With ``stuck`` every ``read`` begins, says so in ``reading``, and ends by ``abort`` alone.
    """

    def __init__(self, *texts: str | Exception, stuck: bool = False) -> None:
        self._texts = list(texts)
        self._stuck = stuck
        self._aborted = threading.Event()
        self.reading = threading.Event()
        self.heard: list[np.ndarray] = []

    def read(self, samples: np.ndarray) -> Reading:
        self.heard.append(samples)
        self.reading.set()
        if self._stuck:
            assert self._aborted.wait(PATIENCE_S)
        if self._aborted.is_set():
            raise Aborted
        text = self._texts.pop(0)
        if isinstance(text, Exception):
            raise text
        return reading(text)

    read_whole = read

    def warm_up(self) -> None:
        """Nothing to warm."""

    def abort(self) -> None:
        self._aborted.set()


class ScriptedVoice:
    """Says ``pieces`` (float32 arrays, or an exception to be raised), whatever the text."""

    def __init__(self, *pieces: np.ndarray | Exception, rate_hz: int = 16_000) -> None:
        self._pieces = pieces
        self.rate_hz = rate_hz
        self.texts: list[str] = []

    def speak(self, text: str, *, steady: bool = False) -> Iterator[np.ndarray]:  # noqa: ARG002 - always steady
        self.texts.append(text)
        for piece in self._pieces:
            if isinstance(piece, Exception):
                raise piece
            yield piece


class HeldMicrophone:
    """Gives ``periods`` of a source at once, and then empty ones until it is ``let_on``.

    Where a failure is given it is raised instead, as a card does that is pulled out.
    """

    def __init__(self, capture: Capture, periods: int, failure: Exception | None = None) -> None:
        self._capture = capture
        self._periods = periods
        self._failure = failure
        self._let_on = threading.Event()
        self.stream = capture.stream
        self.period_frames = capture.period_frames
        self.description = capture.description

    def let_on(self) -> None:
        """Give the rest of the source. Any thread."""
        self._let_on.set()

    def read(self) -> Period | None:
        if self._periods == 0 and not self._let_on.wait(0.001):
            if self._failure is not None:
                raise self._failure
            return Period(b"", overrun=False)
        self._periods = max(0, self._periods - 1)
        return self._capture.read()

    def close(self) -> None:
        self._capture.close()
