"""Which controls are chosen, on the control lists of cards that people own."""

from __future__ import annotations

import pytest

from oyez.audio.mixer import Knob, Volume, choose, mixer_name, volume


def db(lowest, highest, steps):
    return Volume(lowest=0, highest=steps, lowest_db=lowest, highest_db=highest)


RAW = Volume(lowest=0, highest=15)
BOOST = db(0, 30, 3)


def knob(name, index=0, **what):
    return Knob(name=name, index=index, **what)


def mic(name, scale, index=0, **what):
    return knob(name, index, capture=scale, capture_switch=True, **what)


def out(name, scale, index=0, **what):
    return knob(name, index, playback=scale, playback_switch=True, **what)


USB_PNP = [
    out("Speaker", db(-28.37, -0.06, 37)),
    # The playback half of this one is the sidetone: it plays the microphone into the headphones.
    mic("Mic", db(-12, 23, 35), playback=db(-30, 6, 31), playback_switch=True),
    knob("Auto Gain Control", playback_switch=True),
]
HDA = [
    out("Master", db(-65.25, 0, 87)),
    out("Headphone", db(-65.25, 0, 87)),
    out("Speaker", db(-65.25, 0, 87)),
    out("PCM", db(-51, 0, 255)),
    out("Mic", db(-34.5, 12, 31)),
    knob("Mic Boost", capture=BOOST, playback=BOOST, undirected=True),
    out("Beep", db(-28, 0, 7)),
    mic("Capture", db(-17.25, 30, 63)),
    mic("Capture", db(-17.25, 30, 63), index=1),
    knob("Auto-Mute Mode", items=("Disabled", "Enabled")),
    knob("Digital", capture=db(-30, 30, 120)),
    knob("Input Source", items=("Mic", "Internal Mic", "Line")),
    knob("Internal Mic Boost", capture=BOOST, playback=BOOST, undirected=True),
    knob("Loopback Mixing", items=("Enabled", "Disabled")),
]
WM8960 = [
    out("Headphone", db(-73, 6, 127)),
    out("Speaker", db(-73, 6, 127)),
    knob("Speaker AC", playback=RAW, capture=RAW, undirected=True),
    knob("PCM Playback -6dB", playback_switch=True),
    knob("Mono Output Mixer Left", playback_switch=True),
    out("Playback", db(-97, 30, 255)),
    mic("Capture", db(-17.25, 30, 63)),
    knob("3D", capture=RAW, playback=RAW, undirected=True),
    knob("ADC PCM", capture=db(-97, 30, 255)),
    knob("ADC Data Output Select", items=("Left Data = Left ADC", "Left Data = Right ADC")),
    knob("ADC High Pass Filter", playback_switch=True),
    knob("ALC Attack", capture=RAW, playback=RAW, undirected=True),
    knob("ALC Function", items=("Off", "Right", "Left", "Stereo")),
    knob("ALC Max Gain", capture=RAW, playback=RAW, undirected=True),
    knob("ALC Mode", items=("ALC", "Limiter")),
    knob("Left Boost Mixer LINPUT1", playback_switch=True),
    knob("Left Input Boost Mixer LINPUT1", capture=BOOST, playback=BOOST, undirected=True),
    knob("Noise Gate", playback_switch=True),
]
# alsa-lib knows no dB of a control whose name does not end in Volume.
AC108 = [
    knob("ADC1 PGA gain", capture=RAW, playback=RAW, undirected=True),
    knob("ADC2 PGA gain", capture=RAW, playback=RAW, undirected=True),
    knob("ADC3 PGA gain", capture=RAW, playback=RAW, undirected=True),
    knob("ADC4 PGA gain", capture=RAW, playback=RAW, undirected=True),
    knob("CH1 digital volume", capture=RAW, playback=RAW, undirected=True),
    knob("CH2 digital volume", capture=RAW, playback=RAW, undirected=True),
]
RESPEAKER_USB = [out("PCM", db(-45, 0, 90)), out("Headset", db(-45, 0, 90)), mic("Headset", RAW, 1)]
JABRA = [
    out("PCM", db(-17, 0, 11)),
    mic("Headset", db(-12, 12, 24)),
    out("Sidetone", db(-30, 0, 30)),
]
SPEAKERPHONE_WITH_SIDETONE_GAIN = [
    knob("Sidetone Mic", capture=db(-30, 0, 30), capture_switch=True),
    knob("Mic", capture=db(0, 12, 12), capture_switch=True),
]
WEBCAM = [mic("Mic", db(20, 50, 30))]
WM8731 = [
    out("Master", db(-73, 6, 127)),
    knob("Capture", capture=db(-34.5, 12, 31)),
    knob("Line", capture_switch=True),
    knob("Mic", capture_switch=True),
    knob("Mic Boost", capture=db(0, 20, 1), playback=db(0, 20, 1), undirected=True),
    knob("Input Mux", items=("Line In", "Mic")),
]
LINE_ONLY = [out("PCM", db(-128, 0, 128)), mic("Line", db(-12, 12, 24))]
LAPTOP_WITH_SELECTION = [
    out("Master", RAW),
    mic("Line", RAW, selects=True),
    mic("CD", RAW, selects=True),
    mic("Mic", RAW, selects=True),
    mic("Capture", db(0, 22.5, 15)),
]
BOOST_ALONE = [
    out("Master", RAW),
    knob("Internal Mic Boost", capture=BOOST, playback=BOOST, undirected=True),
]
PULSE = [
    out("Master", Volume(lowest=0, highest=65536)),
    mic("Capture", Volume(lowest=0, highest=65536)),
]
BROADCOM = [out("Headphone", db(-102.39, 4, 65536))]
GAIN_ENUM_AND_AGC = [mic("Capture", RAW), knob("AGC", capture_switch=True)]
STEREO_INTERFACE = [
    knob("Mic 1", capture=db(0, 60, 60)),
    knob("Mic 2", capture=db(0, 60, 60)),
    knob("Line 3", capture=db(0, 20, 20)),
    out("Monitor", db(-60, 0, 60)),
    out("Main Output", db(-60, 0, 60)),
]


