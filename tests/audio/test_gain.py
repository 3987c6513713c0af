"""The automatic gain's policy, by numbers alone; the amplifier; the memory."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oyez.audio.amplifier import Amplifier
from oyez.audio.gain import (
    MOST_UP_DB,
    REVERSAL_MS,
    SOFTWARE_LEAST_DB,
    SOFTWARE_MOST_DB,
    TARGET_DBFS,
    AutoGain,
    Gain,
    GainMemory,
    HardwareRange,
    Reason,
    Spoken,
    active_level_dbfs,
    split,
)
from oyez.errors import OutputError

USB = HardwareRange(lowest_db=-16.5, highest_db=30, step_db=1.5)
COARSE = HardwareRange(lowest_db=0, highest_db=30, step_db=3)
NONE = Gain(hardware_db=0, software_db=0)
PAUSE_MS = 4000


class Room:
    """Somebody speaks before a card that cuts at a limit; levels are at a card's gain of 0 dB."""

    def __init__(self, gain: AutoGain, *, limit_dbfs=0.0, crest_db=14.0):
        self.gain = gain
        self.limit_dbfs = limit_dbfs
        self.crest_db = crest_db
        self.now_ms = 0.0
        self.steps = []

    def say(self, level_db, *, text=True, silence=True, noise_db=40.0, clips_while=True):
        before = len(self.steps)
        self.now_ms += PAUSE_MS
        level, peak, clipped = self.heard(level_db)
        if clipped and clips_while:
            for _ in range(50):
                self.now_ms += 20
                self.note(self.gain.clips(level, peak, self.now_ms))
                level, peak, clipped = self.heard(level_db)
                if not clipped:
                    break
            clipped = True  # it did, once
        self.now_ms += 1500
        spoken = Spoken(
            level_dbfs=level,
            peak_dbfs=peak,
            floor_dbfs=level - noise_db,
            clipped=clipped,
            ended_in_silence=silence,
            has_text=text,
        )
        self.note(self.gain.utterance(spoken, self.now_ms))
        return self.steps[before:]

    def heard(self, level_db):
        level = level_db + self.gain.gain.hardware_db
        peak = level + self.crest_db
        over = max(0.0, peak - self.limit_dbfs)
        return level - 0.4 * over, peak - over, over > 0

    def note(self, step):
        if step is not None:
            self.steps.append((self.now_ms, step))

    def error_db(self, level_db):
        return self.heard(level_db)[0] + self.gain.gain.software_db - TARGET_DBFS


def fresh(hardware=USB, **kwargs):
    return Room(AutoGain(hardware, NONE, proven=False), **kwargs)


# -- coming to the target -------------------------------------------------------------------------


@pytest.mark.parametrize("level_db", [-50, -45, -38, -30, -26, -22, -18, -14, -10, -6])
@pytest.mark.parametrize("hardware", [USB, COARSE, None], ids=["1.5 dB", "3 dB", "none"])
@pytest.mark.parametrize("proven", [True, False])
def test_speech_at_any_level_is_within_3_db_after_three_utterances(level_db, hardware, proven):
    room = Room(AutoGain(hardware, NONE, proven=proven))
    for _ in range(3):
        assert len([step for _, step in room.say(level_db) if not step.in_vain]) <= 1
    assert abs(room.error_db(level_db)) <= 3


@pytest.mark.parametrize("true_step_db", [1.0, 2.0, 4.0])
def test_a_control_without_db_leads_there_although_its_steps_are_a_guess(true_step_db):
    hardware = HardwareRange(lowest_db=4, highest_db=30, step_db=2, exact=False)
    gain = AutoGain(hardware, Gain(hardware_db=10, software_db=0), proven=False)
    source_db = -40 - 10 * true_step_db / 2
    delivered = source_db
    for number in range(4):
        delivered = source_db + gain.gain.hardware_db * true_step_db / 2
        spoken = Spoken(
            level_dbfs=delivered,
            peak_dbfs=delivered + 14,
            floor_dbfs=-90,
            clipped=False,
            ended_in_silence=True,
            has_text=True,
        )
        gain.utterance(spoken, 6000.0 * number)
    delivered = source_db + gain.gain.hardware_db * true_step_db / 2
    assert abs(delivered + gain.gain.software_db - TARGET_DBFS) <= 3


