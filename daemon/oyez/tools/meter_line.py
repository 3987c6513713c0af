"""What a meter shows: levels of many periods joined, and drawn as a line. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from oyez.audio.levels import Levels, Signal
from oyez.audio.pcm import dbfs

if TYPE_CHECKING:
    from collections.abc import Sequence

LOWEST_DBFS = -60.0
"""The bar's left end."""
BAR_WIDTH = 30


def join(periods: Sequence[Levels]) -> Levels | None:
    """The levels of some periods in a row as those of one; None for none.

    Where a card with other channels took over in between, what it delivered counts.
    """
    if not periods:
        return None
    last = periods[-1]
    same = [levels for levels in periods if len(levels.peak) == len(last.peak)]
    power = np.mean([np.square(levels.rms) for levels in same], axis=0)
    return last._replace(
        peak=np.max([levels.peak for levels in same], axis=0),
        rms=np.sqrt(power),
        flat_tops=np.sum([levels.flat_tops for levels in same], axis=0),
        clipping=np.any([levels.clipping for levels in same], axis=0),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a meter has to show.

    ``levels`` is None while no microphone is heard; ``trouble`` then says why. ``channel`` is the
    one that is listened to, ``speech`` the share of speech in [0, 1], and ``lost_ms`` how much was
    not heard.
    """

    time_s: float
    levels: Levels | None
    channel: int
    speech: float
    lost_ms: int
    trouble: str = ""


def plain(reading: Reading) -> str:
    """A line for a log: every channel in words, the live one marked."""
    shown = [f"{reading.time_s:6.1f} s"]
    if reading.levels is None:
        shown.append(f"no microphone: {reading.trouble}")
    else:
        shown.append(f"speech {reading.speech:4.0%}")
        for channel in range(len(reading.levels.peak)):
            live = " (live)" if channel == reading.channel else ""
            shown.append(f"channel {channel}{live}: {reading.levels.summary(channel)}")
    if reading.lost_ms:
        shown.append(f"{reading.lost_ms} ms lost")
    return "  ".join(shown)


def live(reading: Reading, width: int) -> str:
    """A line for a terminal of ``width`` columns: the live channel as a bar, others in short."""
    if reading.levels is None:
        return f"no microphone: {reading.trouble}"[:width]
    levels, channel = reading.levels, reading.channel
    peak_dbfs, rms_dbfs = dbfs(levels.peak[channel]), dbfs(levels.rms[channel])
    shown = [
        bar(rms_dbfs, peak_dbfs),
        f"{rms_dbfs:6.1f} dBFS",
        f"peak {peak_dbfs:6.1f}",
        f"floor {dbfs(levels.floor[channel]):6.1f}",
        "speech" if reading.speech else "      ",
        f"channel {channel}{_state(levels, channel)}",
    ]
    shown += [
        f"{other}{_state(levels, other) or f': {dbfs(levels.rms[other]):.0f}'}"
        for other in range(len(levels.peak))
        if other != channel
    ]
    if reading.lost_ms:
        shown.append(f"{reading.lost_ms} ms lost")
    return "  ".join(shown)[:width]


def bar(rms_dbfs: float, peak_dbfs: float) -> str:
    """``[######----|   ]``: the RMS level, and the peak above it, from -60 to 0 dBFS."""
    rms, peak = _column(rms_dbfs), _column(peak_dbfs)
    cells = ["#" if n < rms else "-" if n < peak else " " for n in range(BAR_WIDTH)]
    if peak:
        cells[peak - 1] = "|"
    return f"[{''.join(cells)}]"


def _column(level_dbfs: float) -> int:
    share = (level_dbfs - LOWEST_DBFS) / -LOWEST_DBFS
    return round(BAR_WIDTH * min(max(share, 0.0), 1.0))


def _state(levels: Levels, channel: int) -> str:
    signal = levels.signal(channel)
    if signal is not Signal.LIVE:
        return f": {signal}"
    return " CLIPPING" if levels.clipping[channel] else ""


def fields(reading: Reading) -> dict[str, Any]:
    """The same for a program; amplitudes in dBFS, DC in parts of full scale."""
    levels = reading.levels
    channels = range(len(levels.peak)) if levels is not None else range(0)
    return {
        "time_s": round(reading.time_s, 2),
        "channel": reading.channel if levels is not None else None,
        "speech": round(reading.speech, 2),
        "lost_ms": reading.lost_ms,
        "trouble": reading.trouble or None,
        "channels": [channel_fields(levels, channel) for channel in channels if levels],
    }


def channel_fields(levels: Levels, channel: int) -> dict[str, Any]:
    """One channel's levels for a program."""
    return {
        "peak_dbfs": round(dbfs(levels.peak[channel]), 1),
        "rms_dbfs": round(dbfs(levels.rms[channel]), 1),
        "floor_dbfs": round(dbfs(levels.floor[channel]), 1),
        "dc": round(float(levels.dc[channel]), 4),
        "clipping": bool(levels.clipping[channel]),
        "signal": levels.signal(channel).value,
    }
