"""The audio thread: wait for a period, hear it, play the next one. Nothing else.

It owns the two opened ports, the front end and the frame index while it runs. What it has to tell
goes out through the rings, its counters (read by anybody, written here alone) and main's mailbox.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING

import numpy as np

from oyez.audio.levels import Signal
from oyez.audio.pcm import dbfs
from oyez.messages import AnswerMark, MicrophoneChanged, ThreadFailed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from oyez.audio.ports import Capture, Playback
    from oyez.rt.front_end import Block, FrontEnd
    from oyez.rt.mailbox import Mailbox
    from oyez.rt.ring import FrameRing, Passed, PlaybackRing

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
        self._out = np.zeros(0, np.float32)
        self._gate = gate and playback is not None and playback.audible
        self._gate_until_s = 0.0
        self._heard_s = 0.0
        self._marks: deque[tuple[float, Passed]] = deque()  # on their way to the air
        self._told = (False, Signal.LIVE, 0)
        self.overruns = 0
        """How often the driver reported that sound was lost because it was not fetched in time."""
        self.gaps = 0
        """How often hearing was interrupted, for whatever reason."""
        self.lost_s = 0.0
        """How much was not heard, in all, since there was anything to hear."""
        self._in_gap = False

    def stop(self) -> None:
        """End after the present period. Any thread."""
        self._stopping = True

    def run(self) -> None:
        """The loop; an error is stored, told to main, and ends the thread."""
        try:
            while not self._stopping:
                heard_s = self._hear()
                self._heard_s += heard_s
                self._speak(heard_s)
        except Exception as error:  # noqa: BLE001 - the thread's top: main reports it
            self._main.post(ThreadFailed(thread=self.name, error=error))

    def _hear(self) -> float:
        """Hear a period; how many seconds it was."""
        period = self._capture.read()
        stream = self._capture.stream
        if period is None:
            if not self._heard.ended:
                self._keep(self._front_end.flush())
                self._heard.end()
            passed_s = self._capture.period_frames / stream.rate_hz
            self._heard.pass_time(passed_s)
            return passed_s
        self.overruns += period.overrun
        gated = self._heard_s < self._gate_until_s
        if period.lost_s and self._front_end.levels is not None:
            self.lost_s += period.lost_s
            self._in_gap = True
        if period.lost_s:
            self._keep(self._front_end.lose(period.lost_s, gated=gated))
        if period.raw:
            self.gaps += self._in_gap
            self._in_gap = False
            if period.reopened:
                self._front_end.forget()
            self._keep(self._front_end.process(period.raw, stream, gated=gated))
            self._tell_signal()
        return period.lost_s + len(period.raw) / stream.frame_bytes / stream.rate_hz

    def _keep(self, blocks: Iterable[Block]) -> None:
        for block in blocks:
            self._heard.write(block.samples, block.flags, block.peak, block.rms)

    def _tell_signal(self) -> None:
        """Tell main when the live channel begins or ends to clip, or falls dead."""
        levels, channel = self._front_end.levels, self._front_end.channel
        if levels is None:
            return
        clips, signal = bool(levels.clipping[channel]), levels.signal(channel)
        if (clips, signal, channel) != self._told:
            self._told = (clips, signal, channel)
            self._main.post(
                MicrophoneChanged(
                    clipping=clips,
                    signal=signal.value,
                    channel=channel,
                    peak_dbfs=dbfs(float(levels.peak[channel])),
                    frame=self._heard.head_frame,
                )
            )

    def _speak(self, heard_s: float) -> None:
        """Give the speaker what it wants now."""
        if self._playback is None or self._spoken is None:
            return
        while frames := self._playback.wanted_frames(heard_s):
            if frames != len(self._out):
                self._out = np.zeros(frames, np.float32)
            count = self._spoken.read(self._out)
            self._playback.write(self._out, count)
            latency_s = self._playback.latency_ms / 1000
            while (mark := self._spoken.passed()) is not None:
                self._marks.append((self._heard_s + latency_s, mark))
            if count and self._gate:
                self._gate_until_s = self._heard_s + latency_s + REVERB_MS / 1000
            heard_s = 0.0
        while self._marks and self._marks[0][0] <= self._heard_s:
            _, mark = self._marks.popleft()
            self._main.post(
                AnswerMark(number=mark.number, last=mark.last, frame=self._heard.now_frame)
            )
