"""Piper: makes speech out of text, a sentence at a time. Owned by one thread."""

from __future__ import annotations

import json
import re
import unicodedata
from typing import TYPE_CHECKING

import numpy as np

from oyez.errors import EngineError, MissingLibraryError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from oyez.messages import PcmFloat

PASSAGE_LETTERS = 300
"""More than most answers have, so that those are one passage; spoken in about 20 s."""

_SPACE = re.compile(r"\s+")
_SENTENCE_END = re.compile(r"[.!?。！？…][\"')\]»”’]*\s+|[。！？]")  # noqa: RUF001 - of other scripts
_DOUBLED = re.compile(r"\[(?=\[)|\](?=\])")


class PiperSynthesizer:
    """Implements ``engines.Synthesizer``.

    Args:
        model: an ``.onnx`` voice with its ``.onnx.json`` beside it, verified before.
        volume_db: gain in dB on the voice's own level.
        threads: inference threads, which do not spin when they have nothing to do.
    """

    def __init__(self, model: Path, *, volume_db: float, threads: int) -> None:
        try:
            import onnxruntime  # noqa: PLC0415 - optional, and slow to import
            import piper  # noqa: PLC0415
        except ImportError as error:
            raise MissingLibraryError(
                "piper-tts", "speaking", remedy="install the package piper-tts"
            ) from error
        # PiperVoice.load would build the session with ONNX Runtime's own thread count, whose
        # threads spin and so take the cores from the audio thread and from whisper.
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.log_severity_level = 3
        try:
            config = piper.config.PiperConfig.from_dict(
                json.loads(model.with_name(model.name + ".json").read_text("utf-8"))
            )
            session = onnxruntime.InferenceSession(
                str(model), sess_options=options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:
            raise EngineError(
                f"Piper cannot load {model}: {error}", remedy="fetch the voice again"
            ) from error
        self._voice = piper.PiperVoice(session=session, config=config)
        # normalize_audio would scale each sentence by itself: a quiet ending becomes a scratch.
        volume = float(10 ** (volume_db / 20))
        self._lively = piper.SynthesisConfig(normalize_audio=False, volume=volume)
        self._steady = piper.SynthesisConfig(
            normalize_audio=False, volume=volume, noise_scale=0.0, noise_w_scale=0.0
        )
        self.rate_hz = int(config.sample_rate)

    def speak(self, text: str, *, steady: bool = False) -> Iterator[PcmFloat]:
        """See ``engines.Synthesizer``: a piece a sentence."""
        how = self._steady if steady else self._lively
        try:
            for passage in passages(speakable_text(text)):
                for piece in self._voice.synthesize(passage, how):
                    yield np.ascontiguousarray(piece.audio_float_array, np.float32).reshape(-1)
        except Exception as error:
            raise EngineError(f"Piper failed: {error}") from error


def speakable_text(text: str) -> str:
    """The text as Piper takes it: one line, and ``[[`` no longer means raw phonemes.

    Empty when it holds nothing that can be said; Piper would fail on it.
    """
    plain = "".join(" " if unicodedata.category(c)[0] == "C" else c for c in text)
    plain = _SPACE.sub(" ", _DOUBLED.sub(r"\g<0> ", plain)).strip()
    return plain if any(c.isalnum() for c in plain) else ""


def passages(speakable: str) -> Iterator[str]:
    """A long text in parts of PASSAGE_LETTERS or a little more, cut after a sentence.

    Piper turns all that it is given into phonemes before the first sound, in a time that grows
    faster than the text: 400 sentences took 85 s. A text without sentences is cut at a space.
    """
    begin = 0
    while len(speakable) - begin > PASSAGE_LETTERS:
        part = _SENTENCE_END.search(speakable, begin + PASSAGE_LETTERS)
        end = part.end() if part else len(speakable)
        if end - begin > 2 * PASSAGE_LETTERS:
            space = speakable.rfind(" ", begin, begin + 2 * PASSAGE_LETTERS)
            end = space + 1 if space > begin else begin + 2 * PASSAGE_LETTERS
        yield speakable[begin:end].strip()
        begin = end
    if rest := speakable[begin:].strip():
        yield rest
