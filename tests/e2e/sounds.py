"""Recordings for tests: speech, silence and noise put together and written as files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import soundfile
import soxr

from oyez.audio import room
from oyez.messages import RATE_HZ

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from oyez.messages import PcmFloat

BURST_MS = 250
"""A noise between two utterances, as of something that falls to the floor."""


def silence(duration_ms: int) -> PcmFloat:
    """Digital silence at 16 kHz."""
    return np.zeros(duration_ms * RATE_HZ // 1000, np.float32)


def noise(duration_ms: int, *, level: float, seed: int = 1) -> PcmFloat:
    """White noise of this RMS level at 16 kHz."""
    frames = duration_ms * RATE_HZ // 1000
    return np.random.default_rng(seed).normal(0, level, frames).astype(np.float32)


def write(path: Path, *parts: PcmFloat, rate_hz: int = RATE_HZ, subtype: str = "PCM_16") -> Path:
    """A recording of these parts, one after the other; gives its path."""
    soundfile.write(path, np.concatenate(parts), rate_hz, subtype=subtype)
    return path


def at_16_khz(samples: PcmFloat, rate_hz: int) -> PcmFloat:
    """Sound of another rate."""
    return np.asarray(soxr.resample(samples, rate_hz, RATE_HZ), np.float32)


def conversation(utterances: Sequence[PcmFloat], *, tail_ms: int) -> PcmFloat:
    """Utterances in a room with a fan in it; between two of them something falls to the floor."""
    gap_ms = 2_400
    scene = room.scene(
        utterances,
        lead_ms=600,
        gap_ms=gap_ms,
        tail_ms=tail_ms,
        snr_db=20,
        reverb_ms=300,
        seed=1,
    )
    samples = scene.samples.astype(np.float32) / 2**15
    for number, (_, end) in enumerate(scene.spans[:-1]):
        begin = end + gap_ms * RATE_HZ // 2000
        burst = noise(BURST_MS, level=0.05, seed=number)
        samples[begin : begin + len(burst)] += burst * np.hanning(len(burst)).astype(np.float32)
    return samples.clip(-1, 1)
