"""The voice's thread, ``oyez-tts``: owns the synthesizer, fills the playback ring."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
import soxr

from oyez.messages import AnswerReady, AnswerRequest, AnswerUnspoken, PcmFloat
from oyez.workers.worker import Worker

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator

    from oyez.rt.mailbox import Mailbox
    from oyez.rt.ring import PlaybackRing
    from oyez.speech.engines import Synthesizer

QUEUE_ANSWERS = 16
"""Answers that may wait; main counts one more as not spoken, with a receipt."""


class SpeakerWorker(Worker[AnswerRequest]):
    """Speaks each answer into ``ring``, at the speaker's rate ``rate_hz``."""

    def __init__(
        self,
        *,
        engine: Synthesizer,
        inference: threading.Lock,
        ring: PlaybackRing,
        rate_hz: int,
        main: Mailbox[object],
    ) -> None:
        super().__init__("oyez-tts", capacity=QUEUE_ANSWERS, main=main)
        self._engine = engine
        self._inference = inference
        self._ring = ring
        self._rate_hz = rate_hz

    def stop(self) -> None:
        """End after the piece that is being made. Any thread."""
        super().stop()
        self._ring.close()

    @property
    def settled(self) -> bool:
        """Whether it has nothing to do, or waits for the speaker. Any thread."""
        return self.inbox.idle or self._ring.blocked

    def _work_on(self, message: AnswerRequest) -> None:
        begin_ns = time.monotonic_ns()
        begun = False
        for piece in self._pieces(message.text):
            if not begun:
                begun = True
                synthesis_ms = (time.monotonic_ns() - begin_ns) / 1e6
                self._main.post(AnswerReady(number=message.number, synthesis_ms=synthesis_ms))
                self._ring.mark(message.number, last=False)
            if not self._ring.write(piece):
                return
        if begun:
            self._ring.mark(message.number, last=True)
        else:
            self._main.post(AnswerUnspoken(number=message.number))

    def _pieces(self, text: str) -> Iterator[PcmFloat]:
        """The text's sound at the speaker's rate; no empty pieces."""
        voice_hz = self._engine.rate_hz
        if voice_hz == self._rate_hz:
            yield from filter(len, self._made(text))
            return
        resampler = soxr.ResampleStream(voice_hz, self._rate_hz, 1, dtype="float32")
        for piece in self._made(text):
            yield from filter(len, [resampler.resample_chunk(piece)])
        tail = resampler.resample_chunk(np.zeros(0, np.float32), last=True)
        yield from filter(len, [tail])

    def _made(self, text: str) -> Iterator[PcmFloat]:
        """The engine's pieces, each made while ``inference`` is held, and given without it."""
        pieces = self._engine.speak(text)
        while True:
            with self._inference:
                piece = next(pieces, None)
            if piece is None:
                return
            yield piece
