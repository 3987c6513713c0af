"""`oyez meter`: what the microphone delivers, live. Main's thread only.

Levels are those of the samples as the card delivers them, before any software gain; the speech
flag is the daemon's, with the gain that the daemon would begin with.
"""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

from oyez import places
from oyez.audio.cards import Direction
from oyez.rt.ring import Flag
from oyez.tools import meter_line
from oyez.tools.listening import BLOCKS_PER_S, Listening, not_heard
from oyez.tools.meter_line import Reading

if TYPE_CHECKING:
    from typing import TextIO

    from oyez.config import Settings

LIVE_BLOCKS = 5
"""A terminal's line is drawn anew ten times a second."""


class Looking:
    """Reads the meter: each ``reading`` covers what was heard since the last one."""

    def __init__(self, listening: Listening) -> None:
        self._listening = listening
        self._begin = self._block = listening.heard.head_block
        self._lost_s = 0.0
        self.ever = False
        """Whether anything was heard yet."""

    @property
    def blocks(self) -> int:
        """How many blocks the next reading will cover, as of now."""
        return self._listening.heard.head_block - self._block

    def reading(self) -> Reading:
        """What was heard since the last reading."""
        listening = self._listening
        begin, end = self._block, listening.heard.head_block
        self._block = end
        flags = [listening.heard.flags(block) or 0 for block in range(begin, end)]
        lost_s = listening.lost_s
        lost_ms = round((lost_s - self._lost_s) * 1000)
        self._lost_s = lost_s
        levels = meter_line.join(listening.take_levels())
        self.ever = self.ever or levels is not None
        trouble = listening.trouble.get(Direction.CAPTURE, "it delivers nothing")
        return Reading(
            time_s=(end - self._begin) / BLOCKS_PER_S,
            levels=levels,
            channel=listening.channel,
            speech=sum(bool(flag & Flag.SPEECH) for flag in flags) / max(1, len(flags)),
            lost_ms=lost_ms,
            trouble=trouble if levels is None else "",
        )


def run(settings: Settings, seconds: float | None, *, as_json: bool, out: TextIO) -> None:
    """Show the meter on ``out`` for so long, or until Ctrl-C, which is an end like any other.

    Raises:
        AudioDeviceError: nothing was heard in all that time, or a device failed for good.
    """
    memory = places.state_folder() / "gain.json"
    drawn = out.isatty() and not as_json
    try:
        with Listening(settings, speaker_hz=None, gain_memory=memory) as listening:
            looking = Looking(listening)
            _show(looking, listening, seconds, as_json=as_json, out=out, drawn=drawn)
            if not looking.ever:
                raise not_heard(listening)
    except KeyboardInterrupt:
        pass
    finally:
        if drawn:
            print(file=out)


def _show(
    looking: Looking,
    listening: Listening,
    seconds: float | None,
    *,
    as_json: bool,
    out: TextIO,
    drawn: bool,
) -> None:
    every = LIVE_BLOCKS if drawn else BLOCKS_PER_S
    left = None if seconds is None else max(1, round(seconds * BLOCKS_PER_S))
    while left is None or left > 0:
        listening.step()
        wanted = every if left is None else min(every, left)
        if looking.blocks < wanted:
            continue
        left = None if left is None else left - looking.blocks
        reading = looking.reading()
        if drawn:
            width = shutil.get_terminal_size().columns - 1
            print(f"\r\033[K{meter_line.live(reading, width)}", end="", file=out, flush=True)
        elif as_json:
            print(json.dumps(meter_line.fields(reading), ensure_ascii=False), file=out, flush=True)
        else:
            print(meter_line.plain(reading), file=out, flush=True)
