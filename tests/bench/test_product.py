"""The bench's commands against the real product, models and all."""

from __future__ import annotations

import json

import pytest

import corpus
from bench import main, pipeline, start

pytestmark = [pytest.mark.models, pytest.mark.usefixtures("models_folder")]


@pytest.fixture
def clip():
    found = {clip.name: clip for clip in corpus.recordings_or_skip("speech")}
    return found["goforward"]


def printed(capsys, *arguments):
    code = main.main(arguments)
    captured = capsys.readouterr()
    assert code == 0, captured.err
    return json.loads(captured.out)


def test_a_recording_that_is_streamed_comes_back_as_a_receipt_with_its_words(clip):
    (heard,) = pipeline.stream(clip.path, config=None, paced=False)
    assert "forward" in heard.text.lower()
    assert heard.endpoint_frame < heard.text_frame < heard.answer_frame
    assert heard.cut[0] <= heard.heard[0] < heard.heard[1] <= heard.cut[1]


def test_the_words_lost_by_streaming_are_told_for_chosen_clips(capsys, clip, tmp_path):
    out = tmp_path / "wer.json"
    verdict = printed(capsys, "wer", "--clips", clip.name, "--out", str(out))
    assert verdict == json.loads(out.read_text(encoding="utf-8"))
    assert (verdict["bench"], verdict["clips"]) == ("wer", 1)
    assert verdict["streamed"]["words"] == verdict["transcribed"]["words"] == 4
    assert verdict["settings"]["transcription"]["model"] == "tiny.en-q5_1"


def test_starts_are_measured_to_ready_to_rest_and_to_the_end(capsys, monkeypatch):
    monkeypatch.setattr(start, "ANSWER_S", 0)
    monkeypatch.setattr(start, "REST_S", 0.1)
    corpus.recordings_or_skip("speech")
    verdict = printed(capsys, "start", "--times", "1")
    (run,) = verdict["runs"]
    assert run["exec_to_ready_ms"] > 0
    assert 0 < run["rss_ready_mb"] <= run["rss_max_mb"]
    assert run["rss_rest_mb"] <= run["rss_max_mb"]


@pytest.mark.slow
def test_the_loop_tells_the_waits_of_both_ways(capsys, clip):
    verdict = printed(capsys, "loop", "--clips", clip.name)
    assert verdict["utterances"] == verdict["heard_as_one"] == 1
    (row,) = verdict["rows"]
    assert 0 < row["endpoint"] < row["text"] < row["answer"]
    assert verdict["peer"]["wait_ms"]["endpoint"] == verdict["wait_ms"]["endpoint"]
    assert verdict["peer"]["wait_ms"]["answer"]["n"] == 1


def test_a_configuration_that_is_wrong_ends_the_bench_with_its_reason(capsys, tmp_path):
    config = tmp_path / "oyez.yaml"
    config.write_text("vad: {aggressiveness: 9}\n", encoding="utf-8")
    assert main.main(["wer", "--config", str(config)]) == 1
    assert "aggressiveness" in capsys.readouterr().err
