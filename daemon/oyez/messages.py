"""The values that cross threads, and the few constants that all of them share.

Imports nothing of ours. Everything here is frozen; arrays are made read-only by whoever hands
them over. Positions (``*_frame``) are frame indices of the 16 kHz stream since it opened; a
frame index says where in the sound something is, and so also when it was heard. Durations of
computing (``*_ms``) come from the monotonic clock.

A *block* is 20 ms of the front end's output: 320 frames of 16 kHz mono. It is the step in which
the VAD decides and the ring, the endpointer and the gate count.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

RATE_HZ = 16_000
BLOCK_MS = 20
BLOCK_FRAMES = RATE_HZ * BLOCK_MS // 1000

Pcm16: TypeAlias = npt.NDArray[np.int16]
"""int16 [frames], mono."""
PcmFloat: TypeAlias = npt.NDArray[np.float32]
"""float32 in [-1, 1]; [frames] when mono, else [frames, channels]."""


def frames_to_ms(frames: int) -> int:
    """Frames of the 16 kHz stream as whole milliseconds."""
    return round(frames * 1000 / RATE_HZ)


class EndReason(StrEnum):
    """Why an utterance was ended; the receipt says it in these words."""

    SILENCE = "silence"
    MAX_LENGTH = "maximum length"
    END_OF_INPUT = "end of input"
    GATED = "the answer began"
    GAP = "sound was lost"
    STOPPED = "stopped"


class DropReason(StrEnum):
    """Why an utterance was not transcribed."""

    BUSY = "the transcriber is too far behind"
    LOST = "its sound was overwritten before it was read"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One utterance as the endpointer cut it, in frames; ``end_frame`` is exclusive.

    ``begin_frame`` to ``end_frame`` is what is transcribed: pre-roll to end of hangover.
    ``speech_begin_frame`` to ``speech_end_frame`` is first to last voiced block.
    ``endpoint_frame`` is the newest frame that was known when the end was decided.
    """

    number: int
    begin_frame: int
    end_frame: int
    speech_begin_frame: int
    speech_end_frame: int
    endpoint_frame: int
    reason: EndReason


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechStarted:
    """The endpointer is sure that somebody speaks, since ``frame``; decided at ``known_frame``."""

    number: int
    frame: int
    known_frame: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """An utterance has ended; its levels are those of the sound as the card delivered it.

    ``level_dbfs`` is the RMS of what is active in it.
    """

    span: Span
    peak_dbfs: float
    level_dbfs: float
    clipped_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Utterance:
    """A span with its sound: int16 [end_frame - begin_frame], read-only.

    ``ended_ns`` is the monotonic clock when the endpoint was declared.
    """

    span: Span
    samples: Pcm16
    ended_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """Utterance ``number`` will have no text; ``reason`` says why."""

    number: int
    reason: DropReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Blip:
    """Something voiced that was too short to be speech; ``end_frame`` is exclusive."""

    begin_frame: int
    end_frame: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InputEnded:
    """A finite source (a recording) has been heard to its end, at ``frame``."""

    frame: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a transcriber made of some samples.

    ``probability`` is the mean over the text's tokens; ``context`` the number of encoder positions
    (20 ms each) of the decode that was kept, and ``tries`` how many decodes that took.
    """

    text: str
    probability: float
    context: int
    tries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """The final text of utterance ``number``, and what it cost.

    ``after_endpoint_ms`` is from the endpoint to the text, of which ``decode_ms`` were decoding;
    ``text_frame`` the newest frame of the stream when the text was there.
    """

    number: int
    reading: Reading
    decode_ms: float
    after_endpoint_ms: float
    text_frame: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRequest:
    """Main asks the voice to speak ``text`` in answer to utterance ``number``."""

    number: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerReady:
    """The first samples of an answer were made, ``synthesis_ms`` after they were asked for."""

    number: int
    synthesis_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerUnspoken:
    """An answer held nothing that can be spoken."""

    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerMark:
    """The first or last sample of an answer went to the speaker; ``frame`` was then the newest."""

    number: int
    last: bool
    frame: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MicrophoneChanged:
    """The live channel began or ended to clip, fell dead or came to life, or is another one.

    ``signal`` is ``audio.levels.Signal``'s word.
    """

    clipping: bool
    signal: str
    channel: int
    peak_dbfs: float
    frame: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadFailed:
    """A thread ended with an error: main reports it and ends the daemon."""

    thread: str
    error: Exception


@dataclass(frozen=True, slots=True, kw_only=True)
class StopRequested:
    """A signal asks for the end; ``reason`` is its name."""

    reason: str