@pytest.mark.parametrize(
    ("knobs", "capture", "switches", "agc", "playback"),
    [
        pytest.param(
            USB_PNP, ["Mic,0"], ["Mic,0"], ["Auto Gain Control,0"], "Speaker,0", id="USB PnP, CM108"
        ),
        pytest.param(HDA, ["Capture,0"], ["Capture,0", "Capture,1"], [], "Master,0", id="PCH, HDA"),
        pytest.param(
            WM8960, ["Capture,0"], ["Capture,0"], ["ALC Function,0"], "Speaker,0", id="WM8960"
        ),
        pytest.param(
            AC108, [f"ADC{n} PGA gain,0" for n in (1, 2, 3, 4)], [], [], None, id="seeed 4 mics"
        ),
        pytest.param(
            RESPEAKER_USB, ["Headset,1"], ["Headset,1"], [], "Headset,0", id="ReSpeaker USB"
        ),
        pytest.param(JABRA, ["Headset,0"], ["Headset,0"], [], "PCM,0", id="USB speakerphone"),
        pytest.param(
            SPEAKERPHONE_WITH_SIDETONE_GAIN, ["Mic,0"], ["Mic,0"], [], None, id="sidetone gain"
        ),
        pytest.param(WEBCAM, ["Mic,0"], ["Mic,0"], [], None, id="webcam"),
        pytest.param(WM8731, ["Capture,0"], ["Mic,0"], [], "Master,0", id="WM8731"),
        pytest.param(LINE_ONLY, ["Line,0"], ["Line,0"], [], "PCM,0", id="line input alone"),
        pytest.param(
            LAPTOP_WITH_SELECTION,
            ["Capture,0"],
            ["Capture,0"],
            [],
            "Master,0",
            id="exclusive inputs",
        ),
        pytest.param(BOOST_ALONE, ["Internal Mic Boost,0"], [], [], "Master,0", id="boost alone"),
        pytest.param(PULSE, ["Capture,0"], ["Capture,0"], [], "Master,0", id="PulseAudio"),
        pytest.param(BROADCOM, [], [], [], "Headphone,0", id="bcm2835, no microphone"),
        pytest.param([], [], [], [], None, id="I2S without controls"),
        pytest.param(
            GAIN_ENUM_AND_AGC, ["Capture,0"], ["Capture,0"], ["AGC,0"], None, id="AGC switch"
        ),
        pytest.param(
            STEREO_INTERFACE, ["Mic 1,0", "Mic 2,0"], [], [], "Main Output,0", id="interface"
        ),
    ],
)
def test_the_right_controls_are_chosen(knobs, capture, switches, agc, playback):
    found = choose("hw:CARD=X", knobs)
    assert [f"{one.name},{one.index}" for one in found.capture] == capture
    assert [f"{one.name},{one.index}" for one in found.switches] == switches
    assert [f"{one.name},{one.index}" for one in found.agc] == agc
    assert (found.playback and f"{found.playback.name},{found.playback.index}") == playback


