"""The folder that looks like /proc/asound, the layout of the state, and the build."""

from __future__ import annotations

import ctypes
import errno
import os

import alsaaudio
import pytest

from alsa import build, layout
from alsa.card import Offer
from alsa.program import open_pcm


def test_a_rack_without_cards_says_so_as_the_kernel_does(rack):
    assert (rack.proc / "cards").read_text() == "--- no soundcards ---\n"


def test_cards_are_listed_as_the_kernel_lists_them(rack):
    rack.plug(rack.card("Device", name="USB Audio Device", capture=Offer(), playback=Offer()))
    rack.plug(rack.card("Webcam", name="HD Webcam", capture=Offer()), index=2)
    assert (rack.proc / "cards").read_text() == (
        " 0 [Device         ]: USB-Audio - USB Audio Device\n"
        "                      USB Audio Device at usb-0000:00:14.0-1, high speed\n"
        " 2 [Webcam         ]: USB-Audio - HD Webcam\n"
        "                      HD Webcam at usb-0000:00:14.0-1, high speed\n"
    )
    assert (rack.proc / "card2" / "id").read_text() == "Webcam\n"
    assert str((rack.proc / "Webcam").readlink()) == "card2"
    assert sorted(path.name for path in rack.proc.glob("card*/pcm*")) == [
        "pcm0c",
        "pcm0c",
        "pcm0p",
    ]
    assert "stream: CAPTURE\n" in (rack.proc / "card2" / "pcm0c" / "info").read_text()
    assert sorted(path.name for path in rack.dev_snd.iterdir()) == [
        "controlC0",
        "controlC2",
        "pcmC0D0c",
        "pcmC0D0p",
        "pcmC2D0c",
    ]


def test_an_unplugged_card_leaves_nothing_behind(rack):
    card = rack.plug(rack.card("Device", capture=Offer()))
    card.unplug()
    assert (rack.proc / "cards").read_text() == "--- no soundcards ---\n"
    assert {path.name for path in rack.proc.iterdir()} == {"cards", "pcm"}
    assert list(rack.dev_snd.iterdir()) == []


def test_a_taken_number_is_refused(rack):
    rack.plug(rack.card("One", capture=Offer()), index=4)
    with pytest.raises(ValueError, match="there already"):
        rack.plug(rack.card("Two", capture=Offer()), index=4)


def test_proc_tells_what_is_open_and_with_what_settings(rack):
    rack.plug(rack.card("Mic", capture=Offer()))
    sub = rack.proc / "card0" / "pcm0c" / "sub0"
    assert (sub / "status").read_text() == "closed\n"
    pcm = open_pcm()
    assert (sub / "status").read_text().startswith("state: PREPARED\n")
    assert (sub / "hw_params").read_text() == (
        "access: RW_INTERLEAVED\nformat: S16_LE\nsubformat: STD\nchannels: 1\n"
        "rate: 16000 (16000/1)\nperiod_size: 160\nbuffer_size: 640\n"
    )
    pcm.read()
    assert (sub / "status").read_text().startswith("state: RUNNING\n")
    pcm.close()
    assert (sub / "status").read_text() == "closed\n"
    assert (sub / "hw_params").read_text() == "closed\n"


def test_a_state_that_was_written_for_another_layout_is_refused(rack):
    card = rack.plug(rack.card("Mic", capture=Offer()))
    card._state.size += 8
    with pytest.raises(alsaaudio.ALSAAudioError, match=os.strerror(errno.EINVAL)):
        open_pcm()


def test_the_header_is_read_with_all_its_structures():
    assert set(layout.STRUCTURES) == {
        "choice",
        "fault",
        "stream",
        "control",
        "write",
        "card",
    }
    assert layout.NUMBERS["CARD_MAGIC"] == 0x6F79657A
    assert ctypes.sizeof(layout.STRUCTURES["fault"]) == 40


def test_the_same_sources_are_compiled_once(card_library):
    before = card_library.stat().st_mtime_ns
    assert build.build() == card_library
    assert card_library.stat().st_mtime_ns == before
