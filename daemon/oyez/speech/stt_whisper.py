"""whisper.cpp through pywhispercpp: reads words out of utterances. Owned by one thread.

The low-level module of the binding is used: its convenience class ignores whisper's return code
(so that old segments can be read as new ones), keeps parameters from call to call, and starts a
download when a path is wrong.

whisper's encoder always reads 30 s unless it is told less (``audio_ctx``, 50 positions a second),
and a context that is too short makes it loop or invent. So a reading must prove itself: it is
tried at the shortest context of CONTEXTS that holds the sound; on doubt at the next, and as long
as it repeats itself at longer ones.

Contexts are multiples of 256. With flash attention whisper.cpp pads the encoder's output to such a
multiple and attends to the padding as well, which holds what an earlier decode left there: at 448
positions all of 20 recordings were read with other probabilities after another utterance than
afresh, at 256, 512 and 768 none. The full context (1500) is no such multiple, so it is decoded
without flash attention, in a context of its own.
"""

from __future__ import annotations

import ctypes
import logging
from collections import deque
from typing import TYPE_CHECKING

import numpy as np

from oyez.audio.pcm import to_float
from oyez.errors import EngineError, MissingLibraryError
from oyez.messages import RATE_HZ, Reading
from oyez.speech import honesty
from oyez.speech.engines import Aborted

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from oyez.messages import Pcm16, PcmFloat

logger = logging.getLogger(__name__)

FULL_CONTEXT = 1500
"""Encoder positions in 30 s: what the model was trained with."""
CONTEXTS = (256, 512, 768, 1024, 1280)
POSITION_FRAMES = RATE_HZ // 50
MARGIN_POSITIONS = 16
"""So much room must be left after the sound, or its last word is cut off."""
MIN_FRAMES = RATE_HZ * 11 // 10
"""Shorter sound is padded to 1.1 s: under 1 s whisper is unreliable, under 0.1 s it is mute."""

_NOTHING = Reading(text="", probability=0.0, context=0, tries=0)


