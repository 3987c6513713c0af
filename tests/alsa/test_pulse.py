"""PulseAudio as a sound card: what is real there, and what is not."""

from __future__ import annotations

import errno
import os
import select

import alsaaudio
import numpy as np
import pytest

from alsa.program import open_pcm, open_speaker, read_frames, wait_for
from alsa.pulse import Pulse, missing_server


def read_for_ever(pcm):
    while True:
        wait_for(pcm, select.POLLIN | select.POLLERR)
        pcm.read()


def test_the_microphone_hears_the_speaker(pulse):
    microphone = open_pcm("default", periods=20)
    speaker = open_speaker("default", periods=20)
    read_frames(microphone, 160)
    tone = (np.sin(np.arange(160) * 2 * np.pi / 16) * 16000).astype(np.int16)
    loudest = []
    # It takes a few periods to get there, and a busy machine tears holes into it.
    while loudest.count(10) < 10:
        wait_for(speaker, select.POLLOUT)
        speaker.write(tone)
        heard = np.frombuffer(read_frames(microphone, 160), "<i2")[:160]
        loudest.append(int(np.argmax(np.abs(np.fft.rfft(heard)))))
        assert len(loudest) < 2000
    speaker.close()
    microphone.close()


def test_the_names_of_cards_lead_to_it_and_it_grants_what_is_asked(pulse):
    for device in ("hw:0,0", "hw:CARD=Any,DEV=0", "plughw:0", "default"):
        pcm = open_pcm(device, rate=16000)
        info = pcm.info()
        pcm.close()
        assert (info["rate"], info["channels"], info["period_size"]) == (16000, 1, 160)


def test_its_mixer_has_two_controls(pulse):
    assert alsaaudio.mixers(device="hw:0") == ["Master", "Capture"]
    capture = alsaaudio.Mixer("Capture", device="hw:0")
    capture.setvolume(32768, alsaaudio.MIXER_CHANNEL_ALL, 1, alsaaudio.VOLUME_UNITS_RAW)
    assert set(capture.getvolume(1, alsaaudio.VOLUME_UNITS_RAW)) == {32768}
    capture.setvolume(65536, alsaaudio.MIXER_CHANNEL_ALL, 1, alsaaudio.VOLUME_UNITS_RAW)
    capture.close()


def test_when_the_server_dies_reads_fail_and_it_can_be_started_again(tmp_path, monkeypatch):
    reason = missing_server()
    if reason:
        pytest.skip(reason)
    with Pulse(tmp_path / "p") as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        pcm = open_pcm("hw:0")
        pcm.read()
        server.kill()
        with pytest.raises(alsaaudio.ALSAAudioError, match=os.strerror(errno.EIO)):
            read_for_ever(pcm)
        pcm.close()
        with pytest.raises(alsaaudio.ALSAAudioError, match=os.strerror(errno.ECONNREFUSED)):
            open_pcm("hw:0")
