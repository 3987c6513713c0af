"""What main says of the sound: cards that come and go, losses, clipping, a dead microphone.

Main's thread only. A wiggling plug or a storm of overruns must not fill the journal: there are at
most LINES lines a minute, and what they left out is counted and told with the next.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from typing import TYPE_CHECKING

from oyez.audio.levels import Signal
from oyez.messages import (
    Blip,
    Dropped,
    Heard,
    MicrophoneChanged,
    Transcript,
    frames_to_ms,
)
from oyez.workers.device import DeviceLost, DeviceOpened, GainSet

if TYPE_CHECKING:
    from oyez.dialog.loudness import Loudness
    from oyez.workers.crew import Crew

logger = logging.getLogger(__name__)

LINES = 7
"""Lines a minute; with those on losses, which are never left out, ten."""
MINUTE_S = 60.0
LOSSES_S = 20.0
"""How often losses are told of while they go on."""


class SoundWatch:
    """Takes main's messages on the sound, and passes to ``loudness`` what concerns it."""

    def __init__(self, loudness: Loudness) -> None:
        self._loudness = loudness
        self._said_s: deque[float] = deque()
        self._left_out = 0
        self._losses = (0, 0, 0, 0, 0)
        self._losses_s = -LOSSES_S

    def take(self, message: object) -> None:
        """Look at a message; those that say nothing of the sound are passed over."""
        match message:
            case DeviceOpened():
                self._opened(message)
            case DeviceLost(direction=direction, device=device, fault=fault, reason=reason):
                self._say("%s %s: %s (%s); looking for it", direction, device, fault, reason)
            case MicrophoneChanged():
                self._changed(message)
            case GainSet(hardware_db=hardware_db):
                self._loudness.granted(hardware_db)
            case Heard():
                self._loudness.heard(message)
            case Transcript(number=number, reading=reading):
                self._loudness.read(number, has_text=bool(reading.text))
            case Dropped(number=number):
                self._loudness.read(number, has_text=False)
            case Blip():
                self._loudness.blip()

    def look(self, crew: Crew, *, last: bool = False) -> None:
        """Tell of sound that was lost since the last time."""
        losses = (crew.gaps, crew.overruns, crew.underruns, crew.lost_frames, crew.lost_ms)
        now_s = time.monotonic()
        # Time alone says nothing yet: while a card is away, that was said already.
        if losses[:-1] == self._losses[:-1] or (now_s - self._losses_s < LOSSES_S and not last):
            return
        new = [after - before for before, after in zip(self._losses, losses, strict=True)]
        self._losses, self._losses_s = losses, now_s
        logger.warning(
            "sound was lost: %d ms in %d gaps; %d overruns and %d underruns of the card; "
            "%d ms were read too late",
            new[4],
            new[0],
            new[1],
            new[2],
            frames_to_ms(new[3]),
        )

    def _opened(self, message: DeviceOpened) -> None:
        self._say("%s: %s", message.direction, message.handle, level=logging.INFO)
        if message.hardware_db is not None or message.mixer.capture or message.mixer.playback:
            self._say("mixer %s", message.mixer, level=logging.INFO)
        for complaint in message.complaints:
            self._say("%s: %s", message.direction, complaint)
        if message.direction == "capture":
            self._loudness.opened(message)

    def _changed(self, message: MicrophoneChanged) -> None:
        if message.signal != Signal.LIVE:
            self._say("the microphone delivers %s: is it muted, or dead?", message.signal)
        elif message.clipping:
            self._say("the microphone clips, at %.1f dBFS", message.peak_dbfs)
        else:
            self._say("the microphone is live on channel %d", message.channel, level=logging.INFO)
        self._loudness.changed(message)

    def _say(self, text: str, *values: object, level: int = logging.WARNING) -> None:
        now_s = time.monotonic()
        while self._said_s and now_s - self._said_s[0] >= MINUTE_S:
            self._said_s.popleft()
        if len(self._said_s) >= LINES:
            self._left_out += 1
            return
        self._said_s.append(now_s)
        if self._left_out:
            text, values = text + " (%d lines were left out)", (*values, self._left_out)
            self._left_out = 0
        logger.log(level, text, *values)