class WhisperTranscriber:
    """Implements ``engines.Transcriber``.

    Args:
        model: a ggml file, verified before.
        language: a language code, or ``auto`` (multilingual models alone).
        threads: inference threads; fewer than there are cores, since ggml's spin at barriers.
    """

    def __init__(self, model: Path, *, language: str, threads: int) -> None:
        try:
            import _pywhispercpp as whisper  # noqa: PLC0415 - optional
        except ImportError as error:
            raise MissingLibraryError(
                "pywhispercpp", "transcription", remedy="install the package pywhispercpp"
            ) from error
        self._whisper = whisper
        self._aborted = False
        self._threads = threads
        whisper.whisper_log_set(_log)
        self._model = model
        self._context = self._load(flash_attention=True)
        self._whole_context: Any = None  # loaded by the first read_whole: the daemon needs none
        multilingual = bool(whisper.whisper_is_multilingual(self._context))
        if not multilingual and language != "en":
            raise EngineError(
                f"{model.name} knows English alone, the language asked for is {language}",
                remedy="take a multilingual model, for example base-q5_1",
            )
        if language != "auto" and whisper.whisper_lang_id(language) < 0:
            raise EngineError(f"whisper.cpp knows no language {language}")
        self._language = language

    def read(self, samples: Pcm16) -> Reading:
        """See ``engines.Transcriber``."""
        if honesty.soundless(samples):
            return _NOTHING
        needed = len(samples) // POSITION_FRAMES + MARGIN_POSITIONS
        contexts = [context for context in CONTEXTS if context >= needed]
        if not contexts:
            return self.read_whole(samples)
        budget = honesty.token_budget(len(samples))
        sound = _padded(samples)
        tries = 0
        while True:
            context = contexts[tries]
            tries += 1
            text, probability, tokens = self._decode(self._context, sound, context, budget)
            looped = tokens >= budget or honesty.loops(text)
            # A second low probability says that the sound is hard, not that the context is short.
            doubtful = looped or (probability < honesty.MIN_PROBABILITY and tries == 1)
            if not doubtful or tries == len(contexts):
                break
        # An invention in part is an invention.
        return Reading(
            text="" if looped else text, probability=probability, context=context, tries=tries
        )

    def read_whole(self, samples: Pcm16) -> Reading:
        """See ``engines.Transcriber``."""
        if honesty.soundless(samples):
            return _NOTHING
        if self._whole_context is None:
            self._whole_context = self._load(flash_attention=False)
        text, probability, _ = self._decode(self._whole_context, _padded(samples), 0, 0)
        return Reading(text=text, probability=probability, context=FULL_CONTEXT, tries=1)

    def warm_up(self) -> None:
        """See ``engines.Transcriber``."""
        self._decode(self._context, np.zeros(MIN_FRAMES, np.float32), CONTEXTS[0], 1)

    def abort(self) -> None:
        """See ``engines.Transcriber``. Returns at once; the running encoder pass is finished."""
        self._aborted = True

    def _load(self, *, flash_attention: bool) -> Any:
        params = self._whisper.whisper_context_default_params()
        params.flash_attn = flash_attention
        _complaints.clear()
        context = self._whisper.whisper_init_from_file_with_params(str(self._model), params)
        # What the binding gives is an object in any case; used after a failure it would end the
        # process. The library's complaints are all that tells.
        if _complaints:
            raise EngineError(
                f"whisper.cpp cannot load {self._model}: {_complaints[0]}",
                remedy="fetch the model again",
            )
        return context

    def _decode(
        self, context: Any, sound: PcmFloat, audio_ctx: int, budget: int
    ) -> tuple[str, float, int]:
        """One decode: the text, the mean probability of its tokens, and their number.

        ``audio_ctx`` 0 is the full context, and ``budget`` 0 no limit: for sound of any length.
        """
        whisper = self._whisper
        params = self._params(audio_ctx, budget)
        status = whisper.whisper_full(context, params, sound, len(sound))
        if self._aborted:
            raise Aborted
        if status != 0:
            raise EngineError(f"whisper.cpp failed with status {status}")
        raw = b""
        tokens = 0
        probabilities = []
        end_of_text = whisper.whisper_token_eot(context)
        for i in range(whisper.whisper_full_n_segments(context)):
            raw += whisper.whisper_full_get_segment_text(context, i)
            for j in range(whisper.whisper_full_n_tokens(context, i)):
                tokens += 1
                # Tokens from there on are timestamps and marks: how sure they are says nothing.
                if whisper.whisper_full_get_token_id(context, i, j) < end_of_text:
                    probabilities.append(whisper.whisper_full_get_token_p(context, i, j))
        text = honesty.without_sounds(raw.decode("utf-8", errors="replace"))
        return text, float(np.mean(probabilities)) if probabilities else 0.0, tokens

    def _params(self, audio_ctx: int, budget: int) -> Any:
        """Fresh parameters, since a binding's would stick from call to call.

        Timestamps stay on, though nobody reads them: they make short contexts far safer.
        ``temperature_inc`` 0 forbids retries with dice, so that the same sound gives the same text.
        """
        whisper = self._whisper
        params = whisper.whisper_full_default_params(
            whisper.whisper_sampling_strategy.WHISPER_SAMPLING_GREEDY
        )
        params.n_threads = self._threads
        params.language = self._language
        params.audio_ctx = audio_ctx
        params.max_tokens = budget
        params.single_segment = audio_ctx > 0
        params.no_context = True
        params.no_timestamps = False
        params.suppress_nst = True
        params.temperature_inc = 0.0
        params.print_progress = False
        params.print_realtime = False
        params.print_timestamps = False
        params.print_special = False
        whisper.assign_abort_callback(params, lambda: self._aborted)
        return params


def _padded(samples: Pcm16) -> PcmFloat:
    sound = to_float(samples)
    return np.pad(sound, (0, max(0, MIN_FRAMES - len(sound))))


_complaints: deque[str] = deque(maxlen=16)
"""What whisper.cpp called errors, the oldest first: it has one log for the whole process."""
_NATIVE_ERROR = 4


def _log(level: int, text: str) -> None:
    """whisper.cpp's own words, which it would print to stderr: of use in a search for faults."""
    if int(level) == _NATIVE_ERROR:
        _complaints.append(text.strip())
    logger.debug("whisper.cpp: %s", text.strip(), extra={"OYEZ_NATIVE_LEVEL": int(level)})


# The library keeps its log in a static variable, which it gives up when the interpreter has ended
# already: were that the last reference, the process would end with SIGABRT. So there is one more.
ctypes.pythonapi.Py_IncRef(ctypes.py_object(_log))