def test_the_cards_own_gain_is_moved_before_the_software():
    room = fresh()
    room.say(-40)
    room.say(-40)
    assert room.gain.gain == Gain(hardware_db=18, software_db=0)


def test_what_the_card_cannot_do_is_done_in_software():
    room = fresh(HardwareRange(lowest_db=0, highest_db=6, step_db=3))
    for _ in range(3):
        room.say(-42)
    assert room.gain.gain == Gain(hardware_db=6, software_db=14)


def test_a_coarse_step_is_rounded_down_and_filled_up_in_software():
    assert split(10.0, COARSE) == Gain(hardware_db=9, software_db=1)
    assert split(-3.0, COARSE) == Gain(hardware_db=0, software_db=-3)
    assert split(5.0, None) == Gain(hardware_db=0, software_db=5)


@given(
    total=st.floats(-200, 200),
    lowest=st.floats(-60, 20),
    steps=st.integers(1, 200),
    step=st.sampled_from([0.5, 0.75, 1.0, 1.5, 3.0, 10.0]),
)
def test_a_split_gain_is_always_one_that_both_have(total, lowest, steps, step):
    hardware = HardwareRange(lowest_db=lowest, highest_db=lowest + steps * step, step_db=step)
    gain = split(total, hardware)
    place = (gain.hardware_db - lowest) / step
    assert place == pytest.approx(round(place), abs=1e-6)
    assert lowest - 1e-6 <= gain.hardware_db <= hardware.highest_db + 1e-6
    assert SOFTWARE_LEAST_DB <= gain.software_db <= SOFTWARE_MOST_DB


# -- patience -------------------------------------------------------------------------------------


def test_an_error_within_the_dead_band_is_left_alone():
    room = fresh()
    for level in (-22, -20.5, -23.9, -22):
        assert room.say(level) == []


def test_two_utterances_that_disagree_move_nothing():
    room = Room(AutoGain(USB, NONE, proven=True))
    for level in itertools.islice(itertools.cycle((-14, -34)), 10):
        assert room.say(level) == []


def test_one_soft_utterance_does_not_move_a_gain_that_was_remembered():
    room = Room(AutoGain(USB, NONE, proven=True))
    assert room.say(-45) == []
    [(_, step)] = room.say(-45)
    assert step.reason is Reason.SOFT


def test_no_step_up_is_larger_than_the_limit():
    room = fresh()
    before = 0.0
    for _ in range(4):
        room.say(-60)
        assert room.gain.gain.total_db - before <= MOST_UP_DB
        before = room.gain.gain.total_db


@given(
    levels=st.lists(st.floats(-55, 0), min_size=3, max_size=25),
    crest=st.floats(8, 20),
    limit=st.sampled_from([0.0, -3.0]),
    hardware=st.sampled_from([USB, COARSE, None]),
)
@settings(max_examples=150, deadline=None)
def test_no_reversal_within_5_s_and_one_step_an_utterance_whatever_is_said(
    levels, crest, limit, hardware
):
    room = fresh(hardware, crest_db=crest, limit_dbfs=limit)
    total_db, changes = 0.0, []
    for level in levels:
        taken = [(at, step) for at, step in room.say(level) if not step.in_vain]
        assert len(taken) <= 1
        for at, step in taken:
            changes.append((at, step.gain.total_db - total_db))
            total_db = step.gain.total_db
            assert SOFTWARE_LEAST_DB <= step.gain.software_db <= SOFTWARE_MOST_DB
            if hardware:
                assert hardware.lowest_db <= step.gain.hardware_db <= hardware.highest_db
    for (early, one), (late, other) in itertools.pairwise(changes):
        assert one * other > 0 or late - early >= REVERSAL_MS


# -- noise ----------------------------------------------------------------------------------------


def test_ten_minutes_of_noise_with_a_stuck_detector_raise_nothing():
    room = fresh()
    while room.now_ms < 600_000:
        room.say(-55, silence=False, noise_db=30)
    assert room.steps == []


def test_ten_minutes_of_steady_noise_that_gives_invented_text_raise_nothing():
    room = fresh()
    while room.now_ms < 600_000:
        room.say(-55, noise_db=3)
    assert room.steps == []


