"""The test card's mixer, through the real pyalsaaudio."""

from __future__ import annotations

import errno
import os
import select
import threading

import alsaaudio
import numpy as np
import pytest

from alsa.card import Offer
from alsa.controls import Role, choice, db_range, db_scale, switch, volume
from alsa.program import open_pcm, open_speaker, read_frames

DEVICE = "hw:CARD=Mix"
PLAYBACK, CAPTURE = alsaaudio.PCM_PLAYBACK, alsaaudio.PCM_CAPTURE
ALL = alsaaudio.MIXER_CHANNEL_ALL
RAW, DB, PERCENT = (
    alsaaudio.VOLUME_UNITS_RAW,
    alsaaudio.VOLUME_UNITS_DB,
    alsaaudio.VOLUME_UNITS_PERCENTAGE,
)


def plug(rack, *controls, capture=None, playback=None):
    capture = capture or Offer(channels=(2,))
    return rack.plug(rack.card("Mix", capture=capture, playback=playback, controls=controls))


def mixer(name):
    return alsaaudio.Mixer(name, device=DEVICE)


def heard(card, frames=400):
    card.speed = 20
    pcm = open_pcm(DEVICE, channels=2, periods=800)
    sound = np.frombuffer(read_frames(pcm, frames), "<i2").reshape(-1, 2)
    pcm.close()
    return sound


def test_controls_carry_the_names_ranges_and_abilities_that_they_were_given(rack):
    plug(
        rack,
        volume("Mic Capture Volume", channels=2, maximum=63, value=16),
        switch("Mic Capture Switch"),
        volume("Mic Playback Volume", role=Role.NONE, value=5),
        volume("Speaker Playback Volume", role=Role.NONE, channels=2, tlv=db_range(-2837, 0)),
        volume("Internal Mic Boost Volume", role=Role.NONE, maximum=3, value=0),
        choice("AGC Mode", ("Off", "On")),
    )
    assert sorted(alsaaudio.mixers(device=DEVICE)) == [
        "AGC Mode",
        "Internal Mic Boost",
        "Mic",
        "Speaker",
    ]
    mic = mixer("Mic")
    assert mic.volumecap() == ["Playback Volume", "Joined Playback Volume", "Capture Volume"]
    assert mic.switchcap() == ["Capture Mute", "Joined Capture Mute"]
    assert mic.getvolume(CAPTURE, RAW) == [16, 16]
    assert mic.getrange(CAPTURE, RAW) == [0, 63]
    assert mic.getrange(CAPTURE, DB) == [-1650, 7800]
    assert mixer("Speaker").getrange(PLAYBACK, DB) == [-2837, 0]
    assert mixer("Internal Mic Boost").volumecap() == ["Volume", "Joined Volume"]
    assert mixer("AGC Mode").getenum() == ("Off", ["Off", "On"])


def test_a_capture_volume_truly_amplifies_in_decibels_and_clips_at_full_scale(rack):
    card = plug(rack, volume("Mic Capture Volume"))
    card.play(np.tile(np.array([1000, -1000, 9000, -9000], np.int16), 50_000), rate=16000)
    mic = mixer("Mic")
    mic.setvolume(1200, ALL, CAPTURE, DB)
    assert card.value("Mic Capture Volume") == (19,)
    gain = 10 ** (12 / 20)
    left = heard(card)[:, 0]
    assert left[0] == round(1000 * gain)
    assert left.max() == 32767
    assert left.min() == -32768


def test_gains_add_and_each_channel_has_its_own(rack):
    card = plug(
        rack,
        volume("Capture Volume", channels=2),
        volume("Mic Boost Volume", maximum=3, value=0, minimum_cdb=0, step_cdb=1000),
    )
    card.play(np.full((200_000, 2), 100, np.int16), rate=16000)
    mixer("Capture").setvolume(15, 1, CAPTURE, RAW)
    mixer("Mic Boost").setvolume(1, ALL, CAPTURE, RAW)
    assert heard(card)[0].tolist() == [round(100 * 10**0.5), round(100 * 10**0.8)]


