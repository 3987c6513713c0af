"""A room around a test card: noise, and a person who does what the calibration asks for."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np

from oyez.tools import echo_probe

if TYPE_CHECKING:
    from alsa.card import Card
    from oyez.messages import PcmFloat

RATE_HZ = 16_000
SPEED = 8.0


def db(gain_db: float) -> float:
    return float(10 ** (gain_db / 20))


def noise(seconds: float, level_dbfs: float) -> PcmFloat:
    """A room in which nobody speaks."""
    count = round(seconds * RATE_HZ)
    hiss = np.random.default_rng(1).normal(0, db(level_dbfs), count)
    return hiss.astype(np.float32)


def voice(seconds: float, level_dbfs: float) -> PcmFloat:
    """Something like speech: voiced syllables of this RMS level, with pauses between them."""
    time_s = np.arange(round(seconds * RATE_HZ)) / RATE_HZ
    pitch_hz = 120 + 15 * np.sin(2 * np.pi * 0.7 * time_s)
    phase = 2 * np.pi * np.cumsum(pitch_hz) / RATE_HZ
    sound = sum(np.sin(n * phase + n * n) / n for n in range(1, 25))
    sound = sound * (np.sin(2 * np.pi * 1.5 * time_s) > -0.5)
    active = sound[sound != 0]
    return (sound * db(level_dbfs) / np.sqrt(np.mean(active**2))).astype(np.float32)


class Person(io.StringIO):
    """Hears what is asked, and makes the room sound like it.

    ``echo_db`` is how loud the sweep comes back, None for a speaker that is off.
    """

    def __init__(
        self,
        card: Card,
        *,
        speech_dbfs: float | None,
        noise_dbfs: float = -65.0,
        echo_db: float | None = -12.0,
        channel_map: tuple[int, ...] = (),
        limit: float = 1.0,
    ) -> None:
        super().__init__()
        self._card = card
        self._map = channel_map
        self._limit = limit
        self._noise = noise(30, noise_dbfs)
        self._speech = self._noise.copy()
        if speech_dbfs is not None:
            self._speech += voice(30, speech_dbfs)
        self._echo = self._noise.copy()
        if echo_db is not None:
            sweep = echo_probe.sweep(RATE_HZ) * np.float32(db(echo_db))
            begin = round(1.3 * RATE_HZ)
            self._echo[begin : begin + len(sweep)] += sweep
        card.speed = SPEED
        self._play(self._noise)

    def write(self, text: str) -> int:
        if "speak" in text and "speaker" not in text:
            self._play(self._speech)
        elif "rising tone" in text:
            self._play(self._echo)
        return super().write(text)

    def _play(self, sound: PcmFloat) -> None:
        # Floats, which the test card amplifies and then clips as a converter would.
        cut = np.clip(sound, -self._limit, self._limit)
        self._card.play(
            cut, rate=RATE_HZ, format_name="FLOAT_LE", loops=True, channel_map=self._map
        )
