"""Without a sound card: a question is asked in a simulated room, and answered into a file."""

from __future__ import annotations

import signal

import pytest

from bench import scoring

pytestmark = [pytest.mark.models, pytest.mark.usefixtures("models_folder")]

QUESTION = "Could you turn on the kitchen light?"


def simulated(product, answer, **settings):
    settings = {"questions": [QUESTION], "answer_wav": str(answer)} | settings
    return product.configured(simulation=settings)


def test_what_is_asked_is_what_is_heard_and_answered(product, no_card, tmp_path):
    config = simulated(product, tmp_path / "answer.wav")
    done = product.run("run", "--once", "--json", "--config", config, env=no_card)
    assert done.code == 0
    assert "no microphone was found: taking the simulated room" in done.err
    (receipt,) = done.receipts
    assert receipt["outcome"] == "answered"
    assert scoring.words(receipt["text"]) == scoring.words(QUESTION)
    assert [path.name for path in tmp_path.iterdir()] == ["answer.wav"]


def test_the_same_seed_gives_the_same_run_and_another_does_not(product, tmp_path):
    files = ("--output", tmp_path / "answer.wav")
    runs = []
    for seed in (7, 7, 8):
        config = product.configured(
            audio={"backend": "simulated"},
            simulation={"questions": [QUESTION], "seed": seed, "snr_db": 15},
            answer=[],
        )
        (receipt,) = product.run("run", "--unpaced", "--json", "--config", config, *files).receipts
        assert scoring.words(receipt["text"]) == scoring.words(QUESTION)
        runs.append([receipt[name] for name in ("text", "begin_frame", "endpoint_frame")])
        runs[-1].append(receipt["probability"])
    assert runs[0] == runs[1] != runs[2]


def test_all_questions_are_asked_and_then_it_ends(product, tmp_path):
    questions = ["What time is it?", "…", QUESTION]  # one of them cannot be spoken
    config = simulated(product, tmp_path / "answer.wav", questions=questions)
    done = product.run("run", "--unpaced", "--json", "--config", config)
    assert done.code == 0
    heard = [scoring.words(receipt["text"]) for receipt in done.receipts]
    assert heard == [scoring.words(questions[0]), scoring.words(QUESTION)]


def test_questions_that_cannot_be_spoken_are_a_wrong_configuration(product, tmp_path):
    config = simulated(product, tmp_path / "answer.wav", questions=["…", "!"])
    done = product.run("run", "--unpaced", "--config", config)
    assert done.code == 78
    assert done.err.splitlines()[-1].startswith("simulation.questions: none of them")
    assert not list(tmp_path.iterdir())


def test_a_unit_without_a_microphone_waits_for_one_and_never_talks_to_itself(
    product, no_card, tmp_path
):
    config = simulated(product, tmp_path / "answer.wav")
    unit = no_card | {"INVOCATION_ID": "0123456789abcdef0123456789abcdef"}
    with product.running("run", "--config", config, env=unit) as running:
        running.err.until(lambda line: "capture auto: it is not there" in line)
        done, _ = running.stop(signal.SIGTERM)
    assert done.code == 0
    assert "simulated room" not in done.err
    assert done.out == ""
    assert not list(tmp_path.iterdir())
