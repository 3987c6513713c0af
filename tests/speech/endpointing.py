"""The endpointer driven by pictures: one character a block.

``#`` voiced, ``.`` silent, ``g`` gated, ``G`` gated and voiced, ``_`` lost.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from oyez.messages import BLOCK_FRAMES, BLOCK_MS, Blip, EndReason, Span, SpeechStarted
from oyez.speech.endpointer import Endpointer


def endpointer(*, pre_roll=3, hangover=5, min_speech=2, longest=40) -> Endpointer:
    """Durations in blocks."""
    return Endpointer(
        pre_roll_ms=pre_roll * BLOCK_MS,
        hangover_ms=hangover * BLOCK_MS,
        min_speech_ms=min_speech * BLOCK_MS,
        max_utterance_ms=longest * BLOCK_MS,
    )


@dataclass
class Heard:
    """What came of a picture: the events, each with the number of blocks known when it came."""

    events: list[tuple[int, object]] = field(default_factory=list)

    def _of(self, kind):
        return [event for _, event in self.events if isinstance(event, kind)]

    @property
    def spans(self) -> list[Span]:
        return self._of(Span)

    @property
    def blips(self) -> list[Blip]:
        return self._of(Blip)

    @property
    def started(self) -> list[SpeechStarted]:
        return self._of(SpeechStarted)

    @property
    def cuts(self) -> list[tuple[int, int]]:
        """Begin and end of each span, in blocks."""
        return [(s.begin_frame // BLOCK_FRAMES, s.end_frame // BLOCK_FRAMES) for s in self.spans]

    @property
    def reasons(self) -> list[EndReason]:
        return [span.reason for span in self.spans]


def hear(picture: str, end: EndReason | None = None, **durations: int) -> Heard:
    """Drive an endpointer through a picture (spaces are nothing), and flush it with ``end``."""
    deciding = endpointer(**durations)
    heard = Heard()
    lost = 0
    for block, sign in enumerate(picture.replace(" ", "")):
        if sign == "_":
            lost += 1
            continue
        if lost:
            heard.events += [(block, event) for event in deciding.skip_to(block)]
            lost = 0
        events = deciding.process(speech=sign in "#G", gated=sign in "gG")
        heard.events += [(block + 1, event) for event in events]
    known = deciding.next_block
    if end is not None:
        heard.events += [(known, event) for event in deciding.flush(end)]
    return heard
