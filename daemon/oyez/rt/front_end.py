"""What happens to each period on the audio thread, from raw bytes to flagged 16 kHz blocks.

Level and clipping are measured first, on the samples as the card delivers them: resampling
rounds flat tops off, so that afterwards no clipping can be seen any more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
import soxr

from oyez.audio import pcm
from oyez.audio.amplifier import Amplifier
from oyez.audio.levels import Levels, Meter
from oyez.messages import BLOCK_FRAMES, RATE_HZ, Pcm16, PcmFloat
from oyez.rt.ring import Flag

if TYPE_CHECKING:
    from collections.abc import Iterator

SWITCH_RATIO = 4.0
"""Another channel takes over when its smoothed power is 6 dB above the present one's."""
POWER_SMOOTHING = 0.05
"""Share of the newest period in a channel's smoothed power: 0.4 s at 20 ms a period."""
DC_SMOOTHING = 0.02
"""Share of the newest period's mean in the offset: 1 s at 20 ms a period, below any speech."""
MIN_DC = 0.003
"""A smaller offset (-50 dBFS) harms nothing, and sound without one stays as it was delivered."""


class BlockVad(Protocol):
    """Decides for one block of int16 [BLOCK_FRAMES] whether it is speech, in constant time."""

    def is_speech(self, block: Pcm16) -> bool:
        """Whether the block sounds like speech."""
        ...


class Block(NamedTuple):
    """One block: int16 [BLOCK_FRAMES], its ``Flag`` bits, and the levels of the periods behind it.

    ``peak`` and ``rms`` are the live channel's, as delivered, in [0, 1].
    """

    samples: Pcm16
    flags: int
    peak: float
    rms: float


class FrontEnd:
    """Turns periods of any rate, format and number of channels into blocks.

    Audio thread only, but for ``gain_db``, which main sets, and ``levels`` and ``channel``, which
    anybody may read.
    """

    def __init__(self, vad: BlockVad) -> None:
        self._vad = vad
        self._stream: pcm.StreamFormat | None = None
        self._resampler: soxr.ResampleStream | None = None
        self._meter: Meter | None = None
        self._power = np.zeros(0, np.float64)
        self._dc: float | None = None
        self._rest = np.zeros(0, np.float32)
        self._lost_s = 0.0
        self._flags = Flag(0)
        self._peak = 0.0
        self._rms = 0.0
        self._amplifier = Amplifier(RATE_HZ)
        self.gain_db = 0.0
        """The software gain, in dB."""
        self.channel = 0
        """The channel that is listened to."""
        self.levels: Levels | None = None
        """What the meter said of the newest period."""

    def process(
        self, raw: bytes | memoryview, stream: pcm.StreamFormat, *, gated: bool
    ) -> Iterator[Block]:
        """The blocks that this period completes; what is left over waits for the next period."""
        if stream != self._stream:
            self._tune(stream)
        frames = pcm.decode(raw, stream)
        if not len(frames):
            return
        mono = self._without_dc(frames[:, self._measure(frames)])
        if self._resampler is not None:
            mono = self._resampler.resample_chunk(np.ascontiguousarray(mono))
        clipping = self.levels is not None and bool(self.levels.clipping[self.channel])
        mono = self._amplifier.apply(mono, self.gain_db, clipping=clipping)
        yield from self._blocks(mono, gated=gated)

    def forget(self) -> None:
        """Another device delivers from now on: what was learned of the last one does not hold."""
        self._stream = None

    def lose(self, lost_s: float, *, gated: bool) -> Iterator[Block]:
        """The blocks that stand for time that was not heard: silence, flagged as lost."""
        self._lost_s += lost_s
        frames = int(self._lost_s * RATE_HZ)
        self._lost_s -= frames / RATE_HZ
        # A step at a time: a long absence must not be one long piece of work.
        while frames > 0:
            step = min(frames, BLOCK_FRAMES)
            frames -= step
            self._flags |= Flag.LOST
            yield from self._blocks(np.zeros(step, np.float32), gated=gated)

    def flush(self) -> Iterator[Block]:
        """The end of a finite source: what the resampler and the last block still hold."""
        if self._resampler is not None:
            tail = self._resampler.resample_chunk(np.zeros(0, np.float32), last=True)
            yield from self._blocks(tail, gated=False)
        if len(self._rest):
            yield from self._blocks(
                np.zeros(BLOCK_FRAMES - len(self._rest), np.float32), gated=False
            )

    def _tune(self, stream: pcm.StreamFormat) -> None:
        """Begin with another stream: another card, or one that was opened anew."""
        self._stream = stream
        self.channel = 0
        self._meter = Meter(stream.rate_hz, stream.channels)
        self._power = np.zeros(stream.channels, np.float64)
        self._dc = None
        self._resampler = (
            None
            if stream.rate_hz == RATE_HZ
            else soxr.ResampleStream(stream.rate_hz, RATE_HZ, 1, dtype="float32", quality="MQ")
        )

    def _without_dc(self, mono: PcmFloat) -> PcmFloat:
        """Take a constant offset away, where there is one; without steps between periods."""
        mean = float(mono.mean())
        before = self._dc
        if before is None:
            # At once where the offset is more than the sound: a ramp from 0 would be a thump.
            before = mean if abs(mean) > float(mono.std()) else 0.0
        self._dc = before + DC_SMOOTHING * (mean - before)
        if max(abs(before), abs(self._dc)) < MIN_DC:
            return mono
        offset: PcmFloat = np.linspace(before, self._dc, len(mono), dtype=np.float32)
        return mono - offset

    def _measure(self, frames: PcmFloat) -> int:
        """Note the levels as delivered, and return the channel to listen to.

        The loudest over time is the live one: a dead channel beside it would halve the level if
        the two were averaged, and channels of one microphone in two phases would cancel out.
        """
        assert self._meter is not None  # noqa: S101 - made by _tune
        levels = self.levels = self._meter.measure(frames)
        self._power += POWER_SMOOTHING * (np.square(levels.rms) - self._power)
        best = int(self._power.argmax())
        if self._power[best] > SWITCH_RATIO * self._power[self.channel]:
            self.channel = best
        self._peak = max(self._peak, float(levels.peak[self.channel]))
        self._rms = max(self._rms, float(levels.rms[self.channel]))
        if levels.flat_tops[self.channel]:
            self._flags |= Flag.CLIPPED
        return self.channel

    def _blocks(self, mono: PcmFloat, *, gated: bool) -> Iterator[Block]:
        joined = np.concatenate((self._rest, mono))
        whole = len(joined) // BLOCK_FRAMES * BLOCK_FRAMES
        self._rest = joined[whole:]
        for samples in pcm.to_pcm16(joined[:whole]).reshape(-1, BLOCK_FRAMES):
            # The VAD runs on gated blocks too: its noise estimate must not jump afterwards.
            flags = self._flags | Flag.SPEECH * self._vad.is_speech(samples) | Flag.GATED * gated
            yield Block(samples, int(flags), self._peak, self._rms)
        if whole:
            self._flags, self._peak, self._rms = Flag(0), 0.0, 0.0
