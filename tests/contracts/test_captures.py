"""What every microphone, and what stands in its place, has in common: ``audio.ports.Capture``."""

from __future__ import annotations

import numpy as np
import pytest
import soundfile

from audio.recordings import packed, wav_bytes
from audio.sounds import buzz, tone
from oyez.audio import pcm
from oyez.audio.pcm import SampleFormat, StreamFormat
from oyez.audio.portaudio import PortAudioCapture
from oyez.audio.ports import Period
from oyez.audio.wav import ArraySource, PacedCapture, RealTime, Recording

FINITE = ["array", "8 bits", "16 bits, 6 channels", "24 bits", "float", "flac"]
ENDLESS = ["portaudio"]
PERIOD_MS = 20


def recording(tmp_path, octets):
    path = tmp_path / "sound.wav"
    path.write_bytes(octets)
    return Recording(path)


def array(_):
    return ArraySource(buzz(90), 16_000, "a buzz")


def eight_bits(tmp_path):
    steps = (buzz(90, 8_000) >> 8).astype(np.int32)
    return recording(tmp_path, wav_bytes(packed(steps, 8), bits=8, rate_hz=8_000))


def six_channels(tmp_path):
    frames = np.repeat(buzz(90, 44_100), 6).tobytes()
    return recording(tmp_path, wav_bytes(frames, channels=6, rate_hz=44_100))


def twenty_four_bits(tmp_path):
    steps = buzz(90, 48_000).astype(np.int32) << 8
    return recording(tmp_path, wav_bytes(packed(steps, 24), bits=24, rate_hz=48_000))


def floats(tmp_path):
    raw = tone(440, 90, 11_025).tobytes()
    return recording(tmp_path, wav_bytes(raw, bits=32, tag=3, rate_hz=11_025))


def flac(tmp_path):
    path = tmp_path / "sound.flac"
    soundfile.write(path, tone(440, 90, 96_000), 96_000)
    return Recording(path)


SOURCES = dict(
    zip(FINITE, (array, eight_bits, six_channels, twenty_four_bits, floats, flac), strict=True)
)


@pytest.fixture
def make(request, tmp_path):
    """Opens a capture by its name; all are closed at the end."""
    opened = []

    def open_capture(name):
        if name == "portaudio":
            capture = PortAudioCapture(request.getfixturevalue("null_card"), PERIOD_MS)
        else:
            capture = PacedCapture(SOURCES[name](tmp_path), RealTime(), PERIOD_MS)
        opened.append(capture)
        return capture

    yield open_capture
    for capture in opened:
        capture.close()


every = pytest.mark.parametrize("name", [*FINITE, *ENDLESS])
finite = pytest.mark.parametrize("name", FINITE)


@every
def test_it_says_what_it_delivers_and_what_it_is(make, name):
    capture = make(name)
    assert isinstance(capture.stream, StreamFormat)
    assert capture.stream.sample_format in SampleFormat
    assert capture.stream.channels >= 1
    exact = capture.stream.rate_hz * PERIOD_MS / 1000
    assert capture.period_frames == pytest.approx(exact, abs=0.5)
    assert capture.description
    assert str(capture.description) == capture.description


@every
def test_a_read_gives_a_period_of_whole_frames(make, name):
    capture = make(name)
    for _ in range(3):
        period = capture.read()
        assert isinstance(period, Period)
        assert len(period.raw) == capture.period_frames * capture.stream.frame_bytes
        assert type(period.overrun) is bool
        frames = pcm.decode(period.raw, capture.stream)
        assert frames.shape == (capture.period_frames, capture.stream.channels)
        assert np.isfinite(frames).all()


@every
def test_a_period_stays_what_it_was_when_the_next_one_is_read(make, name):
    capture = make(name)
    first = capture.read()
    before = bytes(first.raw)
    capture.read()
    assert bytes(first.raw) == before


@every
def test_it_can_be_closed_twice_and_in_the_middle(make, name):
    capture = make(name)
    capture.read()
    capture.close()
    capture.close()


@finite
def test_a_finite_one_gives_every_frame_and_then_none_for_ever(make, name):
    capture = make(name)
    raw = b""
    while (period := capture.read()) is not None:
        assert period.raw
        raw += period.raw
    frames = len(raw) / capture.stream.frame_bytes
    assert frames == capture.stream.rate_hz * 90 // 1000
    assert [capture.read() for _ in range(3)] == [None, None, None]


@finite
def test_a_finite_one_gives_the_same_twice(make, name):
    def heard():
        capture = make(name)
        periods = iter(capture.read, None)
        return [bytes(period.raw) for period in periods]

    assert heard() == heard()
