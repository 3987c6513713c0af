"""Which microphone and which speaker a run takes, and what is refused before anything loads."""

from __future__ import annotations

import logging
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from audio.recordings import wav_bytes
from audio.sounds import buzz
from oyez.audio import portaudio
from oyez.audio.pcm import to_float
from oyez.audio.wav import WavPlayback
from oyez.config import (
    AudioSettings,
    CaptureSettings,
    PlaybackSettings,
    Settings,
    SimulationSettings,
)
from oyez.errors import (
    InputError,
    MissingLibraryError,
    NotFoundError,
    UsageError,
)
from oyez.rt.mailbox import Mailbox
from oyez.sound import SoundChoice
from workers.scripted import ScriptedVoice

MAIN = Mailbox(10)
VOICE = ScriptedVoice(to_float(buzz(200, 8_000)), rate_hz=8_000)


class Free:
    def wait_until(self, stream_s):
        """At once."""


@pytest.fixture(autouse=True)
def alone(tmp_path, monkeypatch):
    """An empty working directory, on a machine without a card, with somebody at the terminal."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("INVOCATION_ID", raising=False)
    monkeypatch.setattr(portaudio, "has_microphone", lambda: False)
    monkeypatch.setenv("OYEZ_PROC_ASOUND", str(tmp_path / "no cards"))


def opened_files():
    names = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # the one that lists them is gone by now
            names.append(str(descriptor.readlink()))
    return names


@pytest.fixture
def recording(tmp_path):
    path = tmp_path / "question.wav"
    path.write_bytes(wav_bytes(buzz(100).tobytes()))
    return path


def settings(backend="auto", **others):
    return replace(Settings(), audio=AudioSettings(backend=backend), **others)


def choose(backend="auto", *, recording=None, answer_wav=None, **others):
    return closing(
        SoundChoice(settings(backend, **others), recording=recording, answer_wav=answer_wav)
    )


@pytest.mark.parametrize("backend", ["auto", "portaudio", "simulated"])
def test_a_recording_is_heard_whatever_the_configuration_says(recording, backend):
    with choose(backend, recording=recording) as sound:
        assert (sound.is_card, sound.needs_voice) == (False, False)
        capture = sound.open(None, Free(), MAIN).capture
        assert capture.description == "question.wav"
        assert capture.read().raw == buzz(100)[:320].tobytes()


def test_the_simulated_room_needs_a_voice_and_asks_the_configured_questions():
    asked = SimulationSettings(questions=("Well?",))
    with choose("simulated", answer=(), simulation=asked) as sound:
        assert (sound.is_card, sound.needs_voice) == (False, True)
        sound.prepare(VOICE)
        capture = sound.open(VOICE, Free(), MAIN).capture
        assert capture.description == "the simulated room"
        assert VOICE.texts[-1] == "Well?"


def test_with_a_microphone_auto_takes_the_card(monkeypatch):
    monkeypatch.setattr(portaudio, "has_microphone", lambda: True)
    with choose() as sound:
        assert (sound.is_card, sound.needs_voice) == (True, False)


def test_without_a_microphone_auto_takes_the_simulated_room_and_says_so(caplog):
    with choose() as sound:
        assert sound.needs_voice
    assert "no microphone was found" in caplog.text


def test_a_unit_without_a_microphone_waits_for_a_card_and_does_not_talk_to_itself(monkeypatch):
    monkeypatch.setenv("INVOCATION_ID", "5e0d")
    with choose() as sound:
        assert (sound.is_card, sound.needs_voice) == (True, False)
        assert sound.open(VOICE, Free(), MAIN).device is not None


def test_without_portaudio_auto_takes_the_simulated_room_and_says_what_is_missing(
    monkeypatch, caplog
):
    def missing():
        raise MissingLibraryError("PortAudio", "the sound card")

    monkeypatch.setattr(portaudio, "has_microphone", missing)
    with choose() as sound:
        assert sound.needs_voice
    assert "the sound card needs PortAudio" in caplog.text


def test_a_chosen_card_is_not_looked_for_before_it_is_opened(monkeypatch):
    monkeypatch.setattr(portaudio, "has_microphone", lambda: pytest.fail("looked for"))
    with choose("portaudio") as sound:
        assert sound.is_card


def test_a_file_for_the_answer_makes_no_sense_with_a_card(tmp_path):
    with pytest.raises(UsageError, match="goes to the sound card"):
        choose("portaudio", answer_wav=tmp_path / "answer.wav")


@pytest.mark.parametrize("way", ["itself", "another name", "by the configuration"])
def test_an_answer_never_overwrites_the_recording(recording, tmp_path, way):
    answer_wav, simulation = recording, SimulationSettings()
    if way == "another name":
        answer_wav = tmp_path / "answer.wav"
        answer_wav.symlink_to(recording)
    elif way == "by the configuration":
        answer_wav, simulation = None, SimulationSettings(answer_wav=recording)
    before = recording.read_bytes()
    with pytest.raises(UsageError, match="would overwrite the recording") as caught:
        choose(recording=recording, answer_wav=answer_wav, simulation=simulation)
    assert recording.read_bytes() == before
    assert caught.value.remedy
    assert str(recording) not in opened_files()  # though the error still knows the frames


def test_a_recording_that_is_missing_is_named_even_if_there_is_an_older_answer(tmp_path):
    Settings().simulation.answer_wav.write_bytes(b"older")
    with pytest.raises(NotFoundError, match=r"there is no file .*typo\.wav"):
        choose(recording=tmp_path / "typo.wav")


def test_a_recording_that_cannot_be_read_is_refused_at_once(tmp_path):
    path = tmp_path / "text.wav"
    path.write_text("not a sound")
    with pytest.raises(InputError, match=r"text\.wav"):
        choose(recording=path)


@pytest.mark.parametrize("asked", ["answer.wav", None])
def test_the_answer_goes_where_it_was_asked_to_or_where_the_configuration_says(
    recording, tmp_path, asked
):
    with choose(recording=recording, answer_wav=tmp_path / asked if asked else None) as sound:
        playback = sound.open(VOICE, Free(), MAIN).playback
        assert isinstance(playback, WavPlayback)
        assert Path(playback.description).name == (asked or "oyez-answer.wav")
        assert playback.rate_hz == VOICE.rate_hz
        playback.discard()


def test_no_speaker_is_opened_where_nothing_is_answered(recording):
    with choose(recording=recording) as sound:
        assert sound.open(None, Free(), MAIN).playback is None
    with choose(recording=recording, answer=()) as sound:
        assert sound.open(VOICE, Free(), MAIN).playback is None


def test_closing_twice_does_no_harm(recording):
    with choose(recording=recording) as sound:
        sound.close()


def test_a_warning_is_all_that_a_missing_card_costs(caplog):
    with choose():
        assert [record.levelno for record in caplog.records] == [logging.WARNING]


def test_a_card_is_opened_for_both_ways(null_card):
    audio = AudioSettings(
        backend="portaudio",
        capture=CaptureSettings(device=null_card),
        playback=PlaybackSettings(device=null_card),
    )
    chosen = replace(Settings(), audio=audio)
    with closing(SoundChoice(chosen, recording=None, answer_wav=None)) as sound:
        both = sound.open(VOICE, Free(), MAIN)
        capture, playback = both.capture, both.playback
        assert capture.description == playback.description == null_card
        capture.close()
        playback.close()


def test_whether_there_is_a_card_is_asked_of_portaudio(null_card, monkeypatch):
    monkeypatch.undo()
    assert null_card
    with choose() as sound:
        assert sound.is_card
