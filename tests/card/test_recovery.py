"""The stages of recovery, by numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oyez.audio.recovery import (
    GIVE_UP_S,
    JITTER,
    MAX_DELAY_S,
    RELAPSE_S,
    REOPENS,
    Action,
    Fault,
    Recovery,
)

jitters = st.floats(0, 1, exclude_max=True)
patient = st.sampled_from([Fault.ABSENT, Fault.UNPLUGGED, Fault.BUSY])


def attempts(recovery, fault, count, now_s=0.0):
    """So many attempts that fail, each when it was due."""
    steps = []
    for _ in range(count):
        step = recovery.failed(fault, now_s)
        steps.append(step)
        now_s += step.delay_s
    return steps


@given(jitter=jitters, faults=st.lists(patient, min_size=1, max_size=300))
def test_a_card_that_is_away_or_in_use_is_never_given_up(jitter, faults):
    recovery, now_s = Recovery(lambda: jitter), 0.0
    for fault in faults:
        step = recovery.failed(fault, now_s)
        assert step.action is not Action.GIVE_UP
        assert 0 <= step.delay_s <= MAX_DELAY_S
        now_s += step.delay_s + GIVE_UP_S


@given(jitter=jitters)
def test_delays_grow_to_their_bound_and_jitter_only_shortens_them(jitter):
    delays = [step.delay_s for step in attempts(Recovery(lambda: jitter), Fault.BUSY, 12)]
    plain = [step.delay_s for step in attempts(Recovery(lambda: 0.0), Fault.BUSY, 12)]
    assert plain == sorted(plain)
    assert plain[-1] == MAX_DELAY_S
    for delay, longest in zip(delays, plain, strict=True):
        assert longest * (1 - JITTER) <= delay <= longest


def test_the_first_fault_of_a_card_is_mended_at_once_and_then_it_is_looked_up_anew():
    steps = attempts(Recovery(lambda: 0.5), Fault.FAILED, 5)
    assert steps[0].delay_s == 0
    actions = [step.action for step in steps]
    assert actions == [Action.REOPEN] * REOPENS + [Action.RESOLVE] * (5 - REOPENS)


def test_one_that_is_absent_is_looked_up_each_time():
    steps = attempts(Recovery(lambda: 0.5), Fault.ABSENT, 4)
    assert {step.action for step in steps} == {Action.RESOLVE}


@given(jitter=jitters, fault=st.sampled_from([Fault.REFUSED, Fault.FAILED, Fault.STALLED]))
def test_one_that_is_there_and_of_no_use_is_given_up_in_the_end_and_not_before(jitter, fault):
    recovery, now_s = Recovery(lambda: jitter), 0.0
    while (step := recovery.failed(fault, now_s)).action is not Action.GIVE_UP:
        assert now_s < GIVE_UP_S
        now_s += step.delay_s
    assert GIVE_UP_S <= now_s <= GIVE_UP_S + MAX_DELAY_S


@pytest.mark.parametrize(("worked_s", "stage"), [(RELAPSE_S / 2, "on"), (RELAPSE_S, "first")])
def test_a_relapse_goes_on_where_the_stages_were(worked_s, stage):
    recovery = Recovery(lambda: 0.0)
    attempts(recovery, Fault.FAILED, 4)
    recovery.works(10.0)
    step = recovery.failed(Fault.FAILED, 10.0 + worked_s)
    assert step.action is (Action.RESOLVE if stage == "on" else Action.REOPEN)
    assert (step.delay_s == 0) == (stage == "first")
