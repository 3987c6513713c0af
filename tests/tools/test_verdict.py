"""What follows from figures: pure."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oyez.audio.gain import HardwareRange, split
from oyez.audio.levels import Signal
from oyez.tools import verdict
from oyez.tools.verdict import (
    GAIN_KEY,
    VAD_KEY,
    EchoHeard,
    Measured,
    Present,
    Spoken,
    VadShares,
    judge,
)

HARDWARE = HardwareRange(lowest_db=-16.5, highest_db=30.0, step_db=1.5)
GUESSED = HardwareRange(lowest_db=3.0, highest_db=30.0, step_db=1.0, exact=False)
AUTO = Present(gain_db="auto", aggressiveness=2, echo="gate")
ECHO = EchoHeard(level_dbfs=-30, delay_ms=120, clipped=False)


def measured(level_dbfs=-30.0, peak_dbfs=-16.0, **changes):
    said = Spoken(
        level_dbfs=level_dbfs,
        peak_dbfs=peak_dbfs,
        clipped=changes.pop("clipped", False),
        hardware_db=changes.pop("hardware_db", 0.0),
    )
    figures = {
        "channel": 0,
        "signals": (Signal.LIVE,),
        "floor_dbfs": -65.0,
        "dc": 0.0,
        "hardware": HARDWARE,
        "spoken": said,
        "echo": ECHO,
    }
    return Measured(**(figures | changes))


def test_what_is_right_already_gets_no_proposal_and_no_warning():
    found = judge(measured(-22.5), Present(gain_db=0.0, aggressiveness=2, echo="gate"))
    assert (found.proposals, found.warnings) == ({}, ())
    assert found.summary == "all is well as it is"


def test_a_soft_voice_gets_the_gain_that_is_missing():
    assert judge(measured(-30.0), AUTO).proposals == {GAIN_KEY: 8}


def test_a_loud_voice_gets_less():
    assert judge(measured(-12.0, peak_dbfs=-1.0), AUTO).proposals == {GAIN_KEY: -10}


def test_a_card_without_a_control_gets_software_gain_that_spares_the_peaks():
    assert judge(measured(-40, -20, hardware=None), AUTO).proposals == {GAIN_KEY: 18}
    assert judge(measured(-40, -10, hardware=None), AUTO).proposals == {GAIN_KEY: 9}


def test_a_card_whose_steps_nobody_knows_is_left_to_the_automatic_gain():
    fixed = dataclasses.replace(AUTO, gain_db=3.0)
    assert judge(measured(-40, hardware=GUESSED), fixed).proposals == {GAIN_KEY: "auto"}
    assert judge(measured(-40, hardware=GUESSED), AUTO).proposals == {}


@given(
    st.floats(-70, -5),
    st.floats(3, 20),
    st.floats(-16, 30),
    st.one_of(st.none(), st.just(HARDWARE)),
)
def test_no_proposal_brings_the_peaks_near_full_scale(level, crest, hardware_db, hardware):
    hardware_db = hardware.at_most(hardware_db) if hardware else 0.0
    figures = measured(
        level,
        min(0.0, level + crest),
        hardware=hardware,
        hardware_db=hardware_db,
        floor_dbfs=-100.0,
    )
    wanted = verdict.gain_db(figures)
    assert wanted is not None
    gain = split(wanted, hardware)
    peak = figures.spoken.peak_dbfs
    if gain.hardware_db > hardware_db:
        assert peak + gain.hardware_db - hardware_db <= -5.9
    reached = level + gain.total_db - hardware_db
    assert reached <= -21.9 or gain.software_db == -20


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"clipped": True, "hardware": None}, "the card has no lower gain"),
        ({"clipped": True, "lowered_db": 12.0}, "12 dB lower in the card"),
        ({"floor_dbfs": -35.0}, "only 5 dB above the noise"),
        ({"floor_dbfs": -45.0}, "15 dB above the noise"),
        ({"spoken": None}, "no speech was heard"),
        (
            {"spoken": None, "signals": (Signal.SILENT,), "echo": None, "speaker_trouble": ""},
            "digital silence: it is muted",
        ),
        ({"dc": 0.2}, "an offset of +0.20"),
        ({"echo": None}, "does not hear the speaker"),
        ({"echo": EchoHeard(level_dbfs=-3, delay_ms=9, clipped=True)}, "so loud"),
        ({"speaker_trouble": "it is in use"}, "nothing was played: it is in use"),
        ({"level_dbfs": -75.0, "peak_dbfs": -60.0, "floor_dbfs": -100.0, "hardware": None},
         "too soft even with all gain"),
    ],
)  # fmt: skip
def test_each_fault_is_told_once(changes, words):
    found = judge(measured(**changes), AUTO)
    assert [words in warning for warning in found.warnings] == [True]


@pytest.mark.parametrize("changes", [{"clipped": True}, {"floor_dbfs": -35.0}, {"spoken": None}])
def test_what_cannot_be_judged_is_not_set(changes):
    assert judge(measured(**changes), AUTO).proposals == {}


def test_an_echo_that_something_else_cancels_is_not_missed_and_one_that_is_heard_is_told():
    external = dataclasses.replace(AUTO, echo="external")
    assert judge(measured(echo=None), external).warnings == ()
    assert "nothing cancels the echo" in judge(measured(), external).warnings[0]


def shares(*pairs):
    return {
        mode: VadShares(in_silence=silence, in_speech=speech)
        for mode, (silence, speech) in enumerate(pairs)
    }


@pytest.mark.parametrize(
    ("vad", "wanted", "warned"),
    [
        (shares((0.5, 1), (0.2, 0.9), (0.02, 0.8), (0, 0.7)), None, False),
        (shares((0.9, 1), (0.9, 1), (0.3, 0.9), (0.01, 0.8)), 3, False),
        (shares((0.9, 1), (0.9, 1), (0.9, 0.9), (0.5, 0.8)), None, True),
        (shares((0.02, 0.9), (0.01, 0.8), (0, 0.3), (0, 0.1)), 1, False),
        (shares((0.6, 0.9), (0.01, 0.5), (0, 0.3), (0, 0.1)), None, True),
        ({}, None, False),
    ],
)
def test_the_detector_is_changed_only_when_another_mode_does_better(vad, wanted, warned):
    found = judge(measured(vad=vad), AUTO)
    assert found.proposals.get(VAD_KEY) == wanted
    assert bool(found.warnings) == warned


def test_speech_is_what_is_louder_than_the_silence_and_lasts():
    silence = np.full(100, 0.001)
    assert verdict.spoken(silence, silence, peak=0.01, clipped=False, hardware_db=0) is None
    cough = np.concatenate((silence, np.full(10, 0.1)))
    assert verdict.spoken(cough, silence, peak=0.3, clipped=False, hardware_db=0) is None
    speech = np.concatenate((silence, np.full(60, 0.1)))
    said = verdict.spoken(speech, silence, peak=0.3, clipped=False, hardware_db=3.0)
    assert said is not None
    assert said.level_dbfs == pytest.approx(-20, abs=0.1)


def test_a_card_that_clips_is_turned_down_as_far_as_it_goes():
    clips = measured(-12, -0.1, clipped=True, hardware_db=6.0).spoken
    assert verdict.lower_gain_db(clips, HARDWARE) == -4.5
    assert verdict.lower_gain_db(clips, None) is None
    at_bottom = dataclasses.replace(clips, hardware_db=-16.5)
    assert verdict.lower_gain_db(at_bottom, HARDWARE) is None
    assert verdict.lower_gain_db(dataclasses.replace(clips, clipped=False), HARDWARE) is None
