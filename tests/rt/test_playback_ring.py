"""The ring of what is to be spoken: every sample once, in order, and each mark at its sample."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oyez.rt.ring import Passed, PlaybackRing
from workers.scripted import PATIENCE_S, wait_until

MANY = 200_000


def count(begin, length):
    """Samples that tell where they are: float32 counts exactly that far."""
    return np.arange(begin, begin + length, dtype=np.float32)


def take(ring, frames):
    """One read into a buffer full of old samples."""
    out = np.full(frames, -1, np.float32)
    got = ring.read(out)
    assert not out[got:].any(), "what is not there must be silence"
    return out[:got]


def marks(ring):
    return list(iter(ring.passed, None))


@given(
    capacity=st.integers(1, 40),
    steps=st.lists(st.tuples(st.sampled_from(["write", "read"]), st.integers(0, 60)), max_size=40),
)
def test_all_samples_come_out_once_and_in_order(capacity, steps):
    ring, written, read = PlaybackRing(capacity), 0, 0
    for step, frames in steps:
        if step == "write":
            frames = min(frames, capacity - (written - read))  # noqa: PLW2901 - more would wait
            assert ring.write(count(written, frames))
            written += frames
        else:
            out = take(ring, frames)
            assert len(out) == min(frames, written - read)
            np.testing.assert_array_equal(out, count(read, len(out)))
            read += len(out)
        assert not ring.blocked


@given(
    answers=st.lists(st.lists(st.integers(1, 30), max_size=4), max_size=5),
    period=st.integers(1, 50),
)
def test_each_mark_passes_in_the_read_that_takes_its_sample(answers, period):
    ring, expected, written = PlaybackRing(1_000), [], 0
    for number, pieces in enumerate(answers):
        if pieces:
            ring.mark(number, last=False)
            expected.append((written // period, Passed(number, last=False)))
        for frames in pieces:
            ring.write(count(written, frames))
            written += frames
        if pieces:
            ring.mark(number, last=True)
            expected.append(((written - 1) // period, Passed(number, last=True)))
    passed = []
    for reading in range(written // period + 2):
        take(ring, period)
        passed += [(reading, mark) for mark in marks(ring)]
    assert passed == expected


def test_a_begin_mark_waits_for_its_first_sample():
    ring = PlaybackRing(10)
    ring.mark(1, last=False)
    take(ring, 5)
    assert marks(ring) == []
    ring.write(count(0, 1))
    take(ring, 5)
    assert marks(ring) == [Passed(1, last=False)]
    assert marks(ring) == []


def test_an_end_mark_that_comes_after_its_sound_was_played_passes_at_once():
    ring = PlaybackRing(10)
    ring.write(count(0, 3))
    take(ring, 5)
    ring.mark(1, last=True)
    assert marks(ring) == [Passed(1, last=True)]


def test_an_answer_that_begins_where_another_ends_begins_with_its_own_sample():
    ring = PlaybackRing(10)
    ring.write(count(0, 5))
    ring.mark(1, last=True)
    ring.mark(2, last=False)
    ring.write(count(5, 1))
    take(ring, 5)
    assert marks(ring) == [Passed(1, last=True)]
    take(ring, 5)
    assert marks(ring) == [Passed(2, last=False)]


def blocked(ring):
    wait_until(lambda: ring.blocked)


def test_a_writer_without_room_waits_and_says_so(beside):
    ring = PlaybackRing(10)
    with beside(lambda: ring.write(count(0, 25))):
        blocked(ring)
        out = [take(ring, 10)]
        blocked(ring)
        out.append(take(ring, 10))
        while len(out[-1]) == 10 or sum(map(len, out)) < 25:
            out.append(take(ring, 10))
    np.testing.assert_array_equal(np.concatenate(out), count(0, 25))
    assert not ring.blocked


def test_a_writer_is_no_longer_blocked_once_there_is_room_even_before_it_wakes(beside):
    ring, awake = PlaybackRing(10), threading.Event()
    ring._room.wait = lambda _timeout: awake.wait(PATIENCE_S)
    with beside(lambda: ring.write(count(0, 11))):
        blocked(ring)
        take(ring, 1)
        assert not ring.blocked
        awake.set()


def test_closing_frees_a_waiting_writer_and_refuses_more(beside):
    ring, answers = PlaybackRing(10), []
    with beside(lambda: answers.append(ring.write(count(0, 11)))):
        blocked(ring)
        ring.close()
    assert answers == [False]
    assert ring.write(count(0, 1)) is False


def test_what_was_written_before_the_close_can_still_be_read():
    ring = PlaybackRing(10)
    ring.write(count(0, 4))
    ring.close()
    np.testing.assert_array_equal(take(ring, 10), count(0, 4))


def test_a_read_between_the_writer_s_look_and_its_word_is_not_overlooked():
    # The writer has seen that there is no room and has not yet said that it waits: that read
    # wakes nobody, so the writer must look once more before it sleeps.
    class Hasty(PlaybackRing):
        reads = 1

        @property
        def _wanted(self):
            return self.wanted

        @_wanted.setter
        def _wanted(self, wanted):
            if wanted and self.reads:
                self.reads -= 1
                take(self, 5)
            self.wanted = wanted

    ring = Hasty(10)
    ring._room.wait = lambda _timeout: pytest.fail("it sleeps though there is room")
    assert ring.write(count(0, 12))
    np.testing.assert_array_equal(take(ring, 10), count(5, 7))


@pytest.mark.usefixtures("restless")
@pytest.mark.parametrize("capacity", [7, 5_000])
def test_a_writer_and_a_reader_beside_it_lose_nothing_and_mark_every_answer(beside, capacity):
    ring = PlaybackRing(capacity)
    pieces = [1, 320, 13, 4_000, 2] * (MANY // 4_336 // max(1, 700 // capacity))

    def writer():
        begin = 0
        for number, frames in enumerate(pieces):
            ring.mark(number, last=False)
            assert ring.write(count(begin, frames))
            ring.mark(number, last=True)
            begin += frames

    position, passed = 0, []
    with beside(writer):
        while len(passed) < 2 * len(pieces):
            out = take(ring, 160)
            np.testing.assert_array_equal(out, count(position, len(out)))
            position += len(out)
            passed += marks(ring)
    assert position == sum(pieces)
    assert passed == [Passed(n, last) for n in range(len(pieces)) for last in (False, True)]
