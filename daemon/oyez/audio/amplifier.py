"""The software gain, applied. Pure; the audio thread's, while main says how much it is."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from oyez.messages import PcmFloat

SOFTWARE_HEADROOM_DB = 1.0
"""What stays between the peaks of speech and full scale after multiplication."""


class Amplifier:
    """Multiplies the stream by the software gain, block by block. Audio thread only.

    The gain moves in a ramp over each block, up by 20 dB a second at most, so that nobody hears a
    step. A peak that would pass full scale lowers it at once.
    """

    CEILING = 10 ** (-SOFTWARE_HEADROOM_DB / 20)
    RISE_DB_PER_S = 20.0

    def __init__(self, rate_hz: int) -> None:
        self._rate_hz = rate_hz
        self._factor = 1.0

    def apply(self, mono: PcmFloat, gain_db: float, *, clipping: bool) -> PcmFloat:
        """Float32 [n] amplified; what clips is not made louder, only softer."""
        if not len(mono):
            return mono
        wanted = 10 ** (gain_db / 20)
        if clipping:
            wanted = min(wanted, 1.0)
        peak = float(np.abs(mono).max())
        # A gain of 0 dB or less makes no peak that was not there before.
        most = max(self.CEILING / peak, min(wanted, 1.0)) if peak else math.inf
        rise = 10 ** (self.RISE_DB_PER_S / 20 * len(mono) / self._rate_hz)
        begin = min(self._factor, most)
        end = min(wanted, most, begin * rise)
        self._factor = end
        if begin == end == 1.0:
            return mono
        ramp = np.linspace(begin, end, len(mono), dtype=np.float32)
        return mono * ramp
