"""The meter over real pyalsaaudio and a test card."""

from __future__ import annotations

import dataclasses
import io
import json
import signal

import pytest

from alsa.card import Offer
from alsa.controls import volume
from oyez.errors import AudioDeviceError
from oyez.tools import meter
from tools.room import Person, noise, voice

STEREO = Offer(rates=(16000,), channels=(2,))


def metered(settings, seconds=3.0):
    out = io.StringIO()
    meter.run(settings, seconds, as_json=True, out=out)
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_a_dead_channel_is_told_and_the_live_one_followed(asound, fast):
    card = asound.plug(asound.card("Mic", capture=STEREO))
    Person(card, speech_dbfs=None, noise_dbfs=-40, channel_map=(-1, 0))
    last = metered(fast)[-1]
    assert last["channel"] == 1
    dead, live = last["channels"]
    assert (dead["signal"], live["signal"]) == ("digital silence", "live")
    assert live["rms_dbfs"] == pytest.approx(-40, abs=1)
    assert live["floor_dbfs"] == pytest.approx(-40, abs=3)


def test_speech_is_flagged_and_silence_is_not(asound, fast):
    card = asound.plug(asound.card("Mic", capture=Offer()))
    card.speed = 8
    card.play(voice(10, -25) + noise(10, -70), rate=16000, format_name="FLOAT_LE", loops=True)
    assert metered(fast)[-1]["speech"] > 0.5


def test_clipping_is_told(asound, fast):
    card = asound.card("Mic", capture=Offer(), controls=[volume("Mic Capture Volume", value=31)])
    asound.plug(card)
    card.speed = 8
    card.play(voice(10, -20), rate=16000, format_name="FLOAT_LE", loops=True)
    assert metered(fast)[-1]["channels"][0]["clipping"]


def test_a_fixed_gain_is_set_in_the_card_and_truly_scales_what_is_shown(asound, fast):
    card = asound.card("Mic", capture=Offer(), controls=[volume("Mic Capture Volume")])
    asound.plug(card)
    Person(card, speech_dbfs=None, noise_dbfs=-50)
    capture = dataclasses.replace(fast.audio.capture, gain_db=15.0)
    louder = dataclasses.replace(fast, audio=dataclasses.replace(fast.audio, capture=capture))
    assert metered(louder)[-1]["channels"][0]["rms_dbfs"] == pytest.approx(-35, abs=1)
    assert card.value("Mic Capture Volume") == (21,)


def test_a_busy_microphone_is_told_and_hearing_nothing_is_an_error(asound, fast):
    card = asound.plug(asound.card("Mic", capture=Offer()))
    card.capture.fail_open(seconds=60)
    out = io.StringIO()
    with pytest.raises(AudioDeviceError, match="it is in use") as caught:
        meter.run(fast, 1.0, as_json=False, out=out)
    assert "no microphone: auto: it is in use" in out.getvalue()
    assert "oyez devices" in caught.value.remedy


def test_the_simulated_room_has_nothing_to_measure(asound, fast):
    audio = dataclasses.replace(fast.audio, backend="simulated")
    with pytest.raises(AudioDeviceError, match="simulated room"):
        meter.run(dataclasses.replace(fast, audio=audio), 1.0, as_json=False, out=io.StringIO())


def test_a_terminal_gets_one_line_that_is_drawn_anew(asound, fast):
    card = asound.plug(asound.card("Mic", capture=Offer()))
    Person(card, speech_dbfs=None, noise_dbfs=-30)
    out = Terminal()
    meter.run(fast, 2.0, as_json=False, out=out)
    assert out.getvalue().count("\n") == 1
    drawn = out.getvalue().rstrip("\n").split("\r\033[K")
    assert drawn[-1].startswith("[#####")
    assert len(drawn) > 5


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_ctrl_c_ends_it_cleanly_after_a_line_each_second(asound, product):
    card = asound.plug(asound.card("Mic", capture=Offer()))
    card.play(noise(10, -40), rate=16000, format_name="FLOAT_LE", loops=True)
    card.speed = 4
    with product.running("meter", "--config", product.configured()) as running:
        line = running.out.until(lambda line: "channel 0 (live)" in line)
        assert "noise floor" in line
        done, _ = running.stop(signal.SIGINT)
    assert (done.code, done.err) == (0, "")
    assert card.capture.closes == card.capture.opens
