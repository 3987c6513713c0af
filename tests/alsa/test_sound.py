"""The test card's microphone and speaker, through the real pyalsaaudio."""

from __future__ import annotations

import errno
import select
import time

import alsaaudio
import numpy as np
import pytest
import soundfile

from alsa import samples
from alsa.card import Offer, Range, as_float
from alsa.program import open_pcm, open_speaker, overrun, read_frames, state, wait_for, write_all

RANDOM = np.random.default_rng(7)
FORMATS = tuple(samples.NUMBERS)
FAST = 20.0
DEEP = 800
"""Periods of 10 ms that a buffer holds: at 20 times real time, 400 ms for a busy machine."""


def noise(format_name, frames, channels=1):
    if format_name == "FLOAT_LE":
        return RANDOM.uniform(-1, 1, (frames, channels)).astype(np.float32)
    top = 2 ** (samples.BITS[format_name] - 1)
    return RANDOM.integers(-top, top, (frames, channels), dtype=np.int32)


def ramp(frames):
    """A sound in which each sample is its own frame number."""
    return np.arange(frames, dtype=np.int32)


def microphone(rack, sound, *, format_name="S16_LE", rate=16000, **offer):
    offer.setdefault("channels", (1 if sound.ndim == 1 else sound.shape[1],))
    mic = rack.plug(rack.card("Mic", capture=Offer(formats=(format_name,), rates=(rate,), **offer)))
    mic.speed = FAST
    mic.play(sound, rate=rate, format_name=format_name)
    return mic


@pytest.mark.parametrize("blocks", [False, True])
@pytest.mark.parametrize("channels", [1, 2, 6])
@pytest.mark.parametrize("format_name", FORMATS)
def test_capture_is_bit_exact_in_every_format_and_number_of_channels(
    rack, format_name, channels, blocks
):
    sound = noise(format_name, 4000, channels)
    microphone(rack, sound, format_name=format_name)
    pcm = open_pcm(channels=channels, format_name=format_name, blocks=blocks, periods=DEEP)
    heard = read_frames(pcm, 3200)
    pcm.close()
    assert heard == samples.encode(sound, format_name)[: len(heard)]


@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("format_name", FORMATS)
def test_playback_is_bit_exact_in_every_format_and_number_of_channels(rack, format_name, channels):
    sound = noise(format_name, 1600, channels)
    card = rack.plug(rack.card("Mic", playback=Offer(formats=(format_name,), channels=(channels,))))
    card.speed = FAST
    pcm = open_speaker(channels=channels, format_name=format_name, blocks=True, periods=DEEP)
    raw = samples.encode(sound, format_name)
    assert pcm.write(raw) == 1600
    pcm.drain()
    pcm.close()
    [(rate, played)] = card.recordings()
    assert rate == 16000
    assert samples.encode(played, format_name) == raw


@pytest.mark.parametrize(
    ("subtype", "format_name"),
    [("PCM_16", "S16_LE"), ("PCM_24", "S24_3LE"), ("PCM_32", "S32_LE"), ("FLOAT", "FLOAT_LE")],
)
def test_a_sound_file_is_heard_as_it_lies_in_the_file(rack, tmp_path, subtype, format_name):
    path = tmp_path / "sound.wav"
    sound = RANDOM.uniform(-1, 1, 2000).astype(np.float32)
    soundfile.write(path, sound, 16000, subtype=subtype)
    mic = microphone(rack, np.zeros(10, np.int16), format_name=format_name)
    mic.play_file(path)
    pcm = open_pcm(format_name=format_name, periods=DEEP)
    heard = samples.decode(read_frames(pcm, 1600), format_name)
    pcm.close()
    bits = samples.BITS.get(format_name)
    expected, _ = soundfile.read(path, dtype="float64")
    found = heard.astype(np.float64) / (2.0 ** (bits - 1) if bits else 1.0)
    assert np.array_equal(found, expected[: len(found)])


