"""A recording gives the same text however it was stored: the front end, the VAD, the recognizer."""

from __future__ import annotations

import numpy as np
import pytest
import soundfile
import soxr

from bench import scoring
from e2e import sounds
from oyez import offline
from oyez.config import VadSettings
from oyez.messages import RATE_HZ
from oyez.speech import engines

pytestmark = [pytest.mark.models, pytest.mark.usefixtures("models_folder")]

QUESTION = "Could you turn on the kitchen light?"
RATES_HZ = (8_000, 11_025, 16_000, 44_100, 48_000, 96_000)
SUBTYPES = ("PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT")


@pytest.fixture(scope="module")
def question(said):
    """The question in a room, as one would record it: float32 [n] at 16 kHz."""
    return sounds.conversation([said(QUESTION)], tail_ms=800)


@pytest.fixture
def text_of(reader, tmp_path):
    """Stores frames (float32 [n, channels]), and gives the words that are read from the file."""

    def read(frames, rate_hz, subtype):
        path = tmp_path / "recording.wav"
        soundfile.write(path, frames, rate_hz, subtype=subtype)
        samples, voiced = offline.hear(path, engines.make_vad(VadSettings()))
        assert voiced
        assert abs(len(samples) / RATE_HZ - len(frames) / rate_hz) < 0.1
        return scoring.words(reader.read(samples).text)

    return read


@pytest.mark.parametrize("subtype", SUBTYPES)
@pytest.mark.parametrize("rate_hz", RATES_HZ)
def test_every_rate_and_width_gives_the_words(text_of, question, rate_hz, subtype):
    frames = soxr.resample(question, RATE_HZ, rate_hz)
    assert text_of(frames, rate_hz, subtype) == scoring.words(QUESTION)


@pytest.mark.parametrize(
    ("channels", "live"),
    [(2, 0), (2, 1), (6, 4)],
    ids=["stereo, right dead", "stereo, left dead", "six channels, five dead"],
)
def test_dead_channels_beside_the_live_one_change_nothing(text_of, question, channels, live):
    frames = np.zeros((len(question), channels), np.float32)
    frames[:, live] = question
    assert text_of(frames, RATE_HZ, "PCM_16") == scoring.words(QUESTION)


def test_two_channels_in_opposite_phases_do_not_cancel_out(text_of, question):
    frames = np.stack([question, -question], axis=1)
    assert text_of(frames, RATE_HZ, "PCM_16") == scoring.words(QUESTION)


def test_the_whole_product_hears_them_as_well(product, question, tmp_path):
    frames = np.zeros((len(question) * 3, 2), np.float32)
    frames[:, 1] = soxr.resample(question, RATE_HZ, 48_000)
    path = tmp_path / "recording.wav"
    soundfile.write(path, frames, 48_000, subtype="PCM_24")
    done = product.heard(path, tmp_path / "answer.wav")
    (receipt,) = done.receipts
    assert scoring.words(receipt["text"]) == scoring.words(QUESTION)
    assert receipt["reason"] == "silence"
    # What is told in passing is a person's: nothing of a library's own troubles at the end.
    assert {line.split()[1] for line in done.err.splitlines()} == {"INFO"}
