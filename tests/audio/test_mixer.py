"""The mixer through the real pyalsaaudio, on test cards that tell what truly happened."""

from __future__ import annotations

import dataclasses

import pytest

from alsa.build import build, missing_tools
from alsa.card import Offer, Rack
from alsa.controls import Role, choice, db_range, db_scale, switch, volume
from oyez.audio import mixer
from oyez.errors import AudioDeviceError

DEVICE = "hw:CARD=Mic,DEV=0"


@pytest.fixture(scope="session")
def library():
    if missing := missing_tools():
        pytest.skip(missing)
    return build()


@pytest.fixture
def plugged(tmp_path, library, monkeypatch):
    """Plugs a card named Mic with these controls in, in place of the machine's own cards."""
    rack = Rack(tmp_path, library)
    monkeypatch.setenv("ALSA_CONFIG_PATH", str(rack.configuration))

    def plug(*controls):
        return rack.plug(rack.card("Mic", capture=Offer(), controls=controls))

    yield plug
    rack.close()


def sidetone():
    return volume("Mic Playback Volume", role=Role.PLAYBACK_GAIN)


def test_the_gain_is_set_in_db_and_the_sidetone_of_the_same_name_is_not_touched(plugged):
    card = plugged(volume("Mic Capture Volume"), sidetone())
    found = mixer.find(DEVICE)
    assert mixer.capture_gain_db(found) == 0
    assert mixer.set_capture_gain(found, 15) == 15
    assert card.value("Mic Capture Volume") == (21,)
    assert card.value("Mic Playback Volume") == (11,)
    assert mixer.capture_gain_db(found) == 15


def test_a_gain_between_two_steps_is_written_once_and_what_became_of_it_is_told(plugged):
    card = plugged(volume("Capture Volume"))
    granted = mixer.set_capture_gain(mixer.find(DEVICE), 10.0)
    assert granted in (9.0, 10.5)
    assert card.write_count("Capture Volume") == 1


def test_every_value_of_the_offered_range_can_be_set_exactly(plugged):
    plugged(volume("Capture Volume"))
    found = mixer.find(DEVICE)
    hardware = found.hardware
    assert hardware is not None
    for step in range(32):
        wanted = hardware.at_most(hardware.lowest_db + step * hardware.step_db + 0.2)
        assert mixer.set_capture_gain(found, wanted) == pytest.approx(wanted, abs=0.01)


def test_a_gain_out_of_range_is_the_nearest_that_there_is(plugged):
    plugged(volume("Capture Volume"))
    found = mixer.find(DEVICE)
    assert mixer.set_capture_gain(found, 99) == 30
    assert mixer.set_capture_gain(found, -99) == -16.5


def test_both_channels_are_set_and_an_uneven_pair_counts_as_its_softer_half(plugged):
    card = plugged(volume("Capture Volume", channels=2))
    card.turn("Capture Volume", 11, 1)
    found = mixer.find(DEVICE)
    assert mixer.capture_gain_db(found) == -15
    mixer.set_capture_gain(found, 3)
    assert card.value("Capture Volume") == (13, 13)


def test_the_channels_of_a_card_with_a_control_for_each_are_set_together(plugged):
    card = plugged(volume("ADC1 PGA gain"), volume("ADC2 PGA gain"))
    found = mixer.find(DEVICE)
    # alsa-lib knows no dB of a control whose name does not end in Volume.
    assert mixer.set_capture_gain(found, 15) == pytest.approx(15, abs=0.5)
    assert card.value("ADC1 PGA gain") == card.value("ADC2 PGA gain") == (16,)


@pytest.mark.parametrize(
    "tlv", [(), db_range(0, 0), db_range(-9_999_900, 0), db_range(0, 31)], ids=str
)
def test_a_control_whose_db_are_missing_or_nonsense_is_set_in_its_own_steps(plugged, tlv):
    card = plugged(volume("Mic Capture Volume", tlv=tlv))
    found = mixer.find(DEVICE)
    hardware = found.hardware
    assert hardware is not None
    assert not hardware.exact
    assert "without dB" in str(found)
    assert mixer.set_capture_gain(found, hardware.highest_db) == pytest.approx(30)
    assert card.value("Mic Capture Volume") == (31,)
    mixer.set_capture_gain(found, hardware.lowest_db)
    assert card.value("Mic Capture Volume") == (4,)


def test_every_step_of_a_control_without_db_can_be_reached_and_is_read_back_as_set(plugged):
    card = plugged(volume("Mic Capture Volume", tlv=()))
    found = mixer.find(DEVICE)
    hardware = found.hardware
    assert hardware is not None
    for value in range(4, 32):
        wanted = hardware.at_most(value * hardware.step_db)
        assert mixer.set_capture_gain(found, wanted) == pytest.approx(wanted)
        assert card.value("Mic Capture Volume") == (value,)


