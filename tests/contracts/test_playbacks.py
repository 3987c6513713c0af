"""What every speaker, and what stands in its place, has in common: ``audio.ports.Playback``."""

from __future__ import annotations

import numpy as np
import pytest

from oyez.audio.portaudio import PortAudioPlayback
from oyez.audio.wav import WavPlayback

NAMES = ["wav", "portaudio"]
every = pytest.mark.parametrize("name", NAMES)


@pytest.fixture
def make(request, tmp_path):
    """Opens a playback by its name; all are closed at the end."""
    opened = []

    def open_playback(name):
        if name == "portaudio":
            playback = PortAudioPlayback(request.getfixturevalue("null_card"), 20)
        else:
            playback = WavPlayback(tmp_path / "answer.wav", 22_050)
        opened.append(playback)
        return playback

    yield open_playback
    for playback in opened:
        playback.close()


def speech(frames):
    return np.sin(np.arange(frames, dtype=np.float32) / 10)


@every
def test_it_says_what_it_takes_and_what_it_is(make, name):
    playback = make(name)
    assert playback.rate_hz >= 8_000
    assert type(playback.audible) is bool
    assert playback.latency_ms >= 0
    assert playback.description
    assert playback.written is False


@every
@pytest.mark.parametrize("periods", [0.5, 1, 3.7])
def test_it_takes_speech_silence_and_both_in_any_length(make, name, periods):
    playback = make(name)
    frames = int(playback.rate_hz * 0.02 * periods)
    for spoken in (0, frames, frames // 3, 0, frames):
        samples = speech(frames)
        samples[spoken:] = 0
        playback.write(samples, spoken)


@every
def test_it_leaves_the_samples_as_they_are(make, name):
    playback = make(name)
    samples = 2 * speech(500)  # too loud, so that it must clip a copy
    before = samples.copy()
    playback.write(samples, 500)
    np.testing.assert_array_equal(samples, before)


@every
def test_it_can_be_closed_twice(make, name):
    playback = make(name)
    playback.write(speech(441), 441)
    playback.close()
    playback.close()


@every
def test_it_can_be_closed_unused(make, name):
    playback = make(name)
    playback.close()
    assert playback.written is False


@every
def test_it_leaves_a_file_exactly_if_it_says_so(make, name, tmp_path):
    playback = make(name)
    playback.write(speech(441), 441)
    playback.close()
    wavs = [str(path) for path in tmp_path.glob("*.wav")]
    assert wavs == ([playback.description] if playback.written else [])
