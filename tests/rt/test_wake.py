"""The wake-up call: never lost, never waited for."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from oyez.rt.wake import WakeUp


def test_a_call_made_while_nobody_sleeps_is_kept_for_the_next_wait():
    wake_up = WakeUp()
    wake_up.call()
    wake_up.wait(None)  # or it would sleep for ever


def test_many_calls_are_kept_as_one():
    wake_up = WakeUp()
    for _ in range(1_000):
        wake_up.call()
    wake_up.wait(None)
    assert not wake_up._poll.poll(0)


def test_without_a_call_the_wait_ends_with_its_time():
    WakeUp().wait(1)


def test_a_sleeper_is_woken_by_another_thread(beside):
    wake_up, answer = WakeUp(), WakeUp()

    def sleeper():
        for _ in range(200):
            wake_up.wait(None)
            answer.call()

    with beside(sleeper):
        for _ in range(200):
            wake_up.call()
            answer.wait(None)


def test_a_signal_handler_may_call():
    wake_up = WakeUp()
    before = signal.signal(signal.SIGALRM, lambda *_: wake_up.call())
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.005)
        wake_up.wait(None)
    finally:
        signal.signal(signal.SIGALRM, before)


def test_its_descriptor_is_closed_with_it():
    def opened():
        return len(list(Path("/proc/self/fd").iterdir()))

    before = opened()
    wake_ups = [WakeUp() for _ in range(10)]
    assert opened() == before + 10
    descriptor = wake_ups[0].descriptor
    assert not os.get_inheritable(descriptor)
    wake_ups.clear()
    assert opened() == before
