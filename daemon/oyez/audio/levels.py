"""How loud a microphone is and what is wrong with it: pure, runs on the audio thread.

Measured on the samples as the card delivers them, channel by channel, before anything is done to
them: a resampler rounds flat tops off and a filter takes DC away, and then neither can be seen.
The work of a period is bounded and vectorized; what is kept is the last 10 ms and a few numbers.

Clipping is a *flat top*: three samples or more that are equal but for ``FLATNESS``, at the very
extreme of the last one to two seconds on their side, and bounded on both sides by slopes that no
round top of that length could have. The level itself says nothing: a limiter may stand at 0.7 of
full scale, and a clean sine may touch full scale.

Why the slopes decide. Near its top a smooth wave falls off like ``a * t**2``, and one whose third
harmonic flattens it as far as it can be flattened, like ``a * t**4``. If ``k`` samples lie within
``e`` of the top, the second sample beyond the last of them lies ``e * (1 + 4 / k) ** 4`` below it
at most. Where a wave runs into a stop, it arrives with the slope that it had, and lies far deeper.
``e`` is never less than one quantum of the signal, the smallest step that it was seen to take, so
that the stairs of a soft or coarsely quantized sound are not taken for flat tops, and neither is a
square wave, whose smallest step is its whole height.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from oyez.audio.pcm import dbfs

if TYPE_CHECKING:
    from oyez.messages import PcmFloat

PerChannel: TypeAlias = npt.NDArray[np.float64]
"""float64 [channels]."""

FLATNESS = 2.0**-11
"""How far the samples of a flat top may differ, in parts of the amplitude (-66 dB)."""
STEEPNESS = 1.5
"""A slope counts when it is so many times as deep as the roundest top would make it."""
LEAST_RUN = 3
"""Samples in the shortest flat top: two equal ones stand on every crest at some phase."""
LEAST_TOPS = 3
"""Flat tops at the same extreme, before they are called clipping: one may be chance."""
LEAST_AMPLITUDE = 10 ** (-50 / 20)
"""Below -50 dBFS nothing is called clipping."""
BUCKET_MS = 1000
"""The extreme and its flat tops are kept for the present and the last bucket of this length."""
HISTORY_MS = 10
"""What is kept of the last period, so that a flat top across its border is whole."""

_NO_STEP = 2.0
"""More than any step within full scale."""

CONSTANT_AFTER_MS = 1000
"""A value that never changed for so long is no sound: the ADC of a live microphone always stirs."""

DC_MS = 1000
"""Time constant of the mean."""
POWER_MS = 50
"""Time constant of the power whose minimum is the noise floor."""
FLOOR_BUCKETS = 8
"""The noise floor is the minimum over so many buckets: a speaker pauses in 8 s."""


class Signal(StrEnum):
    """Whether there is a microphone behind the samples."""

    LIVE = "live"
    SILENT = "digital silence"
    """Nothing but zeros: dead, muted, or not plugged in. A quiet room is never that quiet."""
    STUCK = "stuck at a constant value"


class Levels(NamedTuple):
    """One period's levels, each an array over the channels; amplitudes in parts of full scale.

    ``peak`` is as delivered; ``rms`` and ``floor`` are without the DC part.
    ``flat_tops`` counts those that ended in this period and belong to a clipping channel.
    ``clipping`` says whether the channel clipped in the last one to two seconds.
    """

    peak: PerChannel
    rms: PerChannel
    dc: PerChannel
    floor: PerChannel
    constant_ms: PerChannel
    flat_tops: npt.NDArray[np.int64]
    clipping: npt.NDArray[np.bool_]

    def signal(self, channel: int) -> Signal:
        """Whether the channel is alive."""
        if self.constant_ms[channel] < CONSTANT_AFTER_MS:
            return Signal.LIVE
        return Signal.STUCK if self.peak[channel] > 0 else Signal.SILENT

    def summary(self, channel: int) -> str:
        """One channel in words, for a log or a meter's line."""
        shown = f"peak {dbfs(self.peak[channel]):.1f} dBFS, rms {dbfs(self.rms[channel]):.1f} dBFS"
        shown += f", noise floor {dbfs(self.floor[channel]):.1f} dBFS"
        if abs(self.dc[channel]) > 0.01:  # noqa: PLR2004 - one percent of full scale
            shown += f", DC {self.dc[channel]:+.3f}"
        if self.clipping[channel]:
            shown += ", clipping"
        signal = self.signal(channel)
        return shown if signal is Signal.LIVE else f"{shown}, {signal}"


