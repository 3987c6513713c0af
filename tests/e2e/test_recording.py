"""A recording in the microphone's place: what is heard, answered, told and left behind."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest
import soundfile

import corpus
from bench import scoring
from e2e import sounds
from e2e.product import receipts
from e2e.reading import FEW, wrong_words
from oyez import offline
from oyez.config import VadSettings
from oyez.messages import RATE_HZ
from oyez.speech import engines

if TYPE_CHECKING:
    from pathlib import Path

    from oyez.speech.engines import Transcriber

pytestmark = [pytest.mark.models, pytest.mark.usefixtures("models_folder")]

QUESTIONS = (
    "What time does the museum open?",
    "Could you turn on the kitchen light?",
    "How far is it to the next village?",
)
TAIL_MS = 4_000
DECISIONS = (
    "utterance",
    "outcome",
    "reason",
    "begin_frame",
    "end_frame",
    "speech_begin_frame",
    "speech_end_frame",
    "endpoint_frame",
    "text",
    "answer",
    "peak_dbfs",
    "clipped_ms",
    "context",
    "tries",
    "probability",
)
"""What must not depend on how fast anything is computed."""


class Heard:
    """A conversation that was heard in real time to its end."""

    def __init__(self, product, said, folder: Path) -> None:
        samples = sounds.conversation([said(text) for text in QUESTIONS], tail_ms=TAIL_MS)
        self.frames = len(samples)
        self.recording = sounds.write(folder / "conversation.wav", samples)
        self.answer = folder / "answer" / "answer.wav"
        self.answer.parent.mkdir()
        files = ("--input", self.recording, "--output", self.answer)
        with product.running("run", "--json", "--config", product.config, *files) as running:
            while running.event("receipt")["endpoint_frame"] < self.frames - TAIL_MS * 16:
                pass
            # Silence is left, and the last answer is on its way.
            self.alive_at_last_receipt = running.process.poll() is None
            self.done = running.end()
        self.receipts = receipts(self.done.events)


@pytest.fixture(scope="module")
def heard(product, said, tmp_path_factory):
    return Heard(product, said, tmp_path_factory.mktemp("heard"))


def whats_in(path: Path, reader: Transcriber) -> str:
    """The text of a recording, read whole."""
    return offline.transcribe(path, reader, engines.make_vad(VadSettings())).text


def test_each_utterance_gets_one_receipt_and_the_numbers_have_no_gaps(heard):
    numbers = [receipt["utterance"] for receipt in heard.receipts]
    assert sorted(numbers) == list(range(1, len(numbers) + 1))
    answered = [r["text"] for r in heard.receipts if r["outcome"] == "answered"]
    assert [scoring.words(text) for text in answered] == [scoring.words(q) for q in QUESTIONS]


def test_the_final_text_is_there_before_the_trailing_silence_has_played(heard):
    last = heard.receipts[-1]
    assert last["reason"] == "silence"
    assert last["endpoint_frame"] < last["text_frame"] < heard.frames
    assert last["answer_frame"] < heard.frames
    assert heard.alive_at_last_receipt


def test_no_receipt_claims_to_know_what_came_later(heard):
    for receipt in heard.receipts:
        assert receipt["begin_frame"] <= receipt["speech_begin_frame"]
        assert receipt["speech_begin_frame"] < receipt["speech_end_frame"]
        assert receipt["speech_end_frame"] <= receipt["end_frame"] <= receipt["endpoint_frame"]
        assert receipt["endpoint_frame"] <= receipt["text_frame"]


def test_no_sound_is_in_two_utterances(heard):
    spans = sorted((r["begin_frame"], r["end_frame"]) for r in heard.receipts)
    for (_, end), (begin, _) in itertools.pairwise(spans):
        assert end <= begin


def test_it_ends_by_itself_when_the_recording_is_over(heard):
    assert heard.done.code == 0
    assert heard.done.events[0]["state"] == "listening"


def test_the_answers_are_whole_and_stand_alone_in_their_folder(heard, voice, reader):
    assert [path.name for path in heard.answer.parent.iterdir()] == [heard.answer.name]
    assert soundfile.info(heard.answer).samplerate == voice.rate_hz
    answers = " ".join(receipt["answer"] for receipt in heard.receipts)
    assert wrong_words(answers, whats_in(heard.answer, reader)) < FEW


def test_unpaced_it_hears_the_same_as_in_real_time_and_the_same_again(heard, product, tmp_path):
    runs = [product.heard(heard.recording, tmp_path / "answer.wav").receipts for _ in range(2)]
    assert decisions(heard.receipts) == decisions(runs[0]) == decisions(runs[1])


def test_what_people_said_is_heard_the_same_at_any_pace(product, tmp_path):
    known = {clip.name: clip for clip in corpus.recordings_or_skip("speech")}
    clips = [known[name] for name in ("goforward", "cards_002")]
    takes = [clip.samples for clip in clips]
    recording = sounds.write(tmp_path / "people.wav", sounds.conversation(takes, tail_ms=800))
    config = product.configured(answer=[])
    runs = [
        decisions(product.heard(recording, tmp_path / "a.wav", paced=paced, config=config).receipts)
        for paced in (True, False)
    ]
    assert runs[0] == runs[1]
    text = " ".join(decision["text"] for decision in runs[0])
    assert wrong_words(" ".join(clip.text for clip in clips), text) < FEW


def decisions(receipts):
    """What was decided, utterance by utterance: an answer may begin when the next text is there."""
    in_order = sorted(receipts, key=lambda receipt: receipt["utterance"])
    return [{name: receipt[name] for name in DECISIONS} for receipt in in_order]


def test_once_ends_after_the_first_answer(heard, product, reader, tmp_path):
    answer = tmp_path / "answer.wav"
    files = ("--input", heard.recording, "--output", answer)
    done = product.run("run", "--json", "--once", "--unpaced", "--config", product.config, *files)
    assert done.code == 0
    first, *others = done.receipts
    assert (first["utterance"], first["outcome"]) == (1, "answered")
    assert "answered" not in {receipt["outcome"] for receipt in others}
    assert wrong_words(first["answer"], whats_in(answer, reader)) < FEW


def test_people_read_what_was_heard_and_answered(heard, product, tmp_path):
    files = ("--input", heard.recording, "--output", tmp_path / "answer.wav")
    done = product.run("run", "--once", "--unpaced", "--config", product.config, *files)
    heard_line, answer_line, receipt_line, *_ = done.lines
    text = heard.receipts[0]["text"]
    assert heard_line == f'heard   "{text}"'
    assert answer_line == f'answer  "You said: {text}"'
    assert receipt_line.startswith("utterance 1  ")
    assert "ended: silence 500 ms" in receipt_line
    assert "the person waited" in done.out


def test_where_nothing_is_said_an_older_answer_stays_and_nothing_is_put_beside_it(
    product, tmp_path
):
    quiet = sounds.write(tmp_path / "quiet.wav", sounds.noise(2_000, level=0.001))
    answer = tmp_path / "answer.wav"
    answer.write_bytes(b"an older answer")
    done = product.heard(quiet, answer)
    assert (done.code, done.receipts) == (0, [])
    assert answer.read_bytes() == b"an older answer"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["answer.wav", "quiet.wav"]


def test_an_utterance_that_the_recording_cuts_off_is_read_all_the_same(product, said, tmp_path):
    question = said(QUESTIONS[0])
    cut = sounds.write(tmp_path / "cut.wav", sounds.silence(300), question)
    (receipt,) = product.heard(cut, tmp_path / "answer.wav").receipts
    assert receipt["reason"] == "end of input"
    assert scoring.words(receipt["text"]) == scoring.words(QUESTIONS[0])
    assert receipt["end_frame"] <= len(question) + 300 * 16 + RATE_HZ // 50


def test_speech_beyond_the_maximum_goes_on_in_the_next_utterance(product, said, tmp_path):
    spoken = [said(text) for text in QUESTIONS]
    long = sounds.write(tmp_path / "long.wav", *spoken, sounds.silence(1_000))
    config = product.configured(endpointing={"max_utterance_s": 3}, answer=[])
    done = product.heard(long, tmp_path / "answer.wav", config=config)
    assert [r["utterance"] for r in done.receipts] == list(range(1, len(done.receipts) + 1))
    reasons = [receipt["reason"] for receipt in done.receipts]
    assert reasons[0] == "maximum length"
    assert reasons[-1] == "silence"
    for before, after in itertools.pairwise(done.receipts):
        if before["reason"] == "maximum length":
            assert after["begin_frame"] == before["end_frame"]


def test_with_no_answer_configured_it_only_transcribes_and_needs_no_voice(
    product, said, models_folder, tmp_path
):
    folder = tmp_path / "models"
    folder.mkdir()
    for path in models_folder.glob("ggml-*"):
        (folder / path.name).symlink_to(path)
    samples = sounds.conversation([said(text) for text in QUESTIONS[:2]], tail_ms=1_000)
    recording = sounds.write(tmp_path / "recording.wav", samples)
    config = product.configured(answer=[], models={"folder": str(folder)})
    files = ("--input", recording, "--output", tmp_path / "answer.wav")
    done = product.run("run", "--json", "--once", "--unpaced", "--config", config, *files)
    assert done.code == 0
    first, *others = done.receipts
    assert first["outcome"] == "transcribed"
    assert scoring.words(first["text"]) == scoring.words(QUESTIONS[0])
    assert "transcribed" not in {receipt["outcome"] for receipt in others}
    assert not (tmp_path / "answer.wav").exists()


def test_an_answer_that_cannot_be_spoken_gets_its_receipt_and_leaves_no_file(
    product, said, tmp_path
):
    samples = sounds.conversation([said(QUESTIONS[0])], tail_ms=1_000)
    recording = sounds.write(tmp_path / "recording.wav", samples)
    config = product.configured(answer=[{"echo": "…!"}])
    done = product.heard(recording, tmp_path / "answer.wav", config=config)
    assert done.code == 0
    (receipt,) = done.receipts
    assert receipt["outcome"] == "the answer cannot be spoken"
    assert scoring.words(receipt["text"]) == scoring.words(QUESTIONS[0])
    assert [path.name for path in tmp_path.iterdir()] == ["recording.wav"]
