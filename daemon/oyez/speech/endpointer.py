"""When an utterance begins and ends: the decision alone, in blocks of 20 ms.

Pure: no sound, no clock, no I/O. It is told one flag a block and answers with events; the
listener's thread owns it. All silence and speech is counted in blocks, so that three seconds are
tested in microseconds.

::

    idle ── voiced block ──> onset ── min_speech voiced ──> speaking ── hangover silent ──> idle
                               │                             │    ^
                               │              maximum length │    │ voiced block
                               │                             v    │
                               └─ ONSET_GAP silent ─> idle   continuing ─ hangover silent ─> idle

Voiced blocks that are so sparse that they fill the maximum length without being believed are a
blip like any other.

Nothing is heard twice and nothing lost: an utterance's pre-roll reaches back at most to the end of
the one before, and one that is cut at the maximum length goes on in the next without a gap.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TypeAlias

from oyez.messages import BLOCK_FRAMES, BLOCK_MS, Blip, EndReason, Span, SpeechStarted

ONSET_GAP_MS = 300
"""So much silence within the first voiced blocks makes them a blip and not a beginning.

Longer than the closure of a stop consonant between two short syllables, shorter than a pause.
"""


Event: TypeAlias = SpeechStarted | Span | Blip


class _State(Enum):
    IDLE = auto()
    ONSET = auto()
    SPEAKING = auto()
    CONTINUING = auto()


def to_blocks(duration_ms: int) -> int:
    """A duration in whole blocks, rounded up."""
    return -(-duration_ms // BLOCK_MS)


class Endpointer:
    """Turns one speech flag a block into utterances.

    Args:
        pre_roll_ms: kept before the first voiced block, as an onset is often voiceless.
        hangover_ms: so much silence ends an utterance; shorter pauses belong to it.
        min_speech_ms: so much must be voiced before anybody is believed to speak.
        max_utterance_ms: the longest utterance, pre-roll and hangover included.
    """

    def __init__(
        self, *, pre_roll_ms: int, hangover_ms: int, min_speech_ms: int, max_utterance_ms: int
    ) -> None:
        self._pre_roll = to_blocks(pre_roll_ms)
        self._hangover = max(1, to_blocks(hangover_ms))
        self._min_speech = max(1, to_blocks(min_speech_ms))
        # At least long enough that an utterance of the minimum can end by silence.
        least = self._pre_roll + self._min_speech + self._hangover
        self._max = max(to_blocks(max_utterance_ms), least)
        self._onset_gap = to_blocks(ONSET_GAP_MS)
        self._state = _State.IDLE
        self._block = 0
        self._number = 0
        self._floor = 0  # nothing before this block may be used (again)
        self._begin = 0
        self._first_voiced = 0
        self._last_voiced = 0
        self._voiced = 0

    @property
    def next_block(self) -> int:
        """The index of the block that ``process`` expects."""
        return self._block

    def process(self, *, speech: bool, gated: bool = False) -> list[Event]:
        """Take the next block.

        ``gated`` says that the device itself was speaking: the block is silence that no utterance
        may contain, and ends one that is open.
        """
        if gated:
            return self._gate()
        block = self._block
        self._block += 1
        events: list[Event] = []
        if speech and self._hear_voice(block):
            events.append(self._start())
        silent = block - self._last_voiced
        full = self._block - self._begin >= self._max
        match self._state:
            case _State.ONSET if silent >= self._onset_gap or full:
                events += self._abandon()
            case _State.SPEAKING if silent >= self._hangover:
                events += self._end(EndReason.SILENCE)
            case _State.SPEAKING if full:
                events += self._split()
            case _State.CONTINUING if silent >= self._hangover:
                self._state = _State.IDLE
        return events

    def flush(self, reason: EndReason) -> list[Event]:
        """End what is open, for a reason that is not in the sound."""
        match self._state:
            case _State.SPEAKING:
                return self._end(reason)
            case _State.ONSET:
                return self._abandon()
        self._state = _State.IDLE
        return []

    def skip_to(self, block: int) -> list[Event]:
        """Blocks before ``block`` were lost: end what is open and go on there."""
        events = self.flush(EndReason.GAP)
        self._block = self._floor = block
        return events

    def _hear_voice(self, block: int) -> bool:
        """Count a voiced block; whether somebody is now believed to have begun to speak."""
        match self._state:
            case _State.IDLE:
                self._state = _State.ONSET
                self._begin = max(self._floor, block - self._pre_roll)
                self._first_voiced = block
                self._voiced = 0
            case _State.CONTINUING:
                self._first_voiced = block
        self._last_voiced = block
        self._voiced += 1
        return self._state is _State.CONTINUING or (
            self._state is _State.ONSET and self._voiced >= self._min_speech
        )

    def _gate(self) -> list[Event]:
        events = self.flush(EndReason.GATED)
        self._block += 1
        self._floor = self._block
        return events

    def _start(self) -> SpeechStarted:
        self._state = _State.SPEAKING
        self._number += 1
        return SpeechStarted(
            number=self._number,
            frame=self._first_voiced * BLOCK_FRAMES,
            known_frame=self._block * BLOCK_FRAMES,
        )

    def _abandon(self) -> list[Event]:
        self._state = _State.IDLE
        return [
            Blip(
                begin_frame=self._first_voiced * BLOCK_FRAMES,
                end_frame=(self._last_voiced + 1) * BLOCK_FRAMES,
            )
        ]

    def _end(self, reason: EndReason) -> list[Event]:
        span = Span(
            number=self._number,
            begin_frame=self._begin * BLOCK_FRAMES,
            end_frame=self._block * BLOCK_FRAMES,
            speech_begin_frame=self._first_voiced * BLOCK_FRAMES,
            speech_end_frame=(self._last_voiced + 1) * BLOCK_FRAMES,
            endpoint_frame=self._block * BLOCK_FRAMES,
            reason=reason,
        )
        self._state = _State.IDLE
        self._floor = self._block
        return [span]

    def _split(self) -> list[Event]:
        """Cut at the maximum length; whatever is voiced next goes on from the cut.

        The pause is still counted from the last voiced block, so that it ends on time.
        """
        events = self._end(EndReason.MAX_LENGTH)
        self._state = _State.CONTINUING
        self._begin = self._block
        return events