def test_the_card_never_runs_ahead_of_its_clock(rack):
    mic = microphone(rack, ramp(20000), format_name="S32_LE")
    mic.drift_ppm = -500_000
    pcm = open_pcm(format_name="S32_LE", periods=DEEP)
    read_frames(pcm, 1)
    began = mic.capture.started_ns
    read_frames(pcm, 4000)
    elapsed_s = (time.monotonic_ns() - began) / 1e9
    pcm.close()
    assert mic.capture.frames <= elapsed_s * 16000 * FAST * 0.5 + 1


def test_a_source_of_another_rate_is_bridged_by_straight_lines(rack):
    mic = microphone(rack, ramp(10), format_name="S32_LE")
    mic.play(ramp(2000) * 100, rate=8000, format_name="S32_LE")
    pcm = open_pcm(format_name="S32_LE", periods=DEEP)
    heard = samples.decode(read_frames(pcm, 1600), "S32_LE")
    pcm.close()
    assert np.array_equal(heard, np.arange(len(heard)) * 50)


def test_after_its_end_a_source_is_silence_and_a_looping_one_begins_anew(rack):
    mic = microphone(rack, ramp(100) + 1, format_name="S32_LE")
    pcm = open_pcm(format_name="S32_LE", periods=DEEP)
    heard = samples.decode(read_frames(pcm, 320), "S32_LE")
    assert heard[99] == 100
    assert not heard[100:].any()
    pcm.drop()
    mic.play(ramp(100), rate=16000, format_name="S32_LE", loops=True)
    heard = samples.decode(read_frames(pcm, 320), "S32_LE")
    pcm.close()
    assert np.array_equal(heard, np.arange(len(heard)) % 100)


def test_a_source_that_is_put_on_while_recording_begins_at_its_first_frame(rack):
    mic = microphone(rack, np.zeros(10, np.int32), format_name="S32_LE")
    pcm = open_pcm(format_name="S32_LE", periods=DEEP)
    read_frames(pcm, 1000)
    mic.play(ramp(500_000) + 1, rate=16000, format_name="S32_LE")
    heard = np.zeros(1, np.int32)
    while not heard[-1]:
        heard = samples.decode(read_frames(pcm, 160), "S32_LE")
    pcm.close()
    sound = heard[heard > 0]
    assert np.array_equal(sound, np.arange(1, len(sound) + 1))


def test_channels_are_dead_or_swapped_as_the_map_says(rack):
    sound = np.stack([np.full(20000, 11), np.full(20000, 22)], axis=1).astype(np.int32)
    mic = microphone(rack, sound, channels=(6,))
    mic.map_channels((-1, 1, 0, -1, -1, 1))
    pcm = open_pcm(channels=6, periods=DEEP)
    heard = np.frombuffer(read_frames(pcm, 160), "<i2").reshape(-1, 6)
    assert (heard == [0, 22, 11, 0, 0, 22]).all()
    pcm.close()
    mic.map_channels((0, 1, -1, -1, -1, -1))
    pcm = open_pcm(channels=6, periods=DEEP)
    heard = np.frombuffer(read_frames(pcm, 160), "<i2").reshape(-1, 6)
    assert (heard == [11, 22, 0, 0, 0, 0]).all()
    pcm.close()


def test_a_mono_source_is_heard_on_every_channel(rack):
    microphone(rack, np.full(20000, 5, np.int32), channels=(3,))
    pcm = open_pcm(channels=3, periods=DEEP)
    assert (np.frombuffer(read_frames(pcm, 160), "<i2") == 5).all()
    pcm.close()


@pytest.mark.parametrize(("padding", "same"), [(0, True), (1, False), (2, False)])
def test_the_top_byte_of_24_bits_in_32_may_be_anything(rack, padding, same):
    sound = np.full(20000, -5, np.int32)
    mic = microphone(rack, sound, format_name="S24_LE")
    mic.capture.s24_padding = padding
    pcm = open_pcm(format_name="S24_LE", periods=DEEP)
    raw = read_frames(pcm, 160)
    pcm.close()
    assert (np.frombuffer(raw, "<i4") == -5).all() == same
    assert (samples.decode(raw, "S24_LE") == -5).all()


