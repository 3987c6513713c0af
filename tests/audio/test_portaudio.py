"""Sound cards through PortAudio, on ALSA's null device (see also tests/contracts)."""

from __future__ import annotations

import pytest

from oyez.audio.pcm import SampleFormat
from oyez.audio.portaudio import PortAudioCapture, PortAudioPlayback, has_microphone
from oyez.errors import AudioDeviceError

pytestmark = pytest.mark.usefixtures("null_card")


def test_a_device_that_can_be_listened_to_is_a_microphone():
    assert has_microphone()


@pytest.mark.parametrize("device", ["auto", "oyez_null", "yez_nul"])
def test_a_device_is_the_default_or_found_by_a_part_of_its_name(device):
    capture = PortAudioCapture(device, 20)
    playback = PortAudioPlayback(device, 20)
    expected = "default" if device == "auto" else "oyez_null"
    assert capture.description == playback.description == expected
    capture.close()
    playback.close()


def test_no_more_than_two_channels_are_asked_for():
    capture = PortAudioCapture("oyez_null", 20)  # it would give 128
    assert capture.stream.channels == 2
    assert capture.stream.sample_format is SampleFormat.S16
    capture.close()


@pytest.mark.parametrize(
    ("make", "what"), [(PortAudioCapture, "microphone"), (PortAudioPlayback, "speaker")]
)
def test_a_device_that_is_not_there_is_refused_by_its_name(make, what):
    with pytest.raises(AudioDeviceError, match=f"the {what} Nowhere cannot be used") as caught:
        make("Nowhere", 20)
    assert "plugged in" in caught.value.remedy


def test_a_microphone_that_was_closed_is_an_error_of_ours():
    capture = PortAudioCapture("oyez_null", 20)
    capture.close()
    with pytest.raises(AudioDeviceError, match="the microphone oyez_null"):
        capture.read()
