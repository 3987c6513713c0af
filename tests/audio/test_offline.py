"""What is done without the daemon: a recording to text, a text to a WAV or a speaker."""

from __future__ import annotations

import wave

import numpy as np
import pytest

from audio.recordings import wav_bytes
from audio.sounds import buzz, pitch_hz, silence, tone
from oyez import offline
from oyez.errors import EngineError, OutputError
from oyez.speech.vad_webrtc import WebRtcVad
from workers.scripted import ScriptedTranscriber, ScriptedVoice, reading

WORDS = np.full(1_000, 0.25, np.float32)


@pytest.fixture
def record(tmp_path):
    def write(samples, rate_hz=16_000):
        path = tmp_path / "sound.wav"
        path.write_bytes(wav_bytes(samples.tobytes(), rate_hz=rate_hz))
        return path

    return write


def test_a_recording_is_heard_whole_and_filled_up_to_a_block(record):
    sound = np.concatenate((silence(107), buzz(400)))
    samples, voiced = offline.hear(record(sound), WebRtcVad(2))
    np.testing.assert_array_equal(samples[: len(sound)], sound)
    assert len(samples) == 26 * 320
    assert voiced


@pytest.mark.parametrize("rate_hz", [8_000, 44_100])
def test_a_recording_of_another_rate_keeps_its_length(record, rate_hz):
    samples, _ = offline.hear(record(buzz(1_000, rate_hz), rate_hz), WebRtcVad(2))
    assert len(samples) == pytest.approx(16_000, abs=320)


def test_a_recording_with_a_voice_is_read_whole(record):
    engine = ScriptedTranscriber("hello")
    sound = np.concatenate((silence(200), buzz(400)))
    assert offline.transcribe(record(sound), engine, WebRtcVad(2)) == reading("hello")
    np.testing.assert_array_equal(engine.heard[0], sound)


def test_a_recording_without_any_voice_has_no_words_and_no_engine_is_asked(record):
    engine = ScriptedTranscriber("you")
    result = offline.transcribe(record(silence(1_000)), engine, WebRtcVad(2))
    assert result.text == ""
    assert engine.heard == []


def test_a_text_is_spoken_into_a_wav(tmp_path):
    path = tmp_path / "say.wav"
    assert offline.say_to_file("hello", ScriptedVoice(WORDS, WORDS, rate_hz=22_050), path)
    with wave.open(str(path)) as file:
        assert (file.getframerate(), file.getnframes()) == (22_050, 2_000)


def test_a_text_that_says_nothing_leaves_no_file(tmp_path):
    assert not offline.say_to_file("...", ScriptedVoice(), tmp_path / "say.wav")
    assert list(tmp_path.iterdir()) == []


class Interrupted(ScriptedVoice):
    def speak(self, text, *, steady=False):
        yield from super().speak(text, steady=steady)
        raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("voice", "error"),
    [
        (ScriptedVoice(WORDS, EngineError("hoarse")), EngineError),
        (Interrupted(WORDS), KeyboardInterrupt),
    ],
)
def test_a_text_that_was_not_spoken_to_its_end_leaves_no_file(tmp_path, voice, error):
    with pytest.raises(error):
        offline.say_to_file("hello", voice, tmp_path / "say.wav")
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_told_before_anything_is_spoken(tmp_path):
    voice = ScriptedVoice(WORDS)
    with pytest.raises(OutputError):
        offline.say_to_file("hello", voice, tmp_path / "no" / "say.wav")
    assert voice.texts == []


class Speaker:
    rate_hz = 48_000

    def __init__(self):
        self.heard = []

    def write(self, samples, spoken_frames):
        assert len(samples) == spoken_frames
        self.heard.append(samples)


@pytest.mark.parametrize("rate_hz", [22_050, 48_000])
def test_a_text_is_spoken_aloud_at_the_speaker_s_rate(rate_hz):
    speaker = Speaker()
    voice = ScriptedVoice(tone(440, 1_000, rate_hz), rate_hz=rate_hz)
    assert offline.say_aloud("hello", voice, speaker)
    (sound,) = speaker.heard
    assert len(sound) == pytest.approx(48_000, abs=2)
    assert pitch_hz(sound, 48_000) == pytest.approx(440, rel=1e-3)


def test_a_text_that_says_nothing_is_told_and_not_played():
    speaker = Speaker()
    assert not offline.say_aloud("...", ScriptedVoice(), speaker)
    assert speaker.heard == []
