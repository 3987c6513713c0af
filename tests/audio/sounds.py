"""Sounds for tests that need no recording: WebRTC's VAD takes ``buzz`` for speech."""

from __future__ import annotations

import numpy as np

from oyez.messages import RATE_HZ


def silence(duration_ms: int, rate_hz: int = RATE_HZ) -> np.ndarray:
    """int16 zeros."""
    return np.zeros(rate_hz * duration_ms // 1000, np.int16)


def buzz(duration_ms: int, rate_hz: int = RATE_HZ, level: float = 0.5) -> np.ndarray:
    """int16 harmonics of 140 Hz, as a voice has them."""
    time_s = np.arange(rate_hz * duration_ms // 1000) / rate_hz
    sound = sum(np.sin(2 * np.pi * 140 * n * time_s) / n for n in range(1, 20))
    return (sound / np.abs(sound).max() * level * 32767).astype(np.int16)


def tone(frequency_hz: float, duration_ms: int, rate_hz: int, level: float = 0.5) -> np.ndarray:
    """float32 sine."""
    time_s = np.arange(rate_hz * duration_ms // 1000) / rate_hz
    return (level * np.sin(2 * np.pi * frequency_hz * time_s)).astype(np.float32)


def pitch_hz(samples: np.ndarray, rate_hz: int) -> float:
    """The strongest frequency in a sound, to a fraction of a spectral line."""
    spectrum = np.abs(np.fft.rfft(samples * np.hanning(len(samples))))
    peak = int(spectrum[1:-1].argmax()) + 1
    below, at, above = np.log(spectrum[peak - 1 : peak + 2] + 1e-12)
    offset = (below - above) / (2 * (below - 2 * at + above))
    return float((peak + offset) * rate_hz / len(samples))
