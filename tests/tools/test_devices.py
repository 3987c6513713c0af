"""What `oyez devices` tells, over real pyalsaaudio and test cards."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from alsa.card import Offer
from alsa.controls import choice, switch, volume
from oyez.audio.pcm import SampleFormat
from oyez.audio.portaudio import Listed
from oyez.tools import devices

HOLD = (
    "import alsaaudio, sys\n"
    "pcm = alsaaudio.PCM(alsaaudio.PCM_CAPTURE, device='hw:CARD=Mic,DEV=0')\n"
    "print('held', flush=True)\n"
    "sys.stdin.read()\n"
)


def told(rack):
    return "\n".join(devices.lines(devices.survey(rack.proc), ()))


def test_a_card_is_told_with_what_it_really_supports_and_what_auto_takes(rack):
    rack.plug(
        rack.card(
            "Mic",
            name="USB Box",
            capture=Offer(rates=(44100, 48000), channels=(2,), formats=("S16_LE", "S32_LE")),
            playback=Offer(rates=(48000,)),
        )
    )
    rack.plug(rack.card("Other", capture=Offer()))
    first, second = devices.survey(rack.proc)
    capture = first.devices[0]
    assert capture.name == "hw:CARD=Mic,DEV=0"
    assert (capture.auto, capture.problem) == (True, "")
    assert capture.offer is not None
    assert sorted(capture.offer.rates_hz) == [44100, 48000]
    assert capture.offer.channels == (2,)
    assert set(capture.offer.formats) == {SampleFormat.S16, SampleFormat.S32}
    assert not second.devices[0].auto
    text = told(rack)
    assert "Mic: USB Box (card 0)" in text
    assert "44100, 48000 Hz; 2 ch" in text
    assert text.count("auto takes this one") == 2


def test_the_controls_that_are_used_are_marked_and_others_only_listed(rack):
    rack.plug(
        rack.card(
            "Mic",
            capture=Offer(),
            controls=[
                volume("Mic Capture Volume"),
                switch("Mic Capture Switch"),
                volume("Line Capture Volume", role=0),
                choice("AGC", ("Off", "On"), value=1),
            ],
        )
    )
    lines = [line.strip() for line in told(rack).splitlines() if line.startswith("  mixer")]
    marked = {line.split("'")[1]: line.rpartition("(")[2] for line in lines if line[-1] == ")"}
    assert marked == {"Mic": "the microphone's gain, turned on)", "AGC": "turned off)"}
    assert any("'Line',0: capture" in line for line in lines)


def test_a_busy_device_is_a_line_with_its_holder_and_no_end(rack):
    rack.plug(rack.card("Mic", capture=Offer(), playback=Offer()))
    with subprocess.Popen(
        [sys.executable, "-c", HOLD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ,
        encoding="utf-8",
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        capture, playback = devices.survey(rack.proc)[0].devices
        text = told(rack)
    assert capture.offer is None
    assert f"(process {holder.pid})" in capture.holder
    assert f"it is in use: {capture.holder}" in text
    assert playback.offer is not None


def test_a_device_that_fails_to_open_is_a_line_with_the_reason(rack):
    card = rack.plug(rack.card("Mic", capture=Offer(), playback=Offer()))
    card.capture.fail_open(5, times=0)
    text = told(rack)
    assert "it cannot be opened: Input/output error" in text
    assert "S16_LE; 16000 Hz; 1 ch" in text


def test_without_a_card_it_is_said_what_to_do(rack):
    assert devices.survey(rack.proc) == []
    assert told(rack) == devices.NO_CARD


def test_a_sound_server_is_told_where_there_is_no_card():
    offered = [Listed(name="pulse", inputs=2, outputs=2, rate_hz=44100)]
    text = "\n".join(devices.lines([], offered))
    assert "  pulse: 2 in, 2 out, 44100 Hz" in text
    assert list(devices.fields([], offered)) == [{"portaudio": "pulse", "inputs": 2, "outputs": 2}]


def test_a_program_gets_the_same_as_an_object_for_each_card(rack):
    rack.plug(
        rack.card("Mic", capture=Offer(rates=(48000,)), controls=[volume("Mic Capture Volume")])
    )
    (card,) = devices.fields(devices.survey(rack.proc), ())
    assert (card["card"], card["index"], card["usb"]) == ("Mic", 0, False)
    assert card["devices"] == [
        {
            "device": "hw:CARD=Mic,DEV=0",
            "direction": "capture",
            "auto": True,
            "formats": ["S16_LE"],
            "rates_hz": [48000],
            "channels": [1],
            "problem": None,
            "holder": None,
        }
    ]
    assert card["mixer"][0]["use"] == "the microphone's gain"


@pytest.mark.parametrize("ours", [[], ["--json"]])
def test_the_command_ends_well_without_any_card(rack, product, ours):
    done = product.run("devices", *ours, env={"OYEZ_PROC_ASOUND": str(rack.proc)})
    assert done.code == 0
    assert ("no sound card" in done.out) == (not ours)