def test_a_capture_switch_truly_mutes(rack):
    card = plug(rack, switch("Mic Capture Switch"))
    card.play(np.full(200_000, 100, np.int16), rate=16000)
    assert heard(card).all()
    mixer("Mic").setrec(0)
    assert not heard(card).any()


def test_a_playback_volume_is_heard_in_the_recording_and_not_in_the_microphone(rack):
    card = plug(
        rack,
        volume("Speaker Playback Volume", role=Role.PLAYBACK_GAIN, value=7),
        volume("Mic Playback Volume", role=Role.NONE, value=0),
        playback=Offer(),
    )
    card.speed = 20
    pcm = open_speaker(DEVICE, blocks=True)
    pcm.write(np.full(160, 10000, np.int16))
    pcm.close()
    [(_, played)] = card.recordings()
    assert set(played[:, 0]) == {round(10000 * 10 ** (-6 / 20))}


def test_writes_are_counted_and_it_is_known_who_wrote_what(rack):
    card = plug(rack, volume("Mic Capture Volume", channels=2), switch("Line Capture Switch"))
    mic = mixer("Mic")
    mic.setvolume(20, ALL, CAPTURE, RAW)
    mixer("Line").setrec(0)
    writes = card.writes()
    # A control with two channels is written once for each of them.
    assert [(write.control, write.values) for write in writes] == [
        ("Mic Capture Volume", (20, 11)),
        ("Mic Capture Volume", (20, 20)),
        ("Line Capture Switch", (0,)),
    ]
    assert {write.thread for write in writes} == {threading.get_native_id()}
    assert card.write_count("Mic Capture Volume") == 2
    mic.setvolume(20, ALL, CAPTURE, RAW)
    assert card.write_count("Mic Capture Volume") == 2


def test_without_a_direction_a_volume_of_both_directions_is_the_playback_one(rack):
    card = plug(
        rack, volume("Mic Capture Volume"), volume("Mic Playback Volume", role=Role.NONE, value=5)
    )
    mixer("Mic").setvolume(50)
    assert card.value("Mic Capture Volume") == (11,)
    assert card.value("Mic Playback Volume") == (16,)


def test_a_raw_value_out_of_range_is_dropped_without_a_word(rack):
    card = plug(rack, volume("Mic Capture Volume"))
    mixer("Mic").setvolume(500, ALL, CAPTURE, RAW)
    assert card.value("Mic Capture Volume") == (11,)
    assert card.write_count("Mic Capture Volume") == 0


@pytest.mark.parametrize(
    ("wish_cdb", "value"), [(600, 15), (660, 15), (690, 16), (99_999, 31), (-99_999, 0)]
)
def test_decibels_are_rounded_to_the_nearest_step_and_held_within_the_range(rack, wish_cdb, value):
    card = plug(rack, volume("Mic Capture Volume"))
    mixer("Mic").setvolume(wish_cdb, ALL, CAPTURE, DB)
    assert card.value("Mic Capture Volume") == (value,)


@pytest.mark.parametrize("tlv", [(), (77, 4096, 1, 2), (1,)])
def test_a_control_without_usable_decibels_ignores_them_without_a_word(rack, tlv):
    card = plug(rack, volume("Mic Capture Volume", tlv=tlv))
    mic = mixer("Mic")
    mic.setvolume(600, ALL, CAPTURE, DB)
    assert card.value("Mic Capture Volume") == (11,)
    assert card.write_count("Mic Capture Volume") == 0
    mic.setvolume(20, ALL, CAPTURE, RAW)
    assert card.value("Mic Capture Volume") == (20,)


