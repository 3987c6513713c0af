"""What tests with real threads share."""

from __future__ import annotations

import sys
import threading
from contextlib import contextmanager

import pytest
from hypothesis import settings

PATIENCE_S = 20

# A busy machine must not fail a test.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")


@pytest.fixture
def restless():
    """Threads that take turns as often as they can, so that they meet in every place."""
    interval_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval_s)


@pytest.fixture
def beside():
    """A context that runs a function on another thread; what it raises fails the test."""

    @contextmanager
    def run(function):
        errors = []

        def guarded():
            try:
                function()
            except BaseException as error:  # noqa: BLE001 - raised again below
                errors.append(error)

        thread = threading.Thread(target=guarded, daemon=True)
        thread.start()
        yield thread
        thread.join(PATIENCE_S)
        if errors:
            raise errors[0]
        assert not thread.is_alive(), "the other thread waits for ever"

    return run