def test_a_late_reader_has_an_overrun_and_a_patient_room_repeats_what_was_not_read(rack):
    mic = microphone(rack, ramp(100_000), format_name="S32_LE")
    pcm = open_pcm(format_name="S32_LE", periods=200)
    overrun(pcm)
    taken = mic.capture.frames
    assert pcm.read() == (-errno.EPIPE, b"")
    heard = samples.decode(read_frames(pcm, 10), "S32_LE")
    pcm.close()
    assert mic.capture.xruns == 1
    assert mic.capture.frames_lost == 0
    assert heard[0] == taken


def test_a_room_that_goes_on_loses_exactly_as_many_frames_as_the_card_counts(rack):
    mic = microphone(rack, ramp(10_000_000), format_name="S32_LE")
    mic.goes_on = 1
    pcm = open_pcm(format_name="S32_LE", periods=200)
    for _ in range(5):
        overrun(pcm)
        taken = int(mic.heard)
        lost = mic.capture.frames_lost
        assert pcm.read() == (-errno.EPIPE, b"")
        heard = samples.decode(read_frames(pcm, 10), "S32_LE")
        assert heard[0] == taken + mic.capture.frames_lost - lost
        assert mic.capture.frames_lost - lost >= 32000
    pcm.close()


def test_a_room_goes_on_while_the_device_is_closed(rack):
    mic = microphone(rack, ramp(10_000_000), format_name="S32_LE")
    mic.goes_on = 1
    pcm = open_pcm(format_name="S32_LE", periods=DEEP)
    before = samples.decode(read_frames(pcm, 1600), "S32_LE")
    pcm.close()
    pcm = open_pcm(format_name="S32_LE", periods=DEEP)
    after = samples.decode(read_frames(pcm, 10), "S32_LE")
    pcm.close()
    assert mic.capture.frames_lost > 0
    assert after[0] == before[-1] + 1 + mic.capture.frames_lost


def test_an_underrun_is_counted_with_its_silence_and_what_sounded_is_kept(rack):
    card = rack.plug(rack.card("Mic", playback=Offer(formats=("S32_LE",))))
    card.speed = FAST
    pcm = open_speaker(format_name="S32_LE")
    pcm.write(ramp(320).tobytes())
    assert wait_for(pcm, select.POLLERR) == select.POLLERR | select.POLLOUT
    assert pcm.write(ramp(1).tobytes()) == -errno.EPIPE
    write_all(pcm, ramp(160).tobytes(), 4)
    while state(pcm) == "RUNNING":
        pcm.avail()
    assert card.playback.xruns == 2
    assert card.playback.frames_lost > 0
    pcm.close()
    [(_, played)] = card.recordings()
    assert played[:, 0].tolist() == [*range(320), *range(160)]


def test_what_is_dropped_before_it_sounded_is_not_in_the_recording(rack):
    card = rack.plug(rack.card("Mic", playback=Offer(formats=("S32_LE",))))
    card.playback.stall(at=320)
    pcm = open_speaker(format_name="S32_LE")
    assert pcm.write(ramp(640).tobytes()) == 640
    pcm.drop()
    pcm.close()
    [(_, played)] = card.recordings()
    assert card.playback.frames == 640
    assert card.playback.frames_unplayed >= 320
    assert played[:, 0].tolist() == list(range(640 - card.playback.frames_unplayed))


def test_a_speaker_in_blocking_mode_plays_out_before_it_closes(rack):
    card = rack.plug(rack.card("Mic", playback=Offer()))
    pcm = open_speaker(blocks=True)
    assert pcm.write(bytes(640)) == 320
    pcm.close()
    assert card.playback.frames_unplayed == 0
    assert sum(len(played) for _, played in card.recordings()) == 320


