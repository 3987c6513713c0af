"""What every transcriber in ``engines.TRANSCRIBERS`` has in common: ``engines.Transcriber``."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pytest

from corpus import recordings_or_skip
from oyez.audio.pcm import to_pcm16
from oyez.config import Settings
from oyez.messages import RATE_HZ, Reading
from oyez.speech import engines

MODELS = {"whisper.cpp": "tiny.en-q5_1"}
"""With which model each engine is tried: whoever adds an engine adds one here."""
PATIENCE_S = 60

pytestmark = pytest.mark.models


def make(engine, model_path, threads):
    settings = replace(Settings().transcription, engine=engine)
    return engines.make_transcriber(settings, model_path(MODELS[engine]), threads)


@pytest.fixture(scope="module", params=sorted(engines.TRANSCRIBERS))
def engine(request):
    return request.param


@pytest.fixture(scope="module")
def transcriber(engine, model_path, threads):
    """One for all tests, since what one utterance leaves behind must not matter."""
    return make(engine, model_path, threads)


@pytest.fixture(scope="module")
def fresh(engine, model_path, threads):
    """Makes one that has read nothing yet."""
    return lambda: make(engine, model_path, threads)


@pytest.fixture(scope="module")
def clips():
    """Three utterances of people, the shortest first: int16."""
    whole = [clip for clip in recordings_or_skip("speech") if clip.text]
    whole.sort(key=lambda clip: len(clip.samples))
    return [to_pcm16(clip.samples) for clip in (whole[0], whole[len(whole) // 2], whole[-1])]


@pytest.fixture(scope="module")
def varied():
    """Utterances of many lengths, single words too: some that are hard to read among them."""
    every = sorted(recordings_or_skip("speech", "short"), key=lambda clip: len(clip.samples))
    chosen = [every[n * len(every) // 6] for n in range(6)]
    return [to_pcm16(clip.samples) for clip in chosen]


def long_speech(clips, seconds):
    """So many seconds full of speech."""
    return np.resize(np.concatenate(clips), seconds * RATE_HZ)


def check(reading):
    assert isinstance(reading, Reading)
    assert reading.text == " ".join(reading.text.split())
    assert 0 <= reading.probability <= 1
    assert reading.context >= 0
    assert reading.tries >= 0


def test_each_transcriber_has_a_model_to_be_tried_with():
    assert set(MODELS) == set(engines.TRANSCRIBERS)


def test_people_are_understood(transcriber, clips):
    for samples in clips:
        reading = transcriber.read(samples)
        check(reading)
        assert any(letter.isalpha() for letter in reading.text)
        assert reading.probability > 0
        assert min(reading.context, reading.tries) > 0


def test_the_same_sound_gives_the_same_reading_whatever_was_read_before(transcriber, varied, clips):
    # An engine may keep something of the longest sound that it has read, where a shorter one does
    # not reach; so all are read after one long utterance and after another.
    one, other = clips[-1], long_speech(clips[:2], len(clips[-1]) // RATE_HZ + 1)
    readings = []
    for before in (one, other, one):
        transcriber.read(before)
        readings.append([transcriber.read(samples) for samples in varied])
    assert readings[1] == readings[0]
    assert readings[2] == readings[0]


def test_a_reading_does_not_depend_on_what_was_read_before(transcriber, fresh, clips):
    transcriber.read(clips[-1])
    assert transcriber.read(clips[0]) == fresh().read(clips[0])


def test_a_recording_read_whole_does_not_depend_on_what_was_read_before(transcriber, fresh, clips):
    for samples in clips:
        transcriber.read(samples)
    transcriber.read_whole(clips[-1])
    transcriber.read(clips[0])
    assert transcriber.read_whole(clips[0]) == fresh().read_whole(clips[0])


@pytest.mark.parametrize("frames", [0, 1, 100, RATE_HZ, 25 * RATE_HZ])
@pytest.mark.parametrize("level", [0, -1, -32_768])
def test_silence_gives_no_text(transcriber, frames, level):
    reading = transcriber.read(np.full(frames, level, np.int16))
    check(reading)
    assert reading.text == ""


def test_the_noise_of_a_converter_gives_no_text(transcriber):
    noise = np.random.default_rng(1).integers(-1, 2, 2 * RATE_HZ, np.int16)
    noise[:100] = 0
    assert transcriber.read(noise).text == ""
    assert transcriber.read(np.where(noise > 0, 1, 0).astype(np.int16)).text == ""


@pytest.mark.parametrize("frames", [0, 100, 35 * RATE_HZ])
def test_silence_read_whole_gives_no_text(transcriber, frames):
    assert transcriber.read_whole(np.zeros(frames, np.int16)).text == ""


@pytest.mark.parametrize("frames", [1, 100, RATE_HZ // 10, RATE_HZ])
def test_the_beginning_of_a_word_alone_does_no_harm(transcriber, clips, frames):
    loudest = int(np.abs(clips[0].astype(int)).argmax())
    check(transcriber.read(clips[0][loudest : loudest + frames]))


@pytest.mark.parametrize("odd", ["a square wave", "white noise", "one click"])
def test_odd_sounds_do_no_harm(transcriber, odd):
    samples = np.zeros(RATE_HZ, np.int16)
    match odd:
        case "a square wave":
            samples[:] = -32_768
            samples[1::2] = 32_767
        case "white noise":
            samples = np.random.default_rng(1).integers(-32_768, 32_767, RATE_HZ, np.int16)
        case "one click":
            samples[RATE_HZ // 2] = 32_767
    check(transcriber.read(samples))


def test_samples_may_be_read_only_and_are_left_as_they_are(transcriber, clips):
    samples = clips[0].copy()
    samples.flags.writeable = False
    transcriber.read(samples)
    np.testing.assert_array_equal(samples, clips[0])


@pytest.mark.parametrize("seconds", [25, 30])
def test_the_longest_utterance_is_read(transcriber, clips, seconds):
    reading = transcriber.read(long_speech(clips, seconds))
    check(reading)
    # Where the recordings are few they come again and again, which is what an invention looks like.
    if sum(len(clip) for clip in clips) >= seconds * RATE_HZ:
        assert reading.text


def test_a_recording_of_more_than_30_s_is_read_to_its_end(transcriber, clips):
    # The last thing that is said comes again after 31 s of other sound.
    last = transcriber.read_whole(clips[1]).text
    words = {word.strip(".,?!").casefold() for word in last.split()}
    pause = np.zeros(RATE_HZ // 2, np.int16)
    samples = np.concatenate((long_speech([clips[-1]], 31), pause, clips[1], pause))
    reading = transcriber.read_whole(samples)
    check(reading)
    heard = [word.strip(".,?!").casefold() for word in reading.text.split()]
    assert len(words.intersection(heard[-2 * len(words) :])) >= len(words) / 2


def test_an_abort_ends_a_read_that_runs_and_every_later_one(fresh, clips):
    transcriber = fresh()
    transcriber.warm_up()
    ended, samples = [], long_speech(clips, 25)

    def read_for_ever():
        try:
            while True:
                transcriber.read(samples)
        except engines.Aborted as aborted:
            ended.append(aborted)

    reading = threading.Thread(target=read_for_ever, daemon=True)
    reading.start()
    transcriber.abort()
    reading.join(PATIENCE_S)
    assert len(ended) == 1
    for read in (transcriber.read, transcriber.read_whole):
        with pytest.raises(engines.Aborted):
            read(clips[0])