def test_ten_minutes_of_sound_without_text_raise_nothing():
    room = fresh()
    while room.now_ms < 600_000:
        room.say(-55, text=False)
    assert room.steps == []


# -- clipping -------------------------------------------------------------------------------------


def test_clipping_lowers_the_cards_gain_at_once_and_says_so():
    room = Room(AutoGain(USB, Gain(hardware_db=30, software_db=0), proven=True))
    [(at_ms, step)] = room.say(-40)
    assert at_ms == PAUSE_MS + 20
    assert step.reason is Reason.CLIPPED
    assert step.gain.hardware_db <= 24
    assert "clips" in str(step)
    assert "dB in the card" in str(step)


def test_clipping_that_is_told_with_the_utterance_alone_lowers_it_too():
    room = Room(AutoGain(USB, Gain(hardware_db=30, software_db=0), proven=True))
    [(_, step)] = room.say(-40, clips_while=False)
    assert step.reason is Reason.CLIPPED


def test_what_clips_is_not_amplified_in_software():
    room = Room(AutoGain(USB, Gain(hardware_db=30, software_db=12), proven=True), crest_db=25)
    [(_, step)] = room.say(-50)
    assert step.gain.software_db <= 0


def test_clipping_soon_after_a_step_up_waits_until_five_seconds_are_over():
    gain = AutoGain(USB, NONE, proven=False)
    soft = Spoken(
        level_dbfs=-40,
        peak_dbfs=-26,
        floor_dbfs=-80,
        clipped=False,
        ended_in_silence=True,
        has_text=True,
    )
    assert gain.utterance(soft, 1000.0) is not None
    assert gain.clips(-10, 0, 3000.0) is None
    assert gain.clips(-10, 0, 5980.0) is None
    step = gain.clips(-10, 0, 1000.0 + REVERSAL_MS)
    assert step is not None
    assert step.reason is Reason.CLIPPED


def test_a_gain_that_was_lowered_for_clipping_does_not_hunt():
    room = Room(AutoGain(USB, Gain(hardware_db=20, software_db=0), proven=True), crest_db=21)
    for _ in range(30):
        room.say(-36)
    clipped = [step for _, step in room.steps if step.reason is Reason.CLIPPED]
    assert len(clipped) == 1
    assert not room.heard(-36)[2]


def test_peaks_keep_their_distance_from_a_limiter_below_full_scale():
    room = Room(AutoGain(USB, Gain(hardware_db=20, software_db=0), proven=True), limit_dbfs=-12)
    for _ in range(10):
        room.say(-40)
    assert room.heard(-40)[1] <= -12
    assert abs(room.error_db(-40)) <= 3


def test_a_card_without_a_lower_gain_is_complained_of_once():
    room = fresh(None)
    for _ in range(5):
        room.say(-6, clips_while=True)
    said = [step for _, step in room.steps if step.in_vain]
    assert [step.reason for step in said] == [Reason.STUCK]
    assert said[0].gain == NONE


def test_a_cut_that_comes_down_with_the_gain_is_said_to_be_made_before_it():
    gain = AutoGain(USB, Gain(hardware_db=12, software_db=0), proven=True)
    first = gain.clips(-12, -3, 0.0)
    assert first is not None
    lowered_db = 12 - first.gain.hardware_db
    gain.blip()
    second = gain.clips(-12 - lowered_db, -3 - lowered_db, 10_000.0)
    assert second is not None
    assert second.reason is Reason.UPSTREAM
    assert second.gain == first.gain
    assert gain.clips(-12 - lowered_db, -3 - lowered_db, 20_000.0) is None


def test_a_gain_that_the_driver_rounded_is_what_counts():
    gain = AutoGain(USB, NONE, proven=False)
    gain.granted(6.0)
    assert gain.gain.total_db == 6


# -- the level of speech --------------------------------------------------------------------------


def test_pauses_do_not_lower_the_level_of_speech():
    speech, pause = np.full(40, 0.1), np.full(60, 0.0001)
    assert active_level_dbfs(np.concatenate([speech, pause])) == pytest.approx(-20, abs=0.1)


