"""The calibration over real pyalsaaudio and a test card, in a room with a person in it."""

from __future__ import annotations

import dataclasses
import io
import json

import numpy as np
import pytest

from alsa.card import Offer
from alsa.controls import volume
from oyez.audio.levels import Signal
from oyez.errors import AudioDeviceError
from oyez.tools import calibrate, echo_probe, verdict
from oyez.tools.verdict import GAIN_KEY, Present
from tools.room import Person

MONO = Offer(rates=(16000,))
PRESENT = Present(gain_db="auto", aggressiveness=2, echo="gate")


def test_a_soft_voice_gets_gain_that_truly_brings_it_to_the_target(asound, fast):
    card = asound.card("Mic", capture=MONO, playback=MONO, controls=[volume("Mic Capture Volume")])
    asound.plug(card)
    _, measured = calibrate.calibrate(fast, Person(card, speech_dbfs=-40))
    assert measured.spoken is not None
    assert measured.spoken.level_dbfs == pytest.approx(-40, abs=1.5)
    assert measured.floor_dbfs == pytest.approx(-65, abs=3)
    found = verdict.judge(measured, PRESENT)
    assert found.warnings == ()
    assert found.proposals[GAIN_KEY] == pytest.approx(18, abs=2)
    assert card.value("Mic Capture Volume") == (11,)
    # With that gain, in the card, the same voice stands where it should.
    card.turn("Mic Capture Volume", 11 + round(found.proposals[GAIN_KEY] / 1.5))
    _, after = calibrate.calibrate(fast, Person(card, speech_dbfs=-40))
    assert after.spoken is not None
    assert after.spoken.level_dbfs == pytest.approx(-22, abs=2)


def test_the_speaker_is_heard_with_its_level_and_delay(asound, fast):
    card = asound.plug(asound.card("Mic", capture=MONO, playback=MONO))
    _, measured = calibrate.calibrate(fast, Person(card, speech_dbfs=-25, echo_db=-12))
    assert measured.echo is not None
    assert measured.echo.level_dbfs == pytest.approx(-15 - 12, abs=1.5)
    assert 0 <= measured.echo.delay_ms < 1500
    played = np.concatenate([sound[:, 0] for _, sound in card.recordings()])
    assert abs(played).max() == pytest.approx(echo_probe.SWEEP_PEAK * 2**15, rel=0.05)
    findings = dict(verdict.findings(measured))
    assert findings["speaker"].startswith("heard at -2")


def test_a_card_that_clips_is_turned_down_and_asked_again(asound, fast):
    card = asound.card(
        "Mic", capture=MONO, playback=MONO, controls=[volume("Mic Capture Volume", value=21)]
    )
    asound.plug(card)
    person = Person(card, speech_dbfs=-20)  # with 15 dB of gain: far over full scale
    _, measured = calibrate.calibrate(fast, person)
    assert "That clips" in person.getvalue()
    assert measured.spoken is not None
    assert not measured.spoken.clipped
    assert measured.lowered_db > 0
    assert card.value("Mic Capture Volume") == (21,)
    proposed = verdict.judge(measured, PRESENT).proposals[GAIN_KEY]
    assert -6 < proposed < 2


def test_a_microphone_that_clips_by_itself_is_told_to_be_further_away(asound, fast):
    card = asound.plug(asound.card("Mic", capture=MONO, playback=MONO))
    person = Person(card, speech_dbfs=-12, limit=0.4)
    _, measured = calibrate.calibrate(fast, person)
    found = verdict.judge(measured, PRESENT)
    assert any("clips" in warning for warning in found.warnings)
    assert found.proposals == {}


def test_of_two_channels_the_live_one_is_measured_and_the_dead_one_named(asound, fast):
    stereo = Offer(rates=(16000,), channels=(2,))
    card = asound.plug(asound.card("Mic", capture=stereo))
    person = Person(card, speech_dbfs=-25, channel_map=(-1, 0))
    _, measured = calibrate.calibrate(fast, person)
    assert (measured.channel, measured.signals) == (1, (Signal.SILENT, Signal.LIVE))
    assert dict(verdict.findings(measured))["channel"] == "1; channel 0: digital silence"
    found = verdict.judge(measured, PRESENT)
    assert [w.split(":")[0] for w in found.warnings] == ["nothing was played"]


def test_what_is_proposed_is_written_and_comments_stay(asound, fast, tmp_path, monkeypatch):
    card = asound.plug(asound.card("Mic", capture=MONO, playback=MONO))
    person = Person(card, speech_dbfs=-34)
    monkeypatch.setattr("sys.stderr", person)
    path = tmp_path / "oyez.yaml"
    path.write_text("# mine\nvad: {aggressiveness: 2}  # two\n")
    out = io.StringIO()
    calibrate.run(fast, path, as_json=True, out=out)
    said = json.loads(out.getvalue())
    gain = said["proposals"][GAIN_KEY]
    assert gain == pytest.approx(12, abs=2)
    assert said["written"] == str(path)
    assert path.read_text() == (
        f"# mine\nvad: {{aggressiveness: 2}}  # two\naudio:\n  capture:\n    gain_db: {gain}\n"
    )


def test_the_command_guides_with_plain_lines_and_tells_what_it_wrote(asound, product, tmp_path):
    card = asound.plug(asound.card("Mic", capture=MONO, playback=MONO))
    person = Person(card, speech_dbfs=-34)
    path = tmp_path / "new.yaml"
    config = product.configured(audio={"capture": {"period_ms": 60, "periods": 32}})
    with product.running("calibrate", "--config", config, "--write", path) as running:
        for asked in ("Please be silent", "Please speak now", "a rising tone"):
            person.write(running.err.until(lambda line, asked=asked: asked in line))
        done = running.end()
    assert (done.code, len(done.err.splitlines())) == (0, 3)
    said = [line.split()[0] for line in done.lines if line and line[0].isalpha()]
    assert said == ["microphone", "channel", "noise", "speech", "speaker"] + ["detector"] * 4 + [
        "verdict",
        "written",
    ]
    assert "(was auto)" in done.lines[-1]
    assert path.read_text().startswith("audio:\n  capture:\n    gain_db: 1")


def test_a_file_that_cannot_be_written_is_told_before_anybody_has_to_speak(product, tmp_path):
    done = product.run("calibrate", "--write", tmp_path / "no" / "oyez.yaml")
    assert (done.code, done.out) == (74, "")
    assert "cannot be written" in done.err


def test_no_card_at_all_is_an_error_with_a_remedy(asound, fast, monkeypatch):
    monkeypatch.setattr(calibrate, "OPENING_S", 0.5)
    audio = dataclasses.replace(fast.audio, backend="alsa")
    with pytest.raises(AudioDeviceError, match="cannot be heard") as caught:
        calibrate.calibrate(dataclasses.replace(fast, audio=audio), Nobody())
    assert "oyez devices" in caught.value.remedy


class Nobody:
    """There is nobody to be told."""

    def isatty(self) -> bool:
        return False
