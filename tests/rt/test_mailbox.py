"""The mailbox: in order, bounded, never silently losing; and honest about being idle."""

from __future__ import annotations

import signal
from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oyez.rt.mailbox import Mailbox
from workers.scripted import wait_until

MANY = 3_000


@given(steps=st.lists(st.sampled_from(["post", "take", "wake"])), capacity=st.integers(1, 5))
def test_messages_come_in_order_and_none_but_refused_ones_are_lost(steps, capacity):
    mailbox, expected = Mailbox(capacity), deque()
    for number, step in enumerate(steps):
        if step == "post":
            taken = mailbox.post(number)
            assert taken == (len(expected) < capacity)
            expected.extend([number] * taken)
        elif step == "wake":
            mailbox.wake()
        else:
            assert mailbox.take(0) == (expected.popleft() if expected else None)


def test_a_full_mailbox_has_room_again_after_a_take():
    mailbox = Mailbox(1)
    assert mailbox.post("one")
    assert not mailbox.post("two")
    assert mailbox.take() == "one"
    assert mailbox.post("three")
    assert mailbox.take() == "three"


def test_a_wake_up_ends_a_take_without_a_message():
    mailbox = Mailbox(1)
    mailbox.wake()
    assert mailbox.take(None) is None


def test_a_take_that_nobody_answers_ends_with_its_time():
    assert Mailbox(1).take(1) is None


def test_a_signal_handler_may_post():
    mailbox = Mailbox(1)
    before = signal.signal(signal.SIGALRM, lambda *_: mailbox.post("signal"))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.005)
        assert mailbox.take(None) == "signal"
    finally:
        signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("restless")
def test_no_message_of_several_senders_is_lost_and_each_sender_s_stay_in_order(beside):
    mailbox = Mailbox(8)

    def sender(name):
        def send():
            for number in range(MANY // 3):
                while not mailbox.post((name, number)):
                    pass

        return send

    taken = {"a": [], "b": [], "c": []}
    with beside(sender("a")), beside(sender("b")), beside(sender("c")):
        while sum(map(len, taken.values())) < MANY // 3 * 3:
            if (message := mailbox.take(None)) is not None:
                taken[message[0]].append(message[1])
    assert taken == {name: list(range(MANY // 3)) for name in "abc"}


@pytest.mark.usefixtures("restless")
def test_no_wake_up_is_lost_by_an_owner_that_sleeps_after_each_message(beside):
    there, back = Mailbox(1), Mailbox(1)

    def echo():
        for _ in range(MANY):
            while (message := there.take(None)) is None:
                pass
            assert back.post(message)

    with beside(echo):
        for number in range(MANY):
            assert there.post(number)
            while (answer := back.take(None)) is None:
                pass
            assert answer == number


def test_a_new_mailbox_is_idle_and_one_that_holds_a_message_is_not():
    mailbox = Mailbox(1)
    assert mailbox.idle
    mailbox.post("one")
    assert not mailbox.idle


def test_the_owner_is_busy_with_a_message_until_it_comes_back_for_more():
    mailbox = Mailbox(2)
    mailbox.post("one")
    assert mailbox.take() == "one"
    assert not mailbox.idle
    assert mailbox.take(0) is None
    assert mailbox.idle


def test_an_owner_that_ended_is_idle_but_for_what_still_waits():
    mailbox = Mailbox(2)
    mailbox.post("one")
    mailbox.take()
    mailbox.rest()
    assert mailbox.idle
    mailbox.post("two")
    assert not mailbox.idle


@pytest.mark.parametrize("asleep", [False, True])
def test_it_is_not_idle_at_any_moment_while_a_message_goes_from_the_queue_to_the_owner(asleep):
    mailbox = Mailbox(1)

    class Watched(deque):
        """Looks, as another thread might, just before and just after a message leaves."""

        def popleft(self):
            assert not mailbox.idle
            message = super().popleft()
            assert not mailbox.idle
            return message

        def __bool__(self):
            if asleep and not self.looked:
                self.looked = True  # the first look finds nothing: the owner goes to sleep
                return False
            return len(self) > 0

        looked = False

    mailbox._messages = Watched()
    mailbox.post("one")
    mailbox._messages.looked = False
    assert mailbox.take(None) == "one"
    assert not mailbox.idle


@pytest.mark.usefixtures("restless")
def test_it_is_never_idle_between_a_post_and_the_end_of_the_work_on_it(beside):
    mailbox, done = Mailbox(1), [0]

    def owner():
        while done[0] < MANY:
            if mailbox.take(None) is not None:
                done[0] += 1
        mailbox.rest()

    with beside(owner):
        for number in range(1, MANY + 1):
            assert mailbox.post(number)
            wait_until(lambda: mailbox.idle)
            assert done[0] == number