def test_a_scale_without_steps_jumps_to_its_end(rack):
    card = plug(rack, volume("Mic Capture Volume", tlv=db_scale(0, 0)))
    mic = mixer("Mic")
    assert mic.getrange(CAPTURE, DB) == [0, 0]
    mic.setvolume(600, ALL, CAPTURE, DB)
    assert card.value("Mic Capture Volume") == (31,)


def test_an_automatic_gain_is_a_choice_or_a_switch_of_the_playback_side(rack):
    card = plug(
        rack,
        choice("AGC Mode", ("Off", "On"), value=1),
        switch("Auto Gain Control", role=Role.NONE),
    )
    agc = mixer("AGC Mode")
    agc.setenum(0)
    assert card.value("AGC Mode") == (0,)
    with pytest.raises(alsaaudio.ALSAAudioError, match="out of range"):
        agc.setenum(2)
    automatic = mixer("Auto Gain Control")
    assert automatic.switchcap() == ["Playback Mute", "Joined Playback Mute"]
    automatic.setmute(1)
    assert card.value("Auto Gain Control") == (0,)


def test_a_change_from_outside_wakes_and_is_read_after_its_events_were_handled(rack):
    card = plug(rack, volume("Mic Capture Volume"), switch("Mic Capture Switch"))
    mic = mixer("Mic")
    poller = select.poll()
    for descriptor, events in mic.polldescriptors():
        poller.register(descriptor, events)
    assert poller.poll(0) == []
    card.turn("Mic Capture Volume", 20)
    card.turn("Mic Capture Switch", 0)
    assert poller.poll(10_000)
    assert mic.getrec() == [1]
    assert mic.handleevents() > 0
    assert mic.getrec() == [0]
    assert mic.getvolume(CAPTURE, RAW) == [20]
    assert poller.poll(0) == []


def test_one_program_hears_of_what_another_one_wrote(rack):
    plug(rack, volume("Mic Capture Volume"))
    one, other = mixer("Mic"), mixer("Mic")
    one.setvolume(3, ALL, CAPTURE, RAW)
    assert other.getvolume(CAPTURE, RAW) == [3]


def test_an_unplugged_mixer_goes_on_with_what_it_remembers_until_events_are_handled(rack):
    card = plug(rack, volume("Mic Capture Volume"))
    mic = mixer("Mic")
    poller = select.poll()
    for descriptor, events in mic.polldescriptors():
        poller.register(descriptor, events)
    card.unplug()
    assert poller.poll(10_000)
    assert mic.getvolume(CAPTURE, RAW) == [11]
    mic.setvolume(3, ALL, CAPTURE, RAW)
    assert card.value("Mic Capture Volume") == (11,)
    with pytest.raises(alsaaudio.ALSAAudioError, match=os.strerror(errno.ENODEV)):
        mic.handleevents()
    with pytest.raises(alsaaudio.ALSAAudioError, match=os.strerror(errno.ENOENT)):
        alsaaudio.Mixer("Mic", device="hw:0")
    with pytest.raises(alsaaudio.ALSAAudioError, match=os.strerror(errno.ENODEV)):
        mixer("Mic")


@pytest.mark.parametrize("device", ["hw:CARD=Mix", "hw:0", "default", "default:CARD=Mix"])
def test_a_mixer_is_named_without_the_device(rack, device):
    plug(rack, volume("Mic Capture Volume"))
    assert alsaaudio.mixers(device=device) == ["Mic"]


@pytest.mark.parametrize("device", ["hw:CARD=Mix,DEV=0", "hw:0,0", "plughw:CARD=Mix"])
def test_the_name_of_a_pcm_is_none_of_a_mixer(rack, device):
    plug(rack, volume("Mic Capture Volume"))
    with pytest.raises(alsaaudio.ALSAAudioError, match=os.strerror(errno.ENOENT)):
        alsaaudio.mixers(device=device)


def test_a_card_without_controls_has_no_mixers(rack):
    plug(rack)
    assert alsaaudio.mixers(device=DEVICE) == []
