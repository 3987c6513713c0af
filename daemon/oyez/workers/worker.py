"""What all workers share: a named thread around a mailbox, and its end."""

from __future__ import annotations

import threading
from abc import abstractmethod
from typing import Generic, TypeVar

from oyez.messages import ThreadFailed
from oyez.rt.mailbox import Mailbox

Message = TypeVar("Message")


class Worker(threading.Thread, Generic[Message]):
    """Handles the messages of ``inbox``, one after the other, on a thread of its own.

    The thread is a daemon: a model that does not return can not keep the process alive.
    """

    def __init__(self, name: str, *, capacity: int, main: Mailbox[object]) -> None:
        super().__init__(name=name, daemon=True)
        self.inbox: Mailbox[Message] = Mailbox(capacity)
        self._main = main
        self._stopping = False

    def stop(self) -> None:
        """End after the present message; what waits is left. Any thread."""
        self._stopping = True
        self.inbox.wake()

    def run(self) -> None:
        """Take messages until ``stop`` or an error, which main is told."""
        try:
            while not self._stopping:
                message = self.inbox.take()
                if message is not None and not self._stopping:
                    self._work_on(message)
        except Exception as error:  # noqa: BLE001 - the thread's top: main reports it
            self._main.post(ThreadFailed(thread=self.name, error=error))
        self.inbox.rest()

    @abstractmethod
    def _work_on(self, message: Message) -> None:
        """Work on one message.

        Not called ``_handle``, since Python 3.13's Thread has one of its own.
        """