class Meter:
    """Measures a stream period by period.

    Args:
        rate_hz: the card's rate.
        channels: the card's channels.
    """

    def __init__(self, rate_hz: int, channels: int) -> None:
        self._rate_hz = rate_hz
        self._dc = np.zeros(channels)
        self._last = np.full(channels, np.nan)
        self._constant_ms = np.zeros(channels)
        self._seen_ms = 0.0
        self._floor = _Floor(channels)
        self._flat_tops = _FlatTops(channels, max(LEAST_RUN, rate_hz * HISTORY_MS // 1000))

    def measure(self, frames: PcmFloat) -> Levels:
        """The levels of one period: float32 [frames, channels], at least one frame, all finite."""
        rows = np.ascontiguousarray(frames.T)
        period_ms = rows.shape[1] * 1000 / self._rate_hz
        highest, lowest = rows.max(axis=1), rows.min(axis=1)
        mean = rows.mean(axis=1).astype(np.float64)
        # The mean over all that was heard, until that is longer than the time constant.
        self._seen_ms = min(DC_MS, self._seen_ms + period_ms)
        self._dc += min(1.0, period_ms / self._seen_ms) * (mean - self._dc)
        square = np.einsum("cn,cn->c", rows, rows).astype(np.float64) / rows.shape[1]
        power = np.maximum(0.0, square - self._dc * (2 * mean - self._dc))  # mean((x - dc) ** 2)
        constant = (highest == lowest) & (highest == self._last)
        self._constant_ms = np.where(constant, self._constant_ms + period_ms, 0.0)
        self._last = rows[:, -1].astype(np.float64)
        floor = self._floor.update(power, highest != lowest, period_ms)
        flat_tops, clipping = self._flat_tops.update(rows, highest, -lowest, period_ms)
        return Levels(
            peak=np.maximum(highest, -lowest).astype(np.float64),
            rms=np.sqrt(power),
            dc=self._dc.copy(),
            floor=floor,
            constant_ms=self._constant_ms,
            flat_tops=flat_tops,
            clipping=clipping,
        )


class _Floor:
    """The minimum of the smoothed power over the last seconds."""

    def __init__(self, channels: int) -> None:
        self._smooth = np.full(channels, np.nan)
        self._buckets = np.full((FLOOR_BUCKETS, channels), np.inf)
        self._bucket = 0
        self._bucket_ms = 0.0

    def update(
        self, power: PerChannel, live: npt.NDArray[np.bool_], period_ms: float
    ) -> PerChannel:
        """The floor as an RMS value. Digital silence is left out: it says nothing of the room."""
        self._bucket_ms += period_ms
        if self._bucket_ms >= BUCKET_MS:
            self._bucket_ms = 0.0
            self._bucket = (self._bucket + 1) % FLOOR_BUCKETS
            self._buckets[self._bucket] = np.inf
        share = min(1.0, period_ms / POWER_MS)
        smooth = self._smooth + share * (power - self._smooth)
        smooth = np.where(np.isnan(smooth), power, smooth)
        self._smooth = np.where(live, smooth, self._smooth)
        now = self._buckets[self._bucket]
        np.fmin(now, self._smooth, out=now)
        least = self._buckets.min(axis=0)
        return np.sqrt(np.where(np.isfinite(least), least, 0.0))


class _FlatTops:
    """Finds flat tops on both sides of each channel. A row is a side: all upper, then all lower."""

    def __init__(self, channels: int, history: int) -> None:
        self._channels = channels
        self._history = history
        self._tail = np.zeros((channels, history), np.float32)
        self._bucket_ms = 0.0
        # [present and last bucket, rows]
        self._extremes = np.full((2, 2 * channels), -np.inf)
        self._quanta = np.full((2, channels), _NO_STEP)
        self._tops = np.zeros((2, 2 * channels), np.int64)

    def update(
        self, rows: PcmFloat, highest: PcmFloat, lowest: PcmFloat, period_ms: float
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """The flat tops that ended in this period, and whether the channel is clipping.

        ``rows`` is float32 [channels, frames], ``highest`` and ``lowest`` [channels]; the latter
        is that of the inverted wave, so that both are upward.
        """
        joined = np.concatenate((self._tail, rows), axis=1)
        self._tail = joined[:, -self._history :]
        self._next_bucket(period_ms)
        steps = np.abs(np.diff(joined, axis=1))
        steps[steps == 0] = _NO_STEP
        np.minimum(self._quanta[0], steps.min(axis=1), out=self._quanta[0])
        before = self._extremes.max(axis=0)
        here = np.concatenate((highest, lowest)).astype(np.float64)
        extremes = np.maximum(before, here)
        amplitude = (extremes[: self._channels] + extremes[self._channels :]) / 2
        quantum = self._quanta.min(axis=0)
        flatness = np.tile(np.maximum(quantum, amplitude * FLATNESS), 2)
        # A higher extreme makes all that was flat below it a matter of the wave, not of a limit.
        self._tops[:, extremes > before + flatness] = 0
        np.maximum(self._extremes[0], here, out=self._extremes[0])
        reached = (here >= extremes - flatness) & np.tile(amplitude >= LEAST_AMPLITUDE, 2)
        new = np.zeros(2 * self._channels, np.int64)
        if reached.any():
            sides = np.concatenate((joined, -joined))[reached]
            stairs = np.tile(quantum, 2)[reached]
            tops = _flat_tops(sides, extremes[reached], flatness[reached], stairs, self._history)
            new[reached] = tops
        self._tops[0] += new
        clipping = self._tops.sum(axis=0) >= LEAST_TOPS
        both = (new * clipping).reshape(2, -1).sum(axis=0)
        return both, clipping.reshape(2, -1).any(axis=0)

    def _next_bucket(self, period_ms: float) -> None:
        self._bucket_ms += period_ms
        if self._bucket_ms < BUCKET_MS:
            return
        self._bucket_ms = 0.0
        for buckets, empty in (
            (self._extremes, -np.inf),
            (self._quanta, _NO_STEP),
            (self._tops, 0),
        ):
            buckets[1] = buckets[0]
            buckets[0] = empty


def _flat_tops(
    sides: PcmFloat, extremes: PerChannel, flatness: PerChannel, quanta: PerChannel, seen: int
) -> npt.NDArray[np.int64]:
    """How many flat tops of each row were complete with the newest samples, and not before.

    Args:
        sides: float32 [rows, n], upward.
        extremes: [rows], the highest value of the last seconds.
        flatness: [rows], how far below it a sample of a flat top may lie.
        quanta: [rows], the signal's smallest step.
        seen: so many of the n samples were looked at before.
    """
    rows, length = sides.shape
    at_top = sides >= (extremes - flatness)[:, None]
    # A slope is two samples: a top that reaches the end is looked at again with the next period.
    at_top[:, :2] = at_top[:, -2:] = False
    flat = at_top.ravel()
    edges = np.flatnonzero(flat[1:] != flat[:-1])
    begin, end = edges[::2] + 1, edges[1::2] + 1
    run, row = end - begin, begin // length
    first = row * length
    whole = (run >= LEAST_RUN) & (end + 1 - first >= seen) & (begin - first > 2)  # noqa: PLR2004
    begin, end, run, row = begin[whole], end[whole], run[whole], row[whole]
    beyond = np.maximum(sides.ravel()[begin - 2], sides.ravel()[end + 1])
    # Rounding may have moved the top and what lies beyond it by half a quantum each.
    round_top = (flatness + quanta)[row] * (1 + 4 / run) ** 4
    steep = extremes[row] - beyond >= STEEPNESS * round_top + quanta[row]
    return np.bincount(row[steep], minlength=rows)
