"""A wake-up call between threads that never makes the caller wait: an eventfd."""

from __future__ import annotations

import contextlib
import os
import select


class WakeUp:
    """One thread sleeps in ``wait``; any thread, and a signal handler, may ``call``.

    Calls made while nobody sleeps are kept, as one, for the next ``wait``.
    """

    def __init__(self) -> None:
        self.descriptor = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        """For a poll together with others; ``wait`` then takes the call back."""
        self._poll = select.poll()
        self._poll.register(self.descriptor, select.POLLIN)

    def call(self) -> None:
        """Wake the sleeper, now or at its next ``wait``."""
        os.eventfd_write(self.descriptor, 1)

    def wait(self, timeout_ms: int | None) -> None:
        """Sleep until called, or for ``timeout_ms`` (None: for ever). One thread only."""
        if self._poll.poll(timeout_ms):
            with contextlib.suppress(BlockingIOError):
                os.eventfd_read(self.descriptor)

    def __del__(self) -> None:
        # With the last reference, so that no late caller can write to a number that meanwhile
        # belongs to another file.
        os.close(self.descriptor)
