"""Recordings: every kind of file in the field is read to the bit, or refused by its name."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import soundfile

from audio.recordings import FLOAT, packed, wav_bytes
from audio.sounds import tone
from oyez.audio import pcm
from oyez.audio.pcm import SampleFormat
from oyez.audio.wav import Recording
from oyez.errors import InputError, NotFoundError

STEPS = np.array([-32768, -20000, -1, 0, 1, 20000, 32767, 5], np.int16)


def whole(path, piece_frames=3):
    """All samples: float32 [frames, channels], read in small pieces, and the stream."""
    with closing(Recording(path)) as recording:
        raw = b""
        while piece := recording.read(piece_frames):
            raw += piece
        assert recording.read(piece_frames) == b""
        return pcm.decode(raw, recording.stream), recording.stream


@pytest.fixture
def write(tmp_path):
    def write_file(octets, name="sound.wav"):
        path = tmp_path / name
        path.write_bytes(octets)
        return path

    return write_file


@pytest.mark.parametrize("extensible", [False, True])
@pytest.mark.parametrize(
    ("bits", "sample_format"),
    [
        (8, SampleFormat.U8),
        (16, SampleFormat.S16),
        (24, SampleFormat.S32),
        (32, SampleFormat.S32),
    ],
)
def test_every_width_is_read_to_the_bit(write, bits, sample_format, extensible):
    full = 2 ** (bits - 1)
    steps = np.array([-full, -full // 3, -1, 0, 1, full // 3, full - 1])
    samples, stream = whole(write(wav_bytes(packed(steps, bits), bits=bits, extensible=extensible)))
    assert stream.sample_format is sample_format
    np.testing.assert_array_equal(samples[:, 0], (steps / full).astype(np.float32))
    assert samples.max() >= sample_format.full_scale  # so that its clipping is seen


@pytest.mark.parametrize("extensible", [False, True])
@pytest.mark.parametrize("bits", [32, 64])
def test_floats_are_read_to_the_bit(write, bits, extensible):
    values = np.array([-1, -0.3, 0, 1e-6, 0.3, 1], f"<f{bits // 8}")
    samples, stream = whole(
        write(wav_bytes(values.tobytes(), bits=bits, tag=FLOAT, extensible=extensible))
    )
    assert stream.sample_format is SampleFormat.FLOAT
    np.testing.assert_array_equal(samples[:, 0], values.astype(np.float32))


@pytest.mark.parametrize("channels", [1, 2, 6, 64])
def test_channels_stay_in_their_places(write, channels):
    steps = np.arange(5 * channels, dtype=np.int16).reshape(5, channels)
    samples, stream = whole(write(wav_bytes(steps.tobytes(), channels=channels)))
    assert stream.channels == channels
    np.testing.assert_array_equal(samples * 2**15, steps)


@pytest.mark.parametrize("rate_hz", [1_000, 7_350, 11_025, 44_100, 192_000, 768_000])
def test_any_rate_is_told_as_it_is(write, rate_hz):
    assert whole(write(wav_bytes(STEPS.tobytes(), rate_hz=rate_hz)))[1].rate_hz == rate_hz


def test_a_file_that_is_cut_off_is_read_as_far_as_it_goes(write):
    octets = wav_bytes(STEPS.tobytes())[:-5]  # in the middle of a sample
    np.testing.assert_array_equal(whole(write(octets))[0][:, 0] * 2**15, STEPS[:-3])


@pytest.mark.parametrize(
    "claimed_bytes",
    [
        pytest.param(0xFFFFFFFF, id="as streams are written"),
        pytest.param(0x7FFFFFFF - 36, id="as recorders begin"),
        pytest.param(1_000, id="more than there is"),
    ],
)
def test_a_header_that_claims_more_than_there_is_does_no_harm(write, claimed_bytes):
    octets = wav_bytes(STEPS.tobytes(), claimed_bytes=claimed_bytes)
    np.testing.assert_array_equal(whole(write(octets))[0][:, 0] * 2**15, STEPS)


@pytest.mark.parametrize("ending", ["flac", "ogg", "mp3", "aiff"])
def test_other_kinds_of_files_are_read_in_periods_as_they_are_in_one_piece(tmp_path, ending):
    path = tmp_path / f"sound.{ending}"
    noise = np.random.default_rng(1).normal(0, 0.1, 8_000).astype(np.float32)
    soundfile.write(path, np.concatenate((tone(440, 1_000, 16_000), noise)), 16_000)
    at_once, rate_hz = soundfile.read(path, dtype="float32", always_2d=True)
    samples, stream = whole(path, 320)
    assert stream.rate_hz == rate_hz
    np.testing.assert_allclose(samples, np.clip(at_once, -1, 1), atol=1e-6)


def test_a_codec_that_claims_whole_packets_is_read_to_its_end(tmp_path):
    # Its last packet is not full: fewer samples come than were counted.
    path = tmp_path / "phone.wav"
    soundfile.write(path, tone(440, 1_000, 8_000), 8_000, subtype="GSM610")
    assert len(whole(path)[0]) == pytest.approx(8_000, abs=320)


def test_a_name_that_is_not_utf_8_is_a_name(tmp_path):
    path = Path(os.fsdecode(bytes(tmp_path) + b"/caf\xe9.wav"))
    path.write_bytes(wav_bytes(STEPS.tobytes()))
    assert len(whole(path)[0]) == len(STEPS)


def test_closing_twice_does_no_harm(write):
    recording = Recording(write(wav_bytes(STEPS.tobytes())))
    recording.close()
    recording.close()


@pytest.mark.parametrize(
    ("octets", "reason"),
    [
        pytest.param(b"", "can be read", id="an empty file"),
        pytest.param(b"The quick brown fox.\n" * 50, "can be read", id="a text"),
        pytest.param(wav_bytes(STEPS.tobytes())[:30], "can be read", id="half a header"),
        pytest.param(wav_bytes(b""), "no sound in it", id="a header alone"),
        pytest.param(wav_bytes(STEPS.tobytes(), rate_hz=0), "can be read", id="no rate"),
        pytest.param(wav_bytes(STEPS.tobytes(), rate_hz=999), "claims 999 Hz", id="a rate too low"),
        pytest.param(
            wav_bytes(STEPS.tobytes(), rate_hz=2_000_000), "claims 2000000 Hz", id="too high"
        ),
        pytest.param(wav_bytes(bytes(65 * 2), channels=65), "claims .* 65 ch", id="65 channels"),
    ],
)
def test_what_is_no_recording_is_refused_by_name(write, octets, reason):
    path = write(octets)
    with pytest.raises(InputError, match=reason) as caught:
        Recording(path)
    assert str(path) in caught.value.message
    assert caught.value.remedy


def test_raw_samples_are_refused_as_nobody_knows_their_rate(write):
    with pytest.raises(InputError, match=r"sound\.raw is not a recording"):
        Recording(write(STEPS.tobytes(), "sound.raw"))


def test_a_recording_that_is_damaged_inside_says_where(write, tmp_path):
    path = tmp_path / "sound.flac"
    soundfile.write(path, tone(440, 2_000, 16_000), 16_000)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(InputError, match=rf"{path} is damaged at [01]\.\d s"):
        whole(path, 320)


@pytest.mark.parametrize("name", ["missing.wav", "x" * 300, "sound.wav/inside"])
def test_a_file_that_is_not_there_is_not_found(write, name):
    folder = write(b"").parent
    with pytest.raises(NotFoundError, match=name[:20]):
        Recording(folder / name)


def test_a_folder_is_no_recording(tmp_path):
    with pytest.raises(InputError, match="is not a file"):
        Recording(tmp_path)


def test_a_pipe_is_no_recording(tmp_path):
    os.mkfifo(tmp_path / "pipe.wav")
    with pytest.raises(InputError, match="is not a file"):
        Recording(tmp_path / "pipe.wav")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
@pytest.mark.parametrize("locked", ["sound.wav", "."])
def test_a_file_that_may_not_be_read_is_named(write, locked):
    path = write(wav_bytes(STEPS.tobytes()))
    closed = path.parent / locked
    closed.chmod(0)
    try:
        with pytest.raises(NotFoundError, match=r"sound\.wav"):
            Recording(path)
    finally:
        closed.chmod(0o700)
