"""What is done without the daemon: a recording to text, a text to a WAV or the speaker.

Runs on the caller's thread, with the same front end and engines as the daemon.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import numpy as np
import soxr

from oyez.audio.wav import Recording, WavPlayback
from oyez.messages import Reading
from oyez.rt.front_end import FrontEnd
from oyez.rt.ring import Flag

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from oyez.audio.ports import Playback
    from oyez.messages import Pcm16, PcmFloat
    from oyez.rt.front_end import Block, BlockVad
    from oyez.speech.engines import Synthesizer, Transcriber

PERIOD_MS = 20


def hear(path: Path, vad: BlockVad) -> tuple[Pcm16, bool]:
    """A whole recording as int16 [frames] at 16 kHz, and whether there is any voice in it.

    Raises:
        InputError, NotFoundError: it cannot be read.
    """
    with contextlib.closing(Recording(path)) as recording:
        blocks = list(_blocks(recording, FrontEnd(vad)))
    samples = np.concatenate([block.samples for block in blocks] or [np.zeros(0, np.int16)])
    return samples, any(block.flags & Flag.SPEECH for block in blocks)


def _blocks(recording: Recording, front_end: FrontEnd) -> Iterator[Block]:
    period_frames = max(1, recording.stream.rate_hz * PERIOD_MS // 1000)
    while raw := recording.read(period_frames):
        yield from front_end.process(raw, recording.stream, gated=False)
    yield from front_end.flush()


def transcribe(path: Path, engine: Transcriber, vad: BlockVad) -> Reading:
    """The words in a recording of any length, at the recognizer's full context.

    A recording in which nothing is voiced has none, whatever a recognizer makes of it.

    Raises:
        InputError, NotFoundError: it cannot be read.
        EngineError: the model does not answer.
    """
    samples, voiced = hear(path, vad)
    if not voiced:
        return Reading(text="", probability=0.0, context=0, tries=0)
    return engine.read_whole(samples)


def say_to_file(text: str, engine: Synthesizer, path: Path) -> bool:
    """Speak into a WAV; False, and no file, when the text holds nothing that can be spoken.

    Raises:
        OutputError: it cannot be written.
        EngineError: the model does not answer.
    """
    wav = WavPlayback(path, engine.rate_hz)
    try:
        for piece in engine.speak(text):
            wav.write(piece, len(piece))
    except BaseException:
        wav.discard()
        raise
    wav.close()
    return wav.written


def say_aloud(text: str, engine: Synthesizer, playback: Playback) -> bool:
    """Speak through a speaker that is open; False when the text holds nothing to be spoken.

    Raises:
        AudioDeviceError: the card failed.
        EngineError: the model does not answer.
    """
    spoken = False
    for piece in engine.speak(text):
        sound = _at_rate(piece, engine.rate_hz, playback.rate_hz)
        playback.write(sound, len(sound))
        spoken = True
    return spoken


def _at_rate(piece: PcmFloat, voice_hz: int, speaker_hz: int) -> PcmFloat:
    if voice_hz == speaker_hz:
        return piece
    return np.asarray(soxr.resample(piece, voice_hz, speaker_hz), np.float32)
