"""``oyez transcribe`` and ``oyez say``: text and nothing else on stdout, talk on stderr."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
from pathlib import Path

import pytest
import soundfile

import corpus
from bench import scoring
from e2e import sounds
from e2e.product import OYEZ, PATIENCE_S
from e2e.reading import FEW, wrong_words

pytestmark = [pytest.mark.models, pytest.mark.usefixtures("models_folder")]

QUESTIONS = ("What time does the museum open?", "Could you turn on the kitchen light?")


@pytest.fixture(scope="module")
def recordings(said, tmp_path_factory):
    """Two questions, and between them what is no recording; besides silence, and noise."""
    folder = tmp_path_factory.mktemp("recordings")
    broken = folder / "broken.wav"
    broken.write_text("no sound at all\n")
    return {
        "one": sounds.write(folder / "one.wav", said(QUESTIONS[0])),
        "broken": broken,
        "two": sounds.write(folder / "two.wav", said(QUESTIONS[1])),
        "silence": sounds.write(folder / "silence.wav", sounds.silence(2_000)),
    }


def test_the_texts_stand_alone_on_stdout_and_a_broken_file_stops_nothing(product, recordings):
    files = [recordings[name] for name in ("one", "broken", "two", "silence")]
    done = product.run("transcribe", "--config", product.config, *files)
    assert done.code == 65
    assert [scoring.words(line) for line in done.lines] == [
        scoring.words(QUESTIONS[0]),
        scoring.words(QUESTIONS[1]),
        [],
    ]
    assert done.err.splitlines()[0].startswith(f"oyez: {recordings['broken']} is not a recording")
    assert len(done.err.splitlines()) == 2  # what is wrong, and the remedy: no progress in a pipe


def test_as_json_each_text_has_its_file(product, recordings, tmp_path):
    oddly_named = tmp_path / os.fsdecode(b"caf\xe9.wav")
    oddly_named.symlink_to(recordings["one"])
    done = product.run(
        "transcribe", "--json", "--config", product.config, recordings["silence"], oddly_named
    )
    assert done.code == 0, done.err
    silence, question = done.events
    assert silence == {"file": str(recordings["silence"]), "text": "", "probability": 0.0}
    assert question["file"] == str(tmp_path / "caf?.wav")
    assert scoring.words(question["text"]) == scoring.words(QUESTIONS[0])
    assert question["probability"] > 0.5


def test_on_a_terminal_the_progress_is_shown_and_leaves_nothing(product, recordings):
    ours, theirs = pty.openpty()
    files = [str(recordings[name]) for name in ("silence", "broken")]
    with subprocess.Popen(
        [*OYEZ, "transcribe", "--config", str(product.config), *files],
        env=product.environment(),
        stdout=subprocess.PIPE,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        out, _ = process.communicate(timeout=PATIENCE_S)
    shown = b""
    try:
        while piece := os.read(ours, 4096):
            shown += piece
    except OSError:  # Linux's way to say that the other end is closed
        pass
    finally:
        os.close(ours)
    assert (process.returncode, out) == (65, b"\n")
    clear = b"\r\x1b[K"
    first, second = (os.fsencode(file) for file in files)
    steps = [b"", b"1/2 " + first, b"", b"2/2 " + second]
    *progress, told = shown.split(clear)
    assert progress == steps
    assert told.startswith(b"oyez: " + second)


def test_a_recording_longer_than_the_recognizers_window_is_read_to_its_end(product, said, tmp_path):
    parts = [part for _ in range(6) for part in (said(QUESTIONS[0]), sounds.silence(4_000))]
    path = sounds.write(tmp_path / "long.wav", *parts, said(QUESTIONS[1]))
    assert soundfile.info(path).duration > 32
    done = product.run("transcribe", "--config", product.config, path)
    found = scoring.words(done.out)
    assert done.code == 0
    assert found.count("museum") >= 5
    assert found[-2:] == ["kitchen", "light"]


def test_what_people_said_is_read(product):
    clips = {clip.name: clip for clip in corpus.recordings_or_skip("speech")}
    clip = clips["goforward"]
    done = product.run("transcribe", "--config", product.config, clip.path)
    assert scoring.words(done.out) == scoring.words(clip.text)


def test_ctrl_c_ends_a_long_transcription(product, said, tmp_path):
    parts = [part for _ in range(60) for part in (said(QUESTIONS[0]), sounds.silence(1_000))]
    path = sounds.write(tmp_path / "long.wav", *parts)
    with product.running("transcribe", "--config", product.config, path) as running:
        running.until(lambda: busy_s(running.process.pid) > 2)
        done, _ = running.stop(signal.SIGINT)
    assert (done.code, done.out, done.err) == (130, "", "")


def busy_s(pid):
    """How much processor time a process has had: the second second is spent in the decoder."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_what_is_said_into_a_file_can_be_read_back(product, voice, tmp_path):
    output = tmp_path / "out.wav"
    # Bytes that are no UTF-8 are left out, whatever the locale thinks of them.
    strict = {"PYTHONIOENCODING": "utf-8:strict"}
    text = f"{QUESTIONS[0]}\n\xff{QUESTIONS[1]}\n".encode("latin-1")
    done = product.run("say", "--config", product.config, "-", "-o", output, stdin=text, env=strict)
    assert (done.code, done.out, done.err) == (0, "", "")
    assert soundfile.info(output).samplerate == voice.rate_hz
    assert [path.name for path in tmp_path.iterdir()] == ["out.wav"]
    done = product.run("transcribe", "--config", product.config, output)
    assert wrong_words(" ".join(QUESTIONS), done.out) < FEW


def test_a_text_that_cannot_be_spoken_leaves_no_file(product, tmp_path):
    done = product.run("say", "--config", product.config, " … ", "-o", tmp_path / "out.wav")
    assert done.code == 65
    assert done.err == "oyez: there is nothing in the text that can be spoken\n"
    assert not list(tmp_path.iterdir())
