"""The WAV in the speaker's place: whole or not there, whatever happens."""

from __future__ import annotations

import gc
import os
import resource
import wave
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from oyez.audio.pcm import to_pcm16
from oyez.audio.wav import ANSWER_GAP_S, WavPlayback
from oyez.errors import OutputError

RATE_HZ = 8_000
WORDS = np.linspace(-1, 1, 1_000, dtype=np.float32)


def speak(playback, samples, period_frames=160):
    """As the audio thread does: in periods, the last one filled up with silence."""
    for begin in range(0, len(samples), period_frames):
        period = samples[begin : begin + period_frames]
        playback.write(np.pad(period, (0, period_frames - len(period))), len(period))


def pause(playback, periods=10):
    for _ in range(periods):
        playback.write(np.zeros(160, np.float32), 0)


def written(path):
    with wave.open(str(path)) as file:
        assert (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (1, 2, RATE_HZ)
        return np.frombuffer(file.readframes(file.getnframes()), "<i2")


def names_in(folder):
    return [entry.name for entry in folder.iterdir()]


@contextmanager
def room_for(octets):
    """No file of this process may grow beyond ``octets``: what a full disk looks like."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (octets, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "answer.wav"


def test_what_was_spoken_is_in_the_file_without_the_silence_around_it(path):
    playback = WavPlayback(path, RATE_HZ)
    pause(playback)
    speak(playback, WORDS)
    pause(playback)
    playback.close()
    assert playback.written
    assert playback.description == str(path)
    np.testing.assert_array_equal(written(path), to_pcm16(WORDS))


def test_two_answers_are_kept_apart_by_one_short_silence(path):
    playback = WavPlayback(path, RATE_HZ)
    speak(playback, WORDS)
    pause(playback, 200)
    speak(playback, WORDS)
    playback.close()
    gap = np.zeros(round(ANSWER_GAP_S * RATE_HZ), np.int16)
    np.testing.assert_array_equal(
        written(path), np.concatenate((to_pcm16(WORDS), gap, to_pcm16(WORDS)))
    )


def test_until_it_is_closed_there_is_no_file_under_its_name(path):
    playback = WavPlayback(path, RATE_HZ)
    speak(playback, WORDS)
    assert not path.exists()
    assert not playback.written
    playback.close()
    assert names_in(path.parent) == [path.name]


def test_an_older_file_stays_until_the_new_one_is_whole(path):
    path.write_bytes(b"older")
    playback = WavPlayback(path, RATE_HZ)
    speak(playback, WORDS)
    assert path.read_bytes() == b"older"
    playback.close()
    assert len(written(path)) == len(WORDS)


def test_nothing_spoken_leaves_no_file_and_harms_none(path):
    path.write_bytes(b"older")
    playback = WavPlayback(path, RATE_HZ)
    pause(playback)
    playback.close()
    assert not playback.written
    assert path.read_bytes() == b"older"
    assert names_in(path.parent) == [path.name]


def test_closing_twice_does_no_harm(path):
    playback = WavPlayback(path, RATE_HZ)
    speak(playback, WORDS)
    playback.close()
    playback.close()
    playback.discard()
    assert len(written(path)) == len(WORDS)


def test_what_is_discarded_leaves_nothing_and_says_nothing(path):
    playback = WavPlayback(path, RATE_HZ)
    speak(playback, WORDS)
    playback.discard()
    playback.close()
    del playback
    gc.collect()  # an error in a destructor would be printed, and is an error for pytest
    assert names_in(path.parent) == []


def test_a_disk_that_fills_up_while_it_speaks_is_told_and_leaves_nothing(path):
    playback = WavPlayback(path, RATE_HZ)
    with room_for(5_000), pytest.raises(OutputError, match="File too large") as caught:
        speak(playback, np.tile(WORDS, 50))
    assert str(path) in caught.value.message
    assert caught.value.remedy
    # Even if there is room again: it would lack what could not be written.
    playback.close()
    assert not playback.written
    assert names_in(path.parent) == []


def test_a_disk_that_is_full_at_the_end_is_told_and_leaves_nothing(path):
    playback = WavPlayback(path, RATE_HZ)
    speak(playback, WORDS)
    with room_for(100), pytest.raises(OutputError, match="File too large"):
        playback.close()
    assert not playback.written
    assert names_in(path.parent) == []


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        (".", "is a folder"),
        ("..", "is a folder"),
        ("/", "is a folder"),
        ("no/such/folder.wav", "there is no folder"),
        ("x" * 300, "File name too long"),
        ("/dev/null/x.wav", "there is no folder"),
    ],
)
def test_a_place_that_cannot_be_written_is_refused_at_once(tmp_path, monkeypatch, name, reason):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OutputError, match=reason):
        WavPlayback(Path(name), RATE_HZ)
    assert names_in(tmp_path) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_is_named(path):
    path.parent.chmod(0o500)
    try:
        with pytest.raises(OutputError, match="Permission denied"):
            WavPlayback(path, RATE_HZ)
    finally:
        path.parent.chmod(0o700)


def test_a_device_or_a_pipe_is_never_replaced_by_a_file(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OutputError, match="is not a file but a device or a pipe"):
        WavPlayback(pipe, 22_050)
    assert pipe.is_fifo()
    assert list(tmp_path.iterdir()) == [pipe]


def test_it_cannot_be_heard_by_the_microphone(path):
    playback = WavPlayback(path, RATE_HZ)
    assert not playback.audible
    assert playback.latency_ms == 0
    playback.discard()