def test_two_cards_are_told_apart_by_id_and_by_number(rack):
    for name, level in (("Mic", 100), ("Other", 200)):
        card = rack.plug(rack.card(name, capture=Offer()))
        card.speed = FAST
        card.play(np.full(100_000, level, np.int16), rate=16000)
    for device, level in (
        ("hw:CARD=Mic,DEV=0", 100),
        ("hw:0,0", 100),
        ("hw:CARD=Other", 200),
        ("hw:1", 200),
        ("plughw:CARD=Other,DEV=0", 200),
        ("default", 100),
        ("sysdefault:CARD=Other", 200),
    ):
        pcm = open_pcm(device, blocks=True, periods=DEEP)
        count, sound = pcm.read()
        pcm.close()
        assert count == 160
        assert set(np.frombuffer(sound, "<i2")) == {level}, device


def test_a_card_that_is_reached_through_plug_is_converted(rack):
    card = rack.plug(
        rack.card("Mic", capture=Offer(formats=("S32_LE",), rates=(48000,), channels=(2,)))
    )
    card.play(np.full((480_000, 2), 0.25), rate=48000, format_name="S32_LE")
    card.speed = FAST
    pcm = open_pcm("plughw:CARD=Mic", blocks=True, periods=DEEP)
    heard = np.frombuffer(b"".join(pcm.read()[1] for _ in range(10)), "<i2")
    info = pcm.info()
    pcm.close()
    assert (info["rate"], info["channels"], info["format_name"]) == (16000, 1, "S16_LE")
    assert as_float(heard)[-100:] == pytest.approx(0.25, abs=0.001)


@pytest.mark.parametrize(
    ("offer", "wish", "granted"),
    [
        (Offer(channels=(2,)), {}, {"channels": 2}),
        (Offer(channels=(6,)), {}, {"channels": 6}),
        (Offer(channels=Range(lowest=2, highest=8)), {"channels": 1}, {"channels": 2}),
        (Offer(rates=(48000,)), {}, {"rate": 48000, "period_size": 160}),
        (Offer(rates=(44100, 88200)), {"rate": 96000}, {"rate": 88200}),
        (Offer(formats=("S32_LE",)), {}, {"format_name": "S32_LE"}),
        (Offer(formats=("FLOAT_LE",)), {}, {"format_name": "FLOAT_LE"}),
        (Offer(formats=("S24_3LE",)), {}, {"format_name": "S24_3LE", "physical_bits": 24}),
        (Offer(period_frames=(341,)), {"period": 500}, {"period_size": 341, "buffer_size": 1364}),
        (Offer(period_frames=(256, 512, 1024)), {}, {"period_size": 256}),
        (Offer(period_frames=(256, 512, 1024)), {"period": 500}, {"period_size": 512}),
        (Offer(periods=(2,)), {}, {"periods": 2, "buffer_size": 320}),
        (Offer(buffer_frames=(1024,)), {}, {"period_size": 170, "buffer_size": 1024}),
    ],
)
def test_what_was_granted_stands_in_the_info_after_opening(rack, offer, wish, granted):
    card = rack.plug(rack.card("Mic", capture=offer))
    pcm = open_pcm(**wish)
    info = pcm.info()
    pcm.close()
    assert {name: info[name] for name in granted} == granted
    assert (card.capture.rate, card.capture.channels) == (info["rate"], info["channels"])
    assert (card.capture.period, card.capture.buffer) == (info["period_size"], info["buffer_size"])
    assert card.capture.format == info["format_name"]


def test_what_a_device_offers_can_be_asked_once_it_is_open(rack):
    rack.plug(
        rack.card(
            "Mic",
            capture=Offer(
                formats=("S16_LE", "S32_LE"),
                rates=(44100, 48000),
                channels=Range(lowest=1, highest=4),
            ),
        )
    )
    pcm = open_pcm()
    assert pcm.getrates() == [44100, 48000]
    assert pcm.getratebounds() == (44100, 48000)
    assert pcm.getchannels() == [1, 2, 3, 4]
    assert pcm.getformats() == {"S16_LE": 2, "S32_LE": 10}
    pcm.close()
    assert alsaaudio.cards() == []
