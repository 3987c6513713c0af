"""Ctrl-C and SIGTERM: wherever they hit, it ends soon, with its receipts and no half-written file.

The bound that fails is generous, since the machine may be busy; what was measured is in the
report's properties (``pytest --junit-xml``).
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys

import pytest
import soundfile

from e2e import sounds, telling
from e2e.product import OYEZ, STOP_S, Lines
from oyez.messages import RATE_HZ

pytestmark = [pytest.mark.models, pytest.mark.usefixtures("models_folder")]

QUESTION = "What time does the museum open?"
STORY = (
    "There was once a king who had a garden behind his castle, and in it stood a tree that bore "
    "golden apples, and every night when the clock struck twelve one of them was taken away."
)
SIGNALS = pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"]
)


@pytest.fixture
def stop(request, record_testsuite_property):
    """Stops a run in an orderly way, and gives its receipts."""

    def end(running, number, *, insist=False):
        done, took_s = running.stop(number, insist=insist)
        record_testsuite_property(f"{request.node.name}: seconds to the end", round(took_s, 3))
        assert done.code == 0, done.err
        assert "Traceback" not in done.err
        numbers = [receipt["utterance"] for receipt in done.receipts]
        assert sorted(numbers) == list(range(1, len(numbers) + 1))
        return done.receipts

    return end


@pytest.fixture
def recording(tmp_path):
    """Writes what stands in the microphone's place."""
    return lambda *parts: sounds.write(tmp_path / "recording.wav", *parts)


@pytest.fixture
def listening(product, tmp_path):
    """Starts a run on a recording; the answer goes to a folder that holds nothing else."""
    answer = tmp_path / "answer" / "answer.wav"
    answer.parent.mkdir()

    def start(path, *options, config=product.config, **how):
        files = ("--input", path, "--output", answer)
        return product.running("run", "--json", "--config", config, *files, *options, **how)

    start.answer = answer
    return start


@SIGNALS
def test_while_the_models_load(product, no_card, stop, number, tmp_path):
    config = product.configured(simulation={"answer_wav": str(tmp_path / "answer.wav")})
    with product.running("run", "--json", "--config", config, env=no_card) as running:
        running.err.until(lambda line: "simulated room" in line)  # told before the models load
        assert stop(running, number) == []
        assert running.out.all == []
    assert list(tmp_path.iterdir()) == []


@SIGNALS
def test_while_nobody_speaks(listening, recording, stop, number):
    with listening(recording(sounds.silence(60_000))) as running:
        running.event("state")
        assert stop(running, number) == []
    assert list(listening.answer.parent.iterdir()) == []


@SIGNALS
def test_while_nobody_reads_what_it_prints(product, recording, said, number, tmp_path):
    path = recording(said(QUESTION), sounds.silence(60_000))
    files = ("--input", path, "--output", tmp_path / "answer.wav")
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writing, bytes(4096))
    os.set_blocking(writing, True)
    options = ("run", "--json", "--config", product.config, *files)
    with (
        os.fdopen(reading),
        os.fdopen(writing, "w") as full,
        subprocess.Popen(
            [*OYEZ, *map(str, options)],
            env=product.environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        ) as process,
    ):
        try:
            err = Lines(process.stderr)
            err.until(lambda line: "listening after" in line)  # it is about to print that, too
            process.send_signal(number)
            assert process.wait(STOP_S) == 0, err.rest()
        finally:
            process.kill()


def test_in_the_middle_of_an_utterance_it_is_told_as_stopped(listening, recording, said, stop):
    path = recording(said(QUESTION), sounds.silence(700), said(STORY))
    with listening(path) as running:
        assert running.event("receipt")["outcome"] == "answered"
        # The story has begun; it is long, and goes on for a second more.
        with pytest.raises(subprocess.TimeoutExpired):
            running.process.wait(1)
        _, story = stop(running, signal.SIGINT)
    assert (story["outcome"], story["reason"]) == ("stopped", "stopped")
    assert story["text"] == ""
    assert story["begin_frame"] < story["end_frame"] < soundfile.info(path).frames


