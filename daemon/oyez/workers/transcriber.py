"""The transcriber's thread, ``oyez-stt``: owns the recognizer, turns utterances into texts."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from oyez.messages import Dropped, DropReason, Transcript, Utterance
from oyez.speech.engines import Aborted
from oyez.workers.worker import Worker

if TYPE_CHECKING:
    import threading

    from oyez.rt.mailbox import Mailbox
    from oyez.rt.ring import FrameRing
    from oyez.speech.engines import Transcriber

QUEUE_UTTERANCES = 8
"""Finals that may wait: 160 s of speech. One more is dropped by the listener, with a receipt."""


class TranscriberWorker(Worker[Utterance]):
    """Reads each utterance and tells main; holds ``inference`` meanwhile."""

    def __init__(
        self,
        *,
        engine: Transcriber,
        inference: threading.Lock,
        ring: FrameRing,
        main: Mailbox[object],
    ) -> None:
        super().__init__("oyez-stt", capacity=QUEUE_UTTERANCES, main=main)
        self._engine = engine
        self._inference = inference
        self._ring = ring

    def stop(self) -> None:
        """End as soon as the running encoder pass is over. Any thread."""
        super().stop()
        self._engine.abort()

    def _work_on(self, message: Utterance) -> None:
        with self._inference:
            begin_ns = time.monotonic_ns()
            try:
                reading = self._engine.read(message.samples)
            except Aborted:
                self._main.post(Dropped(number=message.span.number, reason=DropReason.STOPPED))
                return
            end_ns = time.monotonic_ns()
        self._main.post(
            Transcript(
                number=message.span.number,
                reading=reading,
                decode_ms=(end_ns - begin_ns) / 1e6,
                after_endpoint_ms=(end_ns - message.ended_ns) / 1e6,
                text_frame=self._ring.now_frame,
            )
        )