def test_a_lowest_value_that_mutes_is_never_set(plugged):
    card = plugged(volume("Capture Volume", tlv=db_scale(-1650, 150, mutes=True)))
    found = mixer.find(DEVICE)
    assert found.hardware is not None
    assert found.hardware.exact
    assert mixer.set_capture_gain(found, -99) == -15
    assert card.value("Capture Volume") == (1,)


def test_a_gain_that_somebody_else_changed_is_read_anew(plugged):
    card = plugged(volume("Capture Volume"))
    found = mixer.find(DEVICE)
    card.turn("Capture Volume", 31)
    assert mixer.capture_gain_db(found) == 30


def test_the_capture_switch_is_turned_on_and_that_is_told_once(plugged):
    card = plugged(volume("Capture Volume"), switch("Capture Switch", on=False, channels=2))
    found = mixer.find(DEVICE)
    [said] = mixer.switch_on(found)
    assert said == "the capture switch of 'Capture',0 was off"
    assert card.value("Capture Switch") == (1, 1)
    assert mixer.switch_on(found) == ()


@pytest.mark.parametrize(
    ("control", "off"),
    [
        (switch("Auto Gain Control", role=Role.NONE), 0),
        (switch("AGC Capture Switch", role=Role.NONE), 0),
        (switch("AGC Playback Switch", role=Role.NONE), 0),
        (choice("ALC Function", ("Stereo", "Off", "Left"), value=2), 1),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_the_cards_own_automatic_gain_is_turned_off_and_that_is_told(plugged, control, off):
    card = plugged(volume("Mic Capture Volume"), control)
    found = mixer.find(DEVICE)
    [said] = mixer.turn_agc_off(found)
    assert "was on" in said
    assert card.value(control.name) == (off,)
    assert mixer.turn_agc_off(found) == ()


def test_looking_changes_nothing(plugged):
    card = plugged(
        volume("Mic Capture Volume"),
        switch("Mic Capture Switch", on=False),
        switch("Auto Gain Control", role=Role.NONE),
        sidetone(),
    )
    found = mixer.find(DEVICE)
    mixer.capture_gain_db(found)
    assert [one.name for one in found.capture] == ["Mic"]
    assert card.writes() == []


def test_the_speakers_volume_is_set_and_its_switch_turned_on(plugged):
    card = plugged(
        volume("Mic Capture Volume"),
        volume("Speaker Playback Volume", role=Role.PLAYBACK_GAIN),
        switch("Speaker Playback Switch", role=Role.PLAYBACK_SWITCH, on=False),
    )
    assert mixer.set_playback_volume(mixer.find(DEVICE), -6) == -6
    assert card.value("Speaker Playback Volume") == (7,)
    assert card.value("Speaker Playback Switch") == (1,)
    assert card.writes("Mic Capture Volume") == []


def test_a_speaker_without_a_volume_is_refused_with_what_to_do(plugged):
    plugged(volume("Mic Capture Volume"), sidetone())
    with pytest.raises(AudioDeviceError, match=r"voice\.volume_db"):
        mixer.set_playback_volume(mixer.find(DEVICE), 0)


def test_a_card_without_controls_is_left_to_software(plugged):
    plugged()
    found = mixer.find(DEVICE)
    assert found.hardware is None
    assert mixer.capture_gain_db(found) is None
    assert mixer.switch_on(found) == mixer.turn_agc_off(found) == ()
    with pytest.raises(AudioDeviceError, match="no control"):
        mixer.set_capture_gain(found, 0)


def test_a_card_that_is_not_there_has_nothing(plugged):
    assert mixer.find("hw:CARD=Nobody,DEV=0") == mixer.Found(device="hw:CARD=Nobody")


def test_a_card_that_was_pulled_out_is_an_error_with_its_name(plugged):
    card = plugged(volume("Capture Volume"))
    found = mixer.find(DEVICE)
    card.unplug()
    with pytest.raises(AudioDeviceError, match="hw:CARD=Mic"):
        mixer.set_capture_gain(found, 0)
    with pytest.raises(AudioDeviceError, match="hw:CARD=Mic"):
        mixer.capture_gain_db(found)


def test_controls_of_the_same_name_are_told_apart_by_their_index(plugged):

    second = dataclasses.replace(volume("Capture Volume", value=3), index=1)
    plugged(volume("Capture Volume"), second)
    labels = [knob.label for knob in mixer.knobs("hw:CARD=Mic")]
    assert labels == ["'Capture',0", "'Capture',1"]
    assert mixer.find(DEVICE).capture[0].index == 0
