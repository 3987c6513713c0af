"""The sound that the calibration plays, and finding it again in what the microphone heard. Pure.

A rising sweep: it can be told from speech and noise at any level, since all of its energy comes
together in one sample when it is correlated with itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from oyez.messages import RATE_HZ

if TYPE_CHECKING:
    from oyez.messages import Pcm16, PcmFloat

SWEEP_S = 1.0
SWEEP_HZ = (300.0, 3000.0)
"""What every small speaker and every microphone passes."""
SWEEP_PEAK = 0.25
"""-12 dBFS: as loud as a voice, and far from where a speaker rattles."""
FADE_S = 0.02
STANDS_OUT = 20.0
"""Above the RMS of the correlation. Speech reached 12; echoes as loud as noise begin at 30."""
DIRECT_FRAMES = RATE_HZ // 50
"""So much sooner than the strongest reflection may the direct sound be."""
ALIKE = 0.12
"""The correlation coefficient. Speech reached 0.08; echoes in reverberation begin at 0.16."""


def sweep(rate_hz: int) -> PcmFloat:
    """The sound: float32 [n] at this rate, faded in and out."""
    count = round(SWEEP_S * rate_hz)
    time_s = np.arange(count) / rate_hz
    low_hz, high_hz = SWEEP_HZ
    phase = 2 * np.pi * (low_hz * time_s + (high_hz - low_hz) / (2 * SWEEP_S) * time_s**2)
    edge = np.minimum(time_s, time_s[-1] - time_s) / FADE_S
    sound: PcmFloat = (SWEEP_PEAK * np.sin(phase) * np.clip(edge, 0, 1)).astype(np.float32)
    return sound


def find(samples: Pcm16) -> int | None:
    """Where the sweep begins in int16 [n] at 16 kHz; None where it was not heard.

    The strongest path may be a reflection; what comes before it and is half as strong is direct.
    """
    pattern = sweep(RATE_HZ).astype(np.float64)
    if len(samples) < len(pattern):
        return None
    length = len(samples) + len(pattern)
    spectrum = np.fft.rfft(samples.astype(np.float64), length)
    spectrum *= np.conj(np.fft.rfft(pattern, length))
    match = np.abs(np.fft.irfft(spectrum, length)[: len(samples) - len(pattern) + 1])
    best = int(match.argmax())
    away = np.abs(np.arange(len(match)) - best) > len(pattern) // 4
    elsewhere = match[away] if away.any() else match
    stands_out = match[best] / max(1e-9, float(np.sqrt(np.mean(np.square(elsewhere)))))
    there = samples[best : best + len(pattern)].astype(np.float64)
    alike = match[best] / max(1e-9, float(np.linalg.norm(there) * np.linalg.norm(pattern)))
    if stands_out < STANDS_OUT or alike < ALIKE:
        return None
    near = match[max(0, best - DIRECT_FRAMES) : best + 1]
    return best - len(near) + 1 + int(np.argmax(near >= match[best] / 2))
