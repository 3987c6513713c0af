"""The plain way to build the same thing, as the yardstick: each step waits for the one before.

The peer gets the same utterances, cut by the same endpointer, and uses the same models, threads
and libraries. When an utterance has ended it reads it at the recognizer's full context of 30 s,
then has the voice make the whole answer, and then plays it. It is measured after the stream has
ended, when nothing else of the project runs, which flatters it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oyez.messages import Pcm16
    from oyez.speech.engines import Synthesizer, Transcriber

WHAT = (
    "same endpoints, models, threads and libraries; recognizer at its full context of 30 s; the "
    "answer played when all of it is made; measured right after the stream"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What the plain way took for one utterance, and what it read."""

    decode_ms: float
    synthesis_ms: float
    text: str


def take_turns(
    utterances: Sequence[Pcm16], transcriber: Transcriber, voice: Synthesizer, *, template: str
) -> list[Turn]:
    """Read each utterance (int16 ``[n]``, 16 kHz) and speak the answer, one after the other.

    ``template`` holds ``{text}``; where it is empty, nothing is answered.
    """
    transcriber.warm_up()
    list(voice.speak("Ready."))
    turns = []
    for samples in utterances:
        begin = time.monotonic()
        text = transcriber.read_whole(samples).text
        read = time.monotonic()
        if text and template:
            list(voice.speak(template.format(text=text)))
        spoken = time.monotonic()
        turns.append(
            Turn(decode_ms=(read - begin) * 1000, synthesis_ms=(spoken - read) * 1000, text=text)
        )
    return turns