@pytest.mark.parametrize("name", ["Sidetone", "Mic Monitor", "Loopback", "Echo Reference", "Beep"])
def test_what_plays_the_microphone_back_is_never_its_gain(name):
    assert choose("hw:CARD=X", [mic(name, db(0, 20, 20))]).capture == ()


def test_true_db_are_preferred_to_bare_numbers_among_equals():
    found = choose("hw:CARD=X", [mic("Front Mic", RAW), mic("Rear Mic", db(0, 30, 30))])
    assert [one.name for one in found.capture] == ["Rear Mic"]


def test_the_description_says_what_was_found():
    said = str(choose("hw:CARD=Device", USB_PNP))
    assert "'Mic',0" in said
    assert "-12 to 23 dB in steps of 1 dB" in said
    assert "'Auto Gain Control',0" in said
    assert "'Speaker',0" in said


def test_a_card_without_a_control_is_said_to_be_left_to_software():
    found = choose("hw:CARD=I2S", [])
    assert "left to software" in str(found)
    assert found.hardware is None


def test_a_control_with_db_is_offered_in_its_own_steps():
    hardware = choose("hw:CARD=X", HDA).hardware
    assert hardware is not None
    assert (hardware.lowest_db, hardware.highest_db, hardware.step_db) == (-17.25, 30, 0.75)
    assert hardware.exact


def test_a_control_that_goes_down_to_silence_is_used_from_minus_30_db_on():
    hardware = choose("hw:CARD=X", [mic("Capture", db(-97, 30, 254))]).hardware
    assert hardware is not None
    assert hardware.lowest_db == -30


def test_a_control_without_db_is_a_guess_and_never_turned_all_the_way_down():
    hardware = choose("hw:CARD=X", PULSE).hardware
    assert hardware is not None
    assert not hardware.exact
    assert hardware.lowest_db == pytest.approx(3, abs=0.01)
    assert hardware.highest_db == pytest.approx(30)


# -- what the driver says of a control -------------------------------------------------------------


@pytest.mark.parametrize(
    ("range_cdb", "value_cdb"),
    [
        ([0, 0], 0),  # PulseAudio
        ([-9999900, 0], -6451549),  # a driver's table with a wrong unit
        ([-99999, -99999], -99999),
        ([1650552929, 745760105], 140363154688905),  # memory that nobody wrote to
        ([1380008762, 23907], 140363154688905),
        ([0, 23], 8),  # a device that speaks of hundredths as of wholes
        ([3000, -1650], 0),
        ([-1650, 3000], 140363154688905),
        ([-1650, 3000], 4000),
    ],
)
def test_db_that_cannot_be_true_are_not_believed(range_cdb, value_cdb):
    assert volume([0, 31], range_cdb, 11, value_cdb) == Volume(lowest=0, highest=31)


def test_db_that_make_sense_are_believed():
    expected = Volume(lowest=0, highest=31, lowest_db=-16.5, highest_db=30)
    assert volume([0, 31], [-1650, 3000], 11, 0) == expected


def test_a_control_whose_lowest_value_mutes_is_used_from_the_next_one_on():
    expected = Volume(lowest=1, highest=31, lowest_db=-15, highest_db=30)
    assert volume([0, 31], [-9999999, 3000], 11, 0) == expected


@pytest.mark.parametrize(("value", "value_cdb"), [(0, -9999999), (31, 3000)])
def test_a_muting_control_at_its_end_tells_nothing_of_its_steps(value, value_cdb):
    assert volume([0, 31], [-9999999, 3000], value, value_cdb) == Volume(lowest=0, highest=31)


def test_a_control_that_cannot_move_is_none():
    assert volume([5, 5], [0, 0], 5, 0) is None


@pytest.mark.parametrize(
    ("device", "mixer"),
    [
        ("hw:CARD=Device,DEV=0", "hw:CARD=Device"),
        ("plughw:CARD=Device,DEV=1", "hw:CARD=Device"),
        ("hw:Device", "hw:CARD=Device"),
        ("hw:1,0", "hw:1"),
        ("default", "default"),
        ("pulse", "pulse"),
        ("sysdefault:CARD=PCH", "sysdefault:CARD=PCH"),
    ],
)
def test_the_mixer_of_a_device_is_that_of_its_card(device, mixer):
    assert mixer_name(device) == mixer