def test_a_click_hardly_raises_the_level_of_speech():
    assert active_level_dbfs(np.array([0.9] + [0.01] * 60)) == pytest.approx(-40, abs=0.5)


def test_silence_has_a_level():
    assert active_level_dbfs(np.zeros(3)) <= -100


# -- the amplifier --------------------------------------------------------------------------------


def tone(amplitude, frames=320):
    return (amplitude * np.sin(np.arange(frames) * 0.3)).astype(np.float32)


def test_sound_without_gain_passes_as_it_is():
    sound = tone(0.5)
    assert Amplifier(16_000).apply(sound, 0, clipping=False) is sound


def test_the_gain_comes_up_in_a_ramp_and_arrives():
    amplifier = Amplifier(16_000)
    peaks = [
        float(np.abs(amplifier.apply(tone(0.01), 12, clipping=False)).max()) for _ in range(50)
    ]
    assert peaks[0] < 0.012
    assert peaks == sorted(peaks)
    assert peaks[-1] == pytest.approx(0.01 * 10 ** (12 / 20), rel=0.01)


@given(
    peaks=st.lists(st.floats(0, 1), min_size=1, max_size=20),
    gain_db=st.floats(SOFTWARE_LEAST_DB, SOFTWARE_MOST_DB),
)
@settings(max_examples=60, deadline=None)
def test_the_amplifier_never_clips(peaks, gain_db):
    amplifier = Amplifier(16_000)
    for peak in peaks:
        louder = amplifier.apply(tone(peak), gain_db, clipping=False)
        assert louder.dtype == np.float32
        assert np.abs(louder).max() <= max(Amplifier.CEILING, peak) + 1e-6


def test_what_clips_is_not_made_louder():
    amplifier = Amplifier(16_000)
    for _ in range(100):
        amplifier.apply(tone(0.01), 20, clipping=False)
    for _ in range(3):
        louder = amplifier.apply(tone(0.01), 20, clipping=True)
    assert np.abs(louder).max() <= 0.01


# -- the memory -----------------------------------------------------------------------------------


def test_a_gain_is_remembered_across_restarts_for_its_own_device(tmp_path):
    path = tmp_path / "state" / "gain.json"
    kept = Gain(hardware_db=12.5, software_db=1.0)
    GainMemory(path).keep("hw:CARD=Mic 'Capture',0", kept)
    again = GainMemory(path)
    assert again.recall("hw:CARD=Mic 'Capture',0") == kept
    assert again.recall("hw:CARD=Other 'Capture',0") is None
    assert again.note == ""
    assert [file.name for file in path.parent.iterdir()] == ["gain.json"]


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"{",
        b"[]",
        b"[1]",
        b"null",
        b'{"a": 1}',
        b'{"a": {}}',
        b'{"a": {"hardware_db": "loud", "software_db": 0}}',
        b'{"a": {"hardware_db": NaN, "software_db": 0}}',
        b'{"a": {"hardware_db": 1e999, "software_db": 0}}',
        b"\xff\xfe\x00",
        b"[" * 100_000,
    ],
)
def test_a_damaged_memory_is_not_used_and_says_so(tmp_path, damage):
    path = tmp_path / "gain.json"
    path.write_bytes(damage)
    memory = GainMemory(path)
    assert memory.recall("a") is None
    assert str(path) in memory.note
    memory.keep("a", NONE)
    assert GainMemory(path).recall("a") == NONE


def test_a_folder_that_cannot_be_written_is_named_and_the_gain_holds_until_the_end(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    memory = GainMemory(blocked / "gain.json")
    with pytest.raises(OutputError, match=r"gain\.json"):
        memory.keep("a", NONE)
    assert memory.recall("a") == NONE


def test_what_did_not_change_is_not_written_again(tmp_path):
    path = tmp_path / "gain.json"
    memory = GainMemory(path)
    memory.keep("a", NONE)
    path.unlink()
    memory.keep("a", NONE)
    assert not path.exists()


def test_the_file_is_json_for_people(tmp_path):
    path = tmp_path / "gain.json"
    GainMemory(path).keep("hw:CARD=Mic", Gain(hardware_db=3, software_db=0.5))
    assert json.loads(path.read_text()) == {"hw:CARD=Mic": {"hardware_db": 3, "software_db": 0.5}}
