"""The ring of what was heard: exactly what was written, or None."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oyez.messages import BLOCK_FRAMES
from oyez.rt.ring import Flag, FrameRing
from oyez.rt.wake import WakeUp

MANY = 20_000


def block_of(number):
    """A block that no other is like."""
    return np.arange(number * 7, number * 7 + BLOCK_FRAMES).astype(np.int16)


def flags_of(number):
    return number % 8


def peak_of(number):
    return (number % 1_000) / 1_000


def write(ring, numbers):
    for number in numbers:
        ring.write(block_of(number), flags_of(number), peak_of(number), peak_of(number) / 2)


def expected(begin, end):
    return np.concatenate([np.zeros(0, np.int16), *map(block_of, range(begin, end))])


@given(
    capacity=st.integers(2, 9),
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("write"), st.integers(1, 12), st.just(0)),
            st.tuples(st.just("read"), st.integers(0, 60), st.integers(0, 10)),
        ),
        max_size=25,
    ),
)
def test_whatever_is_read_is_what_was_written_there_or_none_if_it_is_too_old(capacity, steps):
    ring, head = FrameRing(capacity), 0
    for step, first, length in steps:
        if step == "write":
            write(ring, range(head, head + first))
            head += first
            assert (ring.head_block, ring.head_frame) == (head, head * BLOCK_FRAMES)
            continue
        begin, end = min(first, head), min(first + length, head)
        # The oldest slot may be written to at any moment, so it does not count.
        kept = begin >= head - capacity + 1
        samples = ring.copy(begin, end)
        assert (samples is not None) == kept
        if samples is not None:
            np.testing.assert_array_equal(samples, expected(begin, end))
        if begin < head:
            assert ring.flags(begin) == (flags_of(begin) if kept else None)


def test_the_oldest_block_is_never_the_one_that_is_being_written():
    ring = FrameRing(4)
    assert ring.oldest_block == 0
    write(ring, range(3))
    assert ring.oldest_block == 0
    write(ring, range(3, 10))
    assert ring.oldest_block == 7


def test_a_copy_is_read_only_and_does_not_change_when_the_ring_goes_on():
    ring = FrameRing(3)
    write(ring, range(2))
    samples = ring.copy(0, 2)
    write(ring, range(2, 9))
    np.testing.assert_array_equal(samples, expected(0, 2))
    with pytest.raises(ValueError, match="read-only"):
        samples[0] = 1


def test_the_writer_s_array_may_be_used_again():
    ring, samples = FrameRing(3), block_of(5)
    ring.write(samples, 0, 0.0, 0.0)
    samples[:] = 0
    np.testing.assert_array_equal(ring.copy(0, 1), block_of(5))


@given(peaks=st.lists(st.tuples(st.floats(0, 1, width=32), st.booleans()), max_size=12))
def test_levels_and_clipping_are_told_of_a_stretch_and_of_no_more(peaks):
    ring = FrameRing(20)
    for peak, clipped in [(1.0, True), *peaks, (1.0, True)]:
        ring.write(block_of(0), Flag.SPEECH | Flag.CLIPPED * clipped, peak, peak / 2)
    levels = ring.levels(1, 1 + len(peaks))
    assert levels.peak == max((peak for peak, _ in peaks), default=0.0)
    assert levels.clipped_blocks == sum(clipped for _, clipped in peaks)
    assert levels.rms == pytest.approx([peak / 2 for peak, _ in peaks])


def test_the_end_is_told_and_wakes_the_reader(beside):
    ring = FrameRing(3)
    assert not ring.ended
    with beside(lambda: ring.wait(None)):
        ring.end()
    assert ring.ended


def test_a_reader_can_be_woken_without_sound(beside):
    ring = FrameRing(3)
    with beside(lambda: ring.wait(None)):
        ring.wake()
    assert not ring.ended
    assert ring.head_block == 0


def test_a_wait_ends_with_its_time():
    FrameRing(3).wait(1)


@pytest.mark.usefixtures("restless")
@pytest.mark.parametrize("capacity", [2, 64])
def test_a_reader_beside_a_writer_sees_every_block_whole_or_not_at_all(beside, capacity):
    ring = FrameRing(capacity)

    def writer():
        write(ring, range(MANY))
        ring.end()

    seen = 0
    with beside(writer):
        ended = False
        while not ended:
            ended = ring.ended
            head, oldest = ring.head_block, ring.oldest_block
            for begin in range(oldest, head, 7):
                end = min(begin + 3, head)
                flags, samples = ring.flags(begin), ring.copy(begin, end)
                assert flags in (None, flags_of(begin))
                if samples is not None:
                    seen += 1
                    np.testing.assert_array_equal(samples, expected(begin, end))
            if not ended:
                ring.wait(None)
    assert seen > 0
    assert ring.head_block == MANY


@pytest.mark.usefixtures("restless")
def test_a_reader_that_sleeps_after_each_block_misses_none_of_a_patient_writer(beside):
    ring, read_on = FrameRing(8), WakeUp()

    def writer():
        for number in range(2_000):
            write(ring, [number])
            read_on.wait(None)
        ring.end()

    with beside(writer):
        block = 0
        while not ring.ended:
            while block < ring.head_block:
                assert ring.flags(block) == flags_of(block)
                block += 1
                read_on.call()
            ring.wait(None)
    assert block == 2_000


def test_the_clock_of_the_ring_goes_on_when_nothing_is_written_any_more():
    ring = FrameRing(3)
    write(ring, range(2))
    assert ring.now_frame == ring.head_frame == 2 * BLOCK_FRAMES
    ring.end()
    for _ in range(50):
        ring.pass_time(0.02)
    assert ring.now_frame == 52 * BLOCK_FRAMES
    assert ring.head_frame == 2 * BLOCK_FRAMES
