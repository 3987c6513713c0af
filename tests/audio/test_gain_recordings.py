"""The automatic gain with recordings, through a model of a microphone, its meter and its limit."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from corpus import RATE_HZ, recordings_or_skip
from oyez.audio.gain import (
    REVERSAL_MS,
    TARGET_DBFS,
    AutoGain,
    Gain,
    HardwareRange,
    Spoken,
    active_level_dbfs,
)
from oyez.audio.levels import Meter
from oyez.audio.pcm import dbfs

BLOCK = RATE_HZ // 50
HANGOVER_BLOCKS = 10
PAUSE_MS = 4000


class Microphone:
    """Blocks as a card would deliver them: amplified by what it is set to, cut, quantized."""

    def __init__(self, gain: AutoGain) -> None:
        self.gain = gain
        self.meter = Meter(RATE_HZ, 1)
        self.now_ms = 0.0
        self.changes = []

    def deliver(self, sound):
        amplified = np.clip(sound * 10 ** (self.gain.gain.hardware_db / 20), -1, 1)
        self.now_ms += 20
        return self.meter.measure((np.rint(amplified * 32767) / 32768).astype(np.float32)[:, None])

    def hear(self, sound, voiced, *, silence=True, text=True):
        """One utterance; returns how many steps were taken. ``voiced`` is bool [blocks]."""
        before = len(self.changes)
        rms, peak, clipped = [], 0.0, False
        for number, is_voiced in enumerate(voiced):
            levels = self.deliver(sound[number * BLOCK : (number + 1) * BLOCK])
            if not is_voiced:
                continue
            rms.append(levels.rms[0])
            peak = max(peak, float(levels.peak[0]))
            if levels.flat_tops[0]:
                clipped = True
                level = active_level_dbfs(np.array(rms))
                self.note(self.gain.clips(level, dbfs(peak), self.now_ms))
        spoken = Spoken(
            level_dbfs=active_level_dbfs(np.array(rms)),
            peak_dbfs=dbfs(peak),
            floor_dbfs=dbfs(levels.floor[0]),
            clipped=clipped,
            ended_in_silence=silence,
            has_text=text,
        )
        self.note(self.gain.utterance(spoken, self.now_ms))
        self.now_ms += PAUSE_MS
        return len(self.changes) - before

    def note(self, step):
        if step is not None and not step.in_vain:
            self.changes.append((self.now_ms, step.gain.total_db))


def quiet(clip):
    """Whether the recording stands 20 dB above its own noise, so that it can be judged at all."""
    powers = np.square(clip.samples[: len(clip.samples) // BLOCK * BLOCK]).reshape(-1, BLOCK)
    level = 10 * np.log10(np.mean(np.square(clip.samples[clip.active])) + 1e-12)
    return level - 10 * np.log10(np.quantile(powers.mean(1), 0.05) + 1e-12) > 20


@pytest.mark.parametrize(
    "hardware",
    [
        HardwareRange(lowest_db=-12, highest_db=30, step_db=0.5),
        HardwareRange(lowest_db=-16.5, highest_db=30, step_db=1.5),
        HardwareRange(lowest_db=-9, highest_db=27, step_db=3),
        None,
    ],
    ids=["0.5 dB", "1.5 dB", "3 dB", "none"],
)
@pytest.mark.parametrize("level_dbfs", [-50, -36, -22, -14, -6])
def test_recorded_speech_is_within_3_db_after_three_utterances(hardware, level_dbfs):
    clips = [clip for clip in recordings_or_skip("speech") if quiet(clip)]
    start_db = hardware.at_most(0.0) if hardware else 0.0
    for first in range(0, len(clips) - 2, 3):
        gain = AutoGain(hardware, Gain(hardware_db=start_db, software_db=0), proven=False)
        microphone = Microphone(gain)
        for clip in clips[first : first + 3]:
            sound = clip.samples / np.sqrt(np.mean(np.square(clip.samples[clip.active])))
            sound = sound * 10 ** ((level_dbfs - start_db) / 20)
            active = clip.active[: len(sound) // BLOCK * BLOCK].reshape(-1, BLOCK).any(axis=1)
            voiced = np.convolve(active, np.ones(HANGOVER_BLOCKS + 1))[: len(active)] > 0
            assert microphone.hear(sound, voiced) <= 1
        error_db = level_dbfs - start_db + gain.gain.total_db - TARGET_DBFS
        assert abs(error_db) <= 3, [clip.name for clip in clips[first : first + 3]]
        totals = [start_db, *(total for _, total in microphone.changes)]
        signs = np.sign(np.diff(totals))
        times = [at for at, _ in microphone.changes]
        for (one, early), (other, late) in itertools.pairwise(zip(signs, times, strict=True)):
            assert one == other or late - early >= REVERSAL_MS


def test_ten_minutes_of_recorded_noise_with_a_stuck_detector_raise_nothing():
    noises = recordings_or_skip("noise", "music")
    gain = AutoGain(
        HardwareRange(lowest_db=-16.5, highest_db=30, step_db=1.5),
        Gain(hardware_db=0, software_db=0),
        proven=False,
    )
    microphone = Microphone(gain)
    for clip in itertools.cycle(noises):
        sound = np.resize(clip.samples, 20 * RATE_HZ) * 0.02
        microphone.hear(sound, np.ones(len(sound) // BLOCK, bool), silence=False)
        if microphone.now_ms > 600_000:
            break
    assert microphone.changes == []
