"""whisper.cpp: how a reading proves itself, and what is refused when it is loaded."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from oyez.errors import EngineError
from oyez.messages import RATE_HZ
from oyez.speech import stt_whisper
from oyez.speech.stt_whisper import CONTEXTS, FULL_CONTEXT, WhisperTranscriber

NAME = "tiny.en-q5_1"
LOOP = "and so it goes and so it goes"

pytestmark = pytest.mark.models


@pytest.fixture(scope="module")
def model(model_path):
    return model_path(NAME)


@pytest.fixture(scope="module")
def engine(model, threads):
    return WhisperTranscriber(model, language="en", threads=threads)


@pytest.fixture
def decoding(engine, monkeypatch):
    """Lets decodes give what a test says; returns the contexts that were asked for."""

    def script(*decodes):
        results, contexts = iter(decodes), []

        def decode(_context, _sound, audio_ctx, _budget):
            contexts.append(audio_ctx)
            return next(results)

        monkeypatch.setattr(engine, "_decode", decode)
        return contexts

    return script


def sound(seconds=2.0):
    return np.random.default_rng(1).integers(-9_000, 9_000, int(seconds * RATE_HZ), np.int16)


def test_what_proves_itself_is_read_once_at_the_shortest_context(engine, decoding):
    contexts = decoding(("hello", 0.9, 4))
    reading = engine.read(sound())
    assert (reading.text, reading.probability, reading.context, reading.tries) == (
        "hello",
        0.9,
        256,
        1,
    )
    assert contexts == [256]


@pytest.mark.parametrize(
    ("seconds", "context"), [(4.7, 256), (4.9, 512), (11, 768), (15.1, 1_024), (25.2, 1_280)]
)
def test_the_context_holds_the_sound_and_some_room_after_it(engine, decoding, seconds, context):
    assert decoding(("hello", 0.9, 4)) == []
    assert engine.read(sound(seconds)).context == context
    assert context / 50 > seconds + 0.3


def test_a_sound_too_long_for_any_short_context_is_read_at_the_full_one(engine, decoding):
    contexts = decoding(("hello", 0.9, 4))
    assert engine.read(sound(25.5)).context == FULL_CONTEXT
    assert contexts == [0]


def test_a_doubtful_reading_is_tried_once_more_and_then_kept(engine, decoding):
    contexts = decoding(("mellow", 0.4, 4), ("hello", 0.45, 4))
    reading = engine.read(sound())
    assert (reading.text, reading.context, reading.tries) == ("hello", 512, 2)
    assert contexts == [256, 512]


def test_a_loop_is_tried_at_longer_contexts_until_it_is_none(engine, decoding):
    contexts = decoding((LOOP, 0.9, 8), (LOOP, 0.9, 8), ("so it goes", 0.9, 4))
    reading = engine.read(sound())
    assert (reading.text, reading.tries) == ("so it goes", 3)
    assert contexts == [256, 512, 768]


def test_a_text_that_fills_the_token_budget_is_taken_for_a_loop(engine, decoding):
    contexts = decoding(("la " * 7, 0.9, 20), ("hello", 0.9, 4))  # 2 s may hold 20 tokens
    assert engine.read(sound(2)).text == "hello"
    assert contexts == [256, 512]


def test_a_loop_at_every_context_is_an_invention_and_no_text(engine, decoding):
    contexts = decoding(*[(LOOP, 0.9, 8)] * len(CONTEXTS))
    reading = engine.read(sound())
    assert (reading.text, reading.tries, reading.context) == ("", len(CONTEXTS), CONTEXTS[-1])
    assert tuple(contexts) == CONTEXTS


def test_a_low_probability_at_the_last_context_is_kept(engine, decoding):
    assert decoding(("hello", 0.2, 4)) == []
    assert engine.read(sound(25)).text == "hello"


def test_a_language_that_the_model_does_not_know_is_refused(model):
    with pytest.raises(EngineError, match=r"knows English alone.* is de") as caught:
        WhisperTranscriber(model, language="de", threads=1)
    assert "base-q5_1" in caught.value.remedy


def test_a_language_that_nobody_speaks_is_refused(model, monkeypatch):
    import _pywhispercpp  # noqa: PLC0415 - optional

    # The model that is here is English alone; what comes after that check is tried without it.
    monkeypatch.setattr(_pywhispercpp, "whisper_is_multilingual", lambda _context: True)
    with pytest.raises(EngineError, match="knows no language xx"):
        WhisperTranscriber(model, language="xx", threads=1)


@pytest.mark.parametrize("damage", ["a web page", "cut off", "not there"])
def test_a_file_that_is_no_model_is_refused_by_name_and_does_not_end_the_process(
    model, tmp_path, damage
):
    path = tmp_path / "ggml-none.bin"
    if damage == "a web page":
        path.write_bytes(b"<html>not found</html>" * 100)
    elif damage == "cut off":
        path.write_bytes(model.read_bytes()[:1_000_000])
    with pytest.raises(EngineError, match=r"cannot load .*ggml-none\.bin: .*(magic|tensors|open)"):
        WhisperTranscriber(path, language="en", threads=1)


def test_after_a_file_that_was_none_a_model_loads(model, tmp_path):
    with pytest.raises(EngineError):
        WhisperTranscriber(tmp_path / "none.bin", language="en", threads=1)
    WhisperTranscriber(model, language="en", threads=1)


def test_a_status_of_the_library_is_an_error_and_not_an_old_text(engine, monkeypatch):
    monkeypatch.setattr(engine, "_whisper", _Failing(engine._whisper))
    with pytest.raises(EngineError, match="status -6"):
        engine.read(sound())


class _Failing:
    """The library, but for its verdict."""

    def __init__(self, library):
        self._library = library

    def __getattr__(self, name):
        return getattr(self._library, name)

    def whisper_full(self, *_):
        return -6


def test_the_library_s_own_words_go_to_the_log_and_not_to_stderr(model, caplog, capfd):
    with caplog.at_level(logging.DEBUG, stt_whisper.__name__):
        WhisperTranscriber(model, language="en", threads=1).warm_up()
    assert any(record.message.startswith("whisper.cpp: ") for record in caplog.records)
    assert capfd.readouterr().err == ""


# What hangs on a module that the interpreter clears late changes the order in which it ends.
ENDS = """
import sys
from pathlib import Path
from oyez.speech.stt_whisper import WhisperTranscriber

class Late:
    def __call__(self):
        return sys

sys.late = Late()
try:
    WhisperTranscriber(Path(sys.argv[1]), language="en", threads=1)
except Exception as error:
    print(error)
"""


def test_the_library_does_not_abort_the_interpreter_s_end(tmp_path):
    source = str(Path(stt_whisper.__file__).parents[2])
    run = subprocess.run(
        [sys.executable, "-c", ENDS, tmp_path / "none.bin"],
        env={**os.environ, "PYTHONPATH": source},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert "cannot load" in run.stdout
    assert (run.returncode, run.stderr) == (0, "")
