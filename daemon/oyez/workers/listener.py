"""The listener: follows the frame ring, finds the utterances in it and hands them on.

Its thread, ``oyez-listen``, owns the endpointer. When it falls so far behind that frames were
overwritten, it goes on with the newest and tells the endpointer of the gap.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from oyez.audio.gain import active_level_dbfs
from oyez.audio.pcm import dbfs
from oyez.messages import (
    BLOCK_FRAMES,
    BLOCK_MS,
    Dropped,
    DropReason,
    EndReason,
    Heard,
    InputEnded,
    Span,
    ThreadFailed,
    Utterance,
)
from oyez.rt.ring import Flag

if TYPE_CHECKING:
    from collections.abc import Iterable

    from oyez.rt.mailbox import Mailbox
    from oyez.rt.ring import FrameRing
    from oyez.speech.endpointer import Endpointer, Event


class Listener(threading.Thread):
    """Reads blocks as they come; its events go to ``main``, its utterances to ``transcriber``."""

    def __init__(
        self,
        *,
        ring: FrameRing,
        endpointer: Endpointer,
        transcriber: Mailbox[Utterance],
        main: Mailbox[object],
    ) -> None:
        super().__init__(name="oyez-listen", daemon=True)
        self._ring = ring
        self._endpointer = endpointer
        self._transcriber = transcriber
        self._main = main
        self._stopping = False
        self._input_ended = False
        self._settled_block = 0
        self.lost_blocks = 0
        """Blocks that were overwritten before they were looked at, in all."""

    def stop(self) -> None:
        """End what is open as "stopped" and then the thread. Any thread."""
        self._stopping = True
        self._ring.wake()

    @property
    def settled(self) -> bool:
        """Whether all that was written, and its end, has been handled. Any thread."""
        ended = self._ring.ended
        return self._settled_block == self._ring.head_block and ended == self._input_ended

    def run(self) -> None:
        """Follow the ring until ``stop`` or an error, which main is told."""
        try:
            while not self._stopping:
                self._catch_up()
                self._ring.wait(None)
            self._catch_up()
            self._tell(self._endpointer.flush(EndReason.STOPPED))
        except Exception as error:  # noqa: BLE001 - the thread's top: main reports it
            self._main.post(ThreadFailed(thread=self.name, error=error))

    def _catch_up(self) -> None:
        ended = self._ring.ended  # before the head: nothing is written after it
        while (block := self._endpointer.next_block) < self._ring.head_block:
            flags = self._ring.flags(block)
            if flags is None:
                newest = self._ring.head_block
                self.lost_blocks += newest - block
                self._tell(self._endpointer.skip_to(newest))
                continue
            speech, gated = bool(flags & Flag.SPEECH), bool(flags & Flag.GATED)
            self._tell(self._endpointer.process(speech=speech, gated=gated))
        if ended and not self._input_ended and not self._stopping:
            self._tell(self._endpointer.flush(EndReason.END_OF_INPUT))
            self._main.post(InputEnded(frame=self._ring.head_frame))
            self._input_ended = True
        self._settled_block = self._endpointer.next_block

    def _tell(self, events: Iterable[Event]) -> None:
        for event in events:
            if isinstance(event, Span):
                self._hand_over(event)
            else:
                self._main.post(event)

    def _hand_over(self, span: Span) -> None:
        begin, end = span.begin_frame // BLOCK_FRAMES, span.end_frame // BLOCK_FRAMES
        levels = self._ring.levels(begin, end)
        samples = self._ring.copy(begin, end)
        self._main.post(
            Heard(
                span=span,
                peak_dbfs=dbfs(levels.peak),
                level_dbfs=active_level_dbfs(levels.rms),
                clipped_ms=levels.clipped_blocks * BLOCK_MS,
            )
        )
        if span.reason is EndReason.STOPPED:
            self._main.post(Dropped(number=span.number, reason=DropReason.STOPPED))
        elif samples is None:
            self._main.post(Dropped(number=span.number, reason=DropReason.LOST))
        elif not self._transcriber.post(
            Utterance(span=span, samples=samples, ended_ns=time.monotonic_ns())
        ):
            self._main.post(Dropped(number=span.number, reason=DropReason.BUSY))
