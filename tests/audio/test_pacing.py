"""What paces a recording in the microphone's place: nobody sees frames before their time."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oyez.audio import wav
from oyez.audio.wav import ArraySource, Lockstep, PacedCapture, RealTime

RATE_HZ = 16_000
COUNT = np.arange(1_000, dtype=np.int16)


class Ledger:
    """A pacer that lets everything pass and writes down what it was asked for."""

    def __init__(self):
        self.asked_s = []

    def wait_until(self, stream_s):
        self.asked_s.append(stream_s)


class Clock:
    """A monotonic clock that stands still but when somebody sleeps, or is held up."""

    def __init__(self):
        self.now_s = 1_000.0
        self.slept_s = []

    def monotonic(self):
        return self.now_s

    def sleep(self, duration_s):
        self.slept_s.append(duration_s)
        self.now_s += duration_s


@pytest.fixture
def clock(monkeypatch):
    standing = Clock()
    named = SimpleNamespace(monotonic=standing.monotonic, sleep=standing.sleep)
    monkeypatch.setattr(wav, "time", named)
    return standing


def periods_of(capture):
    periods = []
    while (period := capture.read()) is not None:
        assert not period.overrun
        periods.append(np.frombuffer(period.raw, "<i2"))
    return periods


@given(frames=st.integers(0, 1_000), period_ms=st.integers(10, 60))
def test_an_array_is_heard_once_in_order_and_to_its_last_frame(frames, period_ms):
    capture = PacedCapture(ArraySource(COUNT[:frames], RATE_HZ, "count"), Ledger(), period_ms)
    periods = periods_of(capture)
    assert all(len(period) == capture.period_frames for period in periods[:-1])
    np.testing.assert_array_equal(np.concatenate([COUNT[:0], *periods]), COUNT[:frames])
    assert capture.read() is None


def test_a_period_is_asked_for_only_when_its_last_frame_has_been_heard():
    ledger = Ledger()

    class Watched(ArraySource):
        def read(self, frames):
            read_so_far_s = (self._position + frames) / RATE_HZ
            assert read_so_far_s <= ledger.asked_s[-1]
            return super().read(frames)

    capture = PacedCapture(Watched(COUNT, RATE_HZ, "count"), ledger, 20)
    assert len(periods_of(capture)) == 4
    assert ledger.asked_s == pytest.approx([0.02, 0.04, 0.06, 0.08, 0.10])


def test_after_its_end_each_read_still_waits_a_period():
    ledger = Ledger()
    capture = PacedCapture(ArraySource(COUNT[:320], RATE_HZ, "count"), ledger, 20)
    assert [capture.read() is None for _ in range(4)] == [False, True, True, True]
    assert ledger.asked_s == pytest.approx([0.02, 0.04, 0.06, 0.08])


def test_an_end_is_an_end_even_if_a_source_has_more_later():
    class Growing(ArraySource):
        reads = 0

        def read(self, frames):
            self.reads += 1
            return b"" if self.reads == 2 else super().read(frames)

    capture = PacedCapture(Growing(COUNT, RATE_HZ, "count"), Ledger(), 20)
    assert [capture.read() is None for _ in range(4)] == [False, True, True, True]


@pytest.mark.parametrize(
    ("rate_hz", "period_frames"), [(16_000, 320), (44_100, 882), (11_025, 220), (1_000, 20)]
)
def test_a_period_is_of_the_source_s_own_rate(rate_hz, period_frames):
    capture = PacedCapture(ArraySource(COUNT, rate_hz, "count"), Ledger(), 20)
    assert capture.period_frames == period_frames
    assert capture.stream.rate_hz == rate_hz
    assert capture.description == "count"


def test_real_time_begins_with_the_first_period(clock):
    pacer = RealTime()
    clock.now_s += 50
    pacer.wait_until(0.02)
    pacer.wait_until(0.04)
    assert clock.slept_s == pytest.approx([0.02, 0.02])


def test_work_between_two_periods_is_taken_off_the_wait(clock):
    pacer = RealTime()
    pacer.wait_until(0.02)
    clock.now_s += 0.015
    pacer.wait_until(0.04)
    assert clock.slept_s[1] == pytest.approx(0.005)


def test_after_a_hold_up_periods_follow_each_other_until_the_lag_is_made_good(clock):
    pacer = RealTime()
    pacer.wait_until(0.02)
    clock.now_s += 0.07  # until 0.09 of the stream
    for stream_s in (0.04, 0.06, 0.08, 0.10):
        pacer.wait_until(stream_s)
    assert clock.slept_s[1:] == pytest.approx([0, 0, 0, 0.01])


@given(work_s=st.lists(st.floats(0, 0.1), min_size=1, max_size=50))
def test_real_time_never_lets_a_period_come_early_and_never_drifts(work_s):
    standing = Clock()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wav, "time", standing)
        pacer, begin_s, free_s = RealTime(), standing.now_s, 0.0
        for number, duration_s in enumerate(work_s, start=1):
            due_s = 0.02 * number
            pacer.wait_until(due_s)
            now_s = standing.now_s - begin_s
            assert now_s == pytest.approx(max(due_s, free_s), abs=1e-9)
            standing.now_s += duration_s
            free_s = now_s + duration_s


def test_real_time_on_the_real_clock_is_not_early():
    import time  # noqa: PLC0415 - the others have a clock of their own

    begin_s = time.monotonic()
    pacer = RealTime()
    for stream_s in (0.005, 0.010, 0.015):
        pacer.wait_until(stream_s)
    assert time.monotonic() - begin_s >= 0.015


def test_lockstep_lets_nothing_pass_until_all_is_settled():
    settled, passed = threading.Event(), threading.Event()

    def ask():
        Lockstep(settled.is_set).wait_until(0)
        assert settled.is_set()
        passed.set()

    asking = threading.Thread(target=ask)
    asking.start()
    assert not passed.is_set()
    settled.set()
    asking.join()
    assert passed.is_set()


def test_closing_a_capture_closes_its_source():
    class Source(ArraySource):
        closed = False

        def close(self):
            self.closed = True

    source = Source(COUNT, RATE_HZ, "count")
    PacedCapture(source, Ledger(), 20).close()
    assert source.closed
