"""The front end: any stream in, flagged blocks of 16 kHz out."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audio.recordings import packed
from audio.sounds import buzz, pitch_hz, silence, tone
from oyez.audio.pcm import SampleFormat, StreamFormat, to_float, to_pcm16
from oyez.messages import BLOCK_FRAMES, RATE_HZ
from oyez.rt.front_end import FrontEnd
from oyez.rt.ring import Flag
from oyez.speech.vad_webrtc import WebRtcVad

COUNT = np.arange(-4_000, 4_000, dtype=np.int16)


class Deaf:
    """A detector that hears no speech, and keeps what it was given."""

    def __init__(self):
        self.blocks = []

    def is_speech(self, block):
        self.blocks.append(block.copy())
        return False


def stream(rate_hz=RATE_HZ, channels=1, sample_format=SampleFormat.S16):
    return StreamFormat(rate_hz=rate_hz, channels=channels, sample_format=sample_format)


def heard(raw, layout, period_frames, vad=None):
    """All blocks of a whole stream that comes in periods."""
    front_end = FrontEnd(layout, vad or Deaf())
    blocks = []
    for begin in range(0, len(raw), period_frames * layout.frame_bytes):
        period = raw[begin : begin + period_frames * layout.frame_bytes]
        blocks += front_end.process(period, gated=False)
    return [*blocks, *front_end.flush()]


def joined(blocks):
    return np.concatenate([COUNT[:0], *(block.samples for block in blocks)])


def flags(blocks):
    return [Flag(block.flags) for block in blocks]


@given(cuts=st.lists(st.integers(0, 8_000), max_size=20), buffer=st.booleans())
def test_16_khz_mono_passes_to_the_bit_whatever_the_periods(cuts, buffer):
    front_end = FrontEnd(stream(), Deaf())
    blocks = []
    edges = [0, *sorted(cuts), len(COUNT)]
    for begin, end in itertools.pairwise(edges):
        raw = COUNT[begin:end].tobytes()
        blocks += front_end.process(memoryview(raw) if buffer else raw, gated=False)
        assert len(blocks) == end // BLOCK_FRAMES  # as soon as a block is whole
    blocks += front_end.flush()
    assert all(block.samples.shape == (BLOCK_FRAMES,) for block in blocks)
    assert joined(blocks).dtype == np.int16
    np.testing.assert_array_equal(joined(blocks)[: len(COUNT)], COUNT)


@given(frames=st.integers(0, 1_000))
def test_at_the_end_the_last_block_is_filled_up_with_silence(frames):
    blocks = heard(COUNT[:frames].tobytes(), stream(), 320)
    assert len(blocks) == -(-frames // BLOCK_FRAMES)
    assert not joined(blocks)[frames:].any()


@pytest.mark.parametrize("period_ms", [10, 20, 60])
@pytest.mark.parametrize("rate_hz", [8_000, 11_025, 22_050, 44_100, 48_000, 96_000])
def test_any_rate_keeps_length_and_pitch(rate_hz, period_ms):
    sound = to_pcm16(tone(1_000, 2_000, rate_hz))
    blocks = heard(sound.tobytes(), stream(rate_hz), rate_hz * period_ms // 1000)
    assert len(blocks) == pytest.approx(2_000 / 20, abs=1)
    inner = to_float(joined(blocks)[1_600:30_000])
    assert pitch_hz(inner, RATE_HZ) == pytest.approx(1_000, rel=1e-4)
    assert np.sqrt(np.mean(inner**2)) == pytest.approx(0.5 / np.sqrt(2), rel=0.01)


@settings(max_examples=25)
@given(
    rate_hz=st.integers(4_000, 192_000),
    period_frames=st.integers(40, 4_000),
    duration_ms=st.integers(0, 300),
)
def test_any_rate_in_any_periods_gives_the_right_count(rate_hz, period_frames, duration_ms):
    frames = rate_hz * duration_ms // 1000
    blocks = heard(bytes(2 * frames), stream(rate_hz), period_frames)
    exact = frames * RATE_HZ / rate_hz / BLOCK_FRAMES
    assert exact - 1 <= len(blocks) <= exact + 1


def test_what_is_above_8_khz_does_not_fold_back():
    sound = to_pcm16(tone(10_000, 1_000, 48_000))
    assert np.abs(joined(heard(sound.tobytes(), stream(48_000), 960))[1_600:14_000]).max() < 20


def two_channels(left, right):
    return np.column_stack((left, right)).astype(np.int16).tobytes()


@pytest.mark.parametrize("live", [0, 1])
def test_a_dead_channel_is_not_averaged_in(live):
    pair = [np.zeros_like(COUNT), np.zeros_like(COUNT)]
    pair[live] = COUNT
    blocks = heard(two_channels(*pair), stream(channels=2), 320)
    np.testing.assert_array_equal(joined(blocks), COUNT)


def test_two_channels_in_opposite_phases_do_not_cancel_out():
    sound = buzz(400)
    blocks = heard(two_channels(sound, -sound), stream(channels=2), 320)
    np.testing.assert_array_equal(joined(blocks), sound)


@pytest.mark.parametrize("louder", [0, 1])
def test_the_louder_channel_takes_over_in_time(louder):
    near, far = buzz(2_000, level=0.5), buzz(2_000, level=0.05)
    pair = (near, far) if louder == 0 else (far, near)
    blocks = heard(two_channels(*pair), stream(channels=2), 320)
    np.testing.assert_array_equal(joined(blocks)[16_000:], near[16_000:])


def test_two_channels_that_are_nearly_as_loud_are_not_exchanged():
    left, right = buzz(2_000, level=0.3), buzz(2_000, level=0.5)  # 4.4 dB
    blocks = heard(two_channels(left, right), stream(channels=2), 320)
    np.testing.assert_array_equal(joined(blocks), left)


def test_a_channel_that_falls_silent_gives_way():
    left = np.concatenate((buzz(1_000), silence(2_000)))
    right = np.concatenate((silence(1_000), buzz(2_000)))
    blocks = heard(two_channels(left, right), stream(channels=2), 320)
    np.testing.assert_array_equal(joined(blocks)[:16_000], left[:16_000])
    np.testing.assert_array_equal(joined(blocks)[-16_000:], right[-16_000:])


def test_clipping_is_seen_as_the_card_delivers_it_though_resampling_rounds_it_off():
    loud = np.clip(tone(900, 400, 48_000, level=1.2), -1, 32_767 / 32_768)
    blocks = heard(to_pcm16(loud).tobytes(), stream(48_000), 960)
    assert all(flag & Flag.CLIPPED for flag in flags(blocks)[:-1])
    quiet = heard(to_pcm16(loud * 0.99).tobytes(), stream(48_000), 960)
    assert not any(flag & Flag.CLIPPED for flag in flags(quiet))


def test_short_flat_tops_are_gone_after_resampling_and_reported_all_the_same():
    # Two samples in a row at full scale, now and then: at 16 kHz nothing is left of them.
    clicks = np.zeros(48_000, np.int16)
    clicks[100::480] = clicks[101::480] = 32_767
    blocks = heard(clicks.tobytes(), stream(48_000), 960)
    assert np.abs(joined(blocks)).max() < 32_767
    assert all(flag & Flag.CLIPPED for flag in flags(blocks)[:49])


@pytest.mark.parametrize("period_ms", [10, 20, 30, 60])
def test_clipping_and_peak_are_those_of_the_sound_whatever_the_periods(period_ms):
    sound = np.concatenate((silence(600), np.full(9_600, 32_767, np.int16), silence(600)))
    blocks = heard(sound.tobytes(), stream(), RATE_HZ * period_ms // 1000)
    clipped = [bool(flag & Flag.CLIPPED) for flag in flags(blocks)]
    assert clipped == [False] * 30 + [True] * 30 + [False] * 30
    peaks = [block.peak for block in blocks]
    assert peaks == pytest.approx([0] * 30 + [1] * 30 + [0] * 30, abs=1e-4)


def test_the_first_half_of_a_block_counts_though_it_came_in_a_period_of_its_own():
    front_end = FrontEnd(stream(), Deaf())
    assert list(front_end.process(np.full(160, 32_767, "<i2").tobytes(), gated=False)) == []
    (block,) = front_end.process(bytes(320), gated=False)
    assert Flag(block.flags) is Flag.CLIPPED
    assert block.peak == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize(
    ("sample_format", "raw"),
    [
        (SampleFormat.U8, packed(np.array([0, 127] * 160), 8)),
        (SampleFormat.S16, packed(np.array([0, -(2**15)] * 160), 16)),
        (SampleFormat.S24_3, packed(np.array([0, 2**23 - 1] * 160), 24)),
        (SampleFormat.S32, packed(np.array([0, 2**31 - 1] * 160), 32)),
        (SampleFormat.FLOAT, np.array([0, 3.0] * 160, "<f4").tobytes()),
    ],
)
def test_clipping_is_seen_in_every_format(sample_format, raw):
    (block,) = heard(raw, stream(sample_format=sample_format), 320)
    assert Flag(block.flags) is Flag.CLIPPED
    assert block.peak == pytest.approx(1, abs=0.01)


def test_the_level_is_that_of_the_channel_that_is_listened_to():
    loud, other = buzz(400, level=0.5), np.full(6_400, 32_767, np.int16)
    other[1::2] = 0
    blocks = heard(two_channels(loud, other // 3), stream(channels=2), 320)
    assert max(block.peak for block in blocks) == pytest.approx(0.5, abs=0.001)


def test_a_torn_frame_and_an_empty_period_do_no_harm():
    front_end = FrontEnd(stream(channels=2), Deaf())
    raw = two_channels(COUNT[:320], COUNT[:320])
    assert list(front_end.process(b"", gated=False)) == []
    (block,) = front_end.process(raw + b"\x01\x02\x03", gated=False)
    np.testing.assert_array_equal(block.samples, COUNT[:320])


def test_speech_is_flagged_by_the_detector_on_what_it_gave_out():
    sound = np.concatenate((silence(400), buzz(400), silence(400)))
    blocks = heard(sound.tobytes(), stream(), 160, WebRtcVad(2))
    speech = [bool(flag & Flag.SPEECH) for flag in flags(blocks)]
    assert speech[:20] == [False] * 20
    assert speech[20:40] == [True] * 20
    assert not speech[-1]


def test_a_gated_period_is_flagged_and_the_detector_hears_it_all_the_same():
    vad = Deaf()
    front_end = FrontEnd(stream(), vad)
    blocks = list(front_end.process(COUNT[:640].tobytes(), gated=True))
    blocks += front_end.process(COUNT[640:960].tobytes(), gated=False)
    assert flags(blocks) == [Flag.GATED, Flag.GATED, Flag(0)]
    np.testing.assert_array_equal(np.concatenate(vad.blocks), COUNT[:960])


def test_samples_that_are_no_numbers_do_not_poison_what_follows():
    sound = tone(440, 400, 48_000)
    spoilt = sound.copy()
    spoilt[100:110] = np.nan
    layout = stream(48_000, sample_format=SampleFormat.FLOAT)
    clean, healed = (joined(heard(s.tobytes(), layout, 960)) for s in (sound, spoilt))
    np.testing.assert_array_equal(healed[-3_200:], clean[-3_200:])
