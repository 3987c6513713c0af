"""A bounded mailbox that any thread, and a signal handler, may post to without a lock.

A deque (its append and popleft are atomic in CPython) holds the messages; a wake-up call tells the
one thread that owns the mailbox. Posting therefore never waits, which the audio thread's contract
and signal handlers need, and which ``queue.Queue`` with its lock cannot give.
"""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

from oyez.rt.wake import WakeUp

Message = TypeVar("Message")


class Mailbox(Generic[Message]):
    """Messages for one owning thread.

    When it holds ``capacity`` messages, ``post`` refuses (returns False) and the sender decides
    what is lost: nothing is dropped silently here. ``idle`` is true while the owner has nothing
    to do, so that an unpaced run can tell when all work is done.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._messages: deque[Message] = deque()
        self._wake_up = WakeUp()
        self._busy = False

    def post(self, message: Message) -> bool:
        """Leave a message; False when the mailbox is full. Any thread."""
        if len(self._messages) >= self._capacity:
            return False
        self._messages.append(message)
        self.wake()
        return True

    def wake(self) -> None:
        """Make the owner's ``take`` return, with or without a message. Any thread."""
        self._wake_up.call()

    def take(self, timeout_ms: int | None = None) -> Message | None:
        """The oldest message, or None when woken without one or after ``timeout_ms``.

        Owner only. Having come back for more, the owner is idle until it gets a message.
        """
        # Busy is set before the message leaves the queue, so that nobody who finds the queue
        # empty can take the owner for idle while it holds the message.
        self._busy = True
        if self._messages:
            return self._messages.popleft()
        self._busy = False
        self._wake_up.wait(timeout_ms)
        self._busy = True
        if self._messages:
            return self._messages.popleft()
        self._busy = False
        return None

    @property
    def idle(self) -> bool:
        """Whether no message waits and the owner is not working on one. Any thread."""
        # The order matters: see take().
        return not self._messages and not self._busy

    def rest(self) -> None:
        """Be idle for good: the owner ends. What waits stays to be seen. Owner only."""
        self._busy = False