@SIGNALS
def test_during_a_decode(listening, recording, said, stop, number):
    path = recording(said(STORY), sounds.silence(60_000))
    program = (sys.executable, telling.__file__)
    with listening(path, "--unpaced", program=program) as running:
        running.err.until(lambda line: line == telling.DECODING)
        (receipt,) = stop(running, number)
    assert (receipt["outcome"], receipt["reason"]) == ("stopped", "silence")
    assert list(listening.answer.parent.iterdir()) == []


def test_while_the_answer_is_written_what_was_spoken_is_a_whole_file(
    listening, recording, said, stop
):
    path = recording(said(QUESTION), sounds.silence(60_000))
    with listening(path) as running:
        assert running.event("receipt")["outcome"] == "answered"
        stop(running, signal.SIGTERM)
    assert list(listening.answer.parent.iterdir()) == [listening.answer]
    spoken = soundfile.info(listening.answer)
    assert 0 < spoken.duration < len(said(QUESTION)) / RATE_HZ
    assert len(soundfile.read(listening.answer)[0]) == spoken.frames


def test_unpaced(listening, recording, said, stop):
    path = recording(*[said(QUESTION), sounds.silence(1_000)] * 40)
    with listening(path, "--unpaced") as running:
        running.event("receipt")
        receipts = stop(running, signal.SIGTERM)
    assert len(receipts) < 40
    assert {receipt["outcome"] for receipt in receipts} <= {"answered", "stopped"}


def test_pressing_ctrl_c_again_and_again_does_no_harm(listening, recording, said, stop):
    path = recording(said(QUESTION), sounds.silence(60_000))
    with listening(path) as running:
        assert running.event("receipt")["outcome"] == "answered"
        stop(running, signal.SIGINT, insist=True)
    assert list(listening.answer.parent.iterdir()) == [listening.answer]
    assert soundfile.info(listening.answer).frames > 0


def test_a_reader_that_goes_away_ends_it_quietly(product, recording, said, tmp_path):
    path = recording(said(QUESTION), sounds.silence(60_000))
    files = ("--input", path, "--output", tmp_path / "answer.wav")
    read = ("bash", "-c", '"$0" "$@" | head -n 1; exit "${PIPESTATUS[0]}"')
    done = product.run("run", "--json", "--config", product.config, *files, prefix=read)
    assert done.code == 1
    assert [event["event"] for event in done.events] == ["state"]
    assert "Traceback" not in done.err
    assert "BrokenPipe" not in done.err
    assert not list(tmp_path.glob(".*"))


def test_a_full_disk_under_stdout_is_told_and_ends_it(product, recording, said, tmp_path):
    path = recording(said(QUESTION), sounds.silence(1_000))
    files = ("--input", path, "--output", tmp_path / "answer.wav", "--unpaced")
    full = ("sh", "-c", 'exec "$0" "$@" >/dev/full')
    done = product.run("run", "--config", product.config, *files, prefix=full)
    assert done.code == 74
    assert "oyez: standard output cannot be written: No space left on device" in done.err
    assert "Traceback" not in done.err
    assert not list(tmp_path.glob(".*"))


def test_a_disk_that_fills_up_under_the_answer_is_told_and_leaves_no_file(
    product, recording, said, tmp_path
):
    path = recording(said(QUESTION), sounds.silence(1_000))
    answer = tmp_path / "answer" / "answer.wav"
    answer.parent.mkdir()
    files = ("--input", path, "--output", answer, "--unpaced", "--json")
    small = ("sh", "-c", 'ulimit -f 32; exec "$0" "$@"')
    done = product.run("run", "--config", product.config, *files, prefix=small)
    assert done.code == 74
    assert f"oyez: {answer} cannot be written: File too large" in done.err
    assert [receipt["outcome"] for receipt in done.receipts] == ["answered"]
    assert list(answer.parent.iterdir()) == []


@SIGNALS
def test_speaking_into_a_file_leaves_none_that_is_half_written(product, number, tmp_path):
    output = tmp_path / "long.wav"
    arguments = ("say", "--config", product.config, "--output", output, f"{STORY} " * 8)
    with product.running(*arguments) as running:
        begun = f".{output.name}.{running.process.pid}.part"
        running.until((tmp_path / begun).exists)
        done, _ = running.stop(number)
    assert done.code == 128 + number
    assert done.err == ""
    assert list(tmp_path.iterdir()) == []
