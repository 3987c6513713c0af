"""The audio thread: wait for a period, hear it, play the next one. Nothing else.

It owns the two opened ports, the front end and the frame index while it runs. What it has to tell
goes out through the rings, its counters (read by anybody, written here alone) and main's mailbox.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np

from oyez.messages import AnswerMark, ThreadFailed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from oyez.audio.ports import Capture, Playback
    from oyez.rt.front_end import Block, FrontEnd
    from oyez.rt.mailbox import Mailbox
    from oyez.rt.ring import FrameRing, PlaybackRing

REVERB_MS = 300
"""How long a room still carries the device's own voice after the speaker fell silent."""


class AudioThread(threading.Thread):
    """Moves sound between the ports and the rings until ``stop`` or an error.

    Without ``playback`` and ``spoken`` it only hears. With ``gate`` it marks what it hears while
    the device can be heard speaking, and until the room is quiet again, as not to be listened to.
    """

    def __init__(
        self,
        *,
        capture: Capture,
        playback: Playback | None,
        front_end: FrontEnd,
        heard: FrameRing,
        spoken: PlaybackRing | None,
        gate: bool,
        main: Mailbox[object],
    ) -> None:
        super().__init__(name="oyez-audio", daemon=True)
        self._capture = capture
        self._playback = playback
        self._front_end = front_end
        self._heard = heard
        self._spoken = spoken
        self._main = main
        self._stopping = False
        self._gate_periods = 0
        self._gate_tail_periods = 0
        if playback is not None:
            period_s = capture.period_frames / capture.stream.rate_hz
            self._out = np.zeros(round(period_s * playback.rate_hz), np.float32)
            if gate and playback.audible:
                tail_s = (playback.latency_ms + REVERB_MS) / 1000
                self._gate_tail_periods = int(tail_s / period_s) + 1
        self.overruns = 0
        """How often the driver reported that sound was lost because it was not fetched in time."""

    def stop(self) -> None:
        """End after the present period. Any thread."""
        self._stopping = True

    def run(self) -> None:
        """The loop; an error is stored, told to main, and ends the thread."""
        try:
            while not self._stopping:
                self._hear()
                self._speak()
        except Exception as error:  # noqa: BLE001 - the thread's top: main reports it
            self._main.post(ThreadFailed(thread=self.name, error=error))

    def _hear(self) -> None:
        period = self._capture.read()
        if period is None:
            if not self._heard.ended:
                self._keep(self._front_end.flush())
                self._heard.end()
            self._heard.pass_time(self._capture.period_frames / self._capture.stream.rate_hz)
            return
        self.overruns += period.overrun
        self._keep(self._front_end.process(period.raw, gated=self._gate_periods > 0))

    def _keep(self, blocks: Iterable[Block]) -> None:
        for block in blocks:
            self._heard.write(block.samples, block.flags, block.peak)

    def _speak(self) -> None:
        if self._playback is None or self._spoken is None:
            return
        count = self._spoken.read(self._out)
        self._playback.write(self._out, count)
        while (mark := self._spoken.passed()) is not None:
            self._main.post(
                AnswerMark(number=mark.number, last=mark.last, frame=self._heard.now_frame)
            )
        if count:
            self._gate_periods = self._gate_tail_periods
        elif self._gate_periods:
            self._gate_periods -= 1
