"""What people said stays out of the journal unless the owner lets it in."""

from __future__ import annotations

import os
import subprocess

import pytest

from bench import scoring
from e2e.product import OYEZ, PATIENCE_S

pytestmark = [pytest.mark.models, pytest.mark.usefixtures("models_folder")]

QUESTION = "Could you turn on the kitchen light?"


@pytest.fixture
def journal(product, tmp_path):
    """Runs with both streams going where systemd says that its journal is; gives what arrived."""

    def run(*options, log_transcripts):
        config = product.configured(
            audio={"backend": "simulated"},
            simulation={"questions": [QUESTION], "answer_wav": str(tmp_path / "answer.wav")},
            journal={"log_transcripts": log_transcripts},
        )
        path = tmp_path / "journal"
        with path.open("w") as stream:
            status = os.fstat(stream.fileno())
            environment = {"JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}"}
            arguments = ("run", "--unpaced", "--config", str(config), *options)
            done = subprocess.run(
                [*OYEZ, *arguments],
                check=False,
                env=product.environment(environment),
                stderr=stream,
                stdout=stream,
                timeout=PATIENCE_S,
            )
        assert done.returncode == 0
        text = path.read_text()
        assert "utterance" in text  # the receipt is there, with or without words
        return set(scoring.words(text.replace("_", " ")))

    return run


@pytest.mark.parametrize("options", [(), ("--json",)], ids=["for people", "as JSON"])
def test_the_journal_has_receipts_without_words(journal, options):
    assert not journal(*options, log_transcripts=False) & {"kitchen", "light", "could"}


def test_the_owner_can_let_the_words_in(journal):
    assert {"kitchen", "light", "said"} <= journal(log_transcripts=True)
