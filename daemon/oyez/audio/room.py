"""A room made of numbers: reverberation, a fan's hum, and speech set into both at a known SNR.

Owns the sound of the simulated room and of the measuring bench's timelines. Pure: arrays in,
arrays out, no I/O, no clock; may run on any thread. The same arguments give the same samples on
every machine: the only source of chance is the PCG64 bit stream, which NumPy keeps stable (its
distributions may change from release to release), and sums are done in float64 before they are
rounded.

Speech is found by its energy (``active_frames``), once, on the dry recording: so the true begin
and end of each utterance in a scene are known from how it was built.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from oyez.audio.pcm import to_pcm16
from oyez.messages import RATE_HZ

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from oyez.messages import Pcm16, PcmFloat

Mask: TypeAlias = npt.NDArray[np.bool_]
"""One truth value for each frame."""

SPEECH_DBFS = -26.0
"""Level of the active speech in a scene: the nominal level of ITU-T P.56 measurements."""

CEILING = 0.99
"""Highest magnitude that a mix may reach, in full scales."""

PAD_MS = 150
FADE_MS = 100
"""What is kept of a recording around its speech, and how much of that is faded in and out, so
that a recording's own background does not begin and end with a step that a detector would hear."""

_ROOM_M3 = 50.0
_DISTANCE_M = 1.5
_DIRECTIVITY = 2.0
_FIRST_REFLECTION_MS = 2.5
"""A living room of 4 x 5 x 2.5 m, a talker (directivity factor of a mouth: 2) 1.5 m away.
The mean free path 4 V / S is 2.35 m: its sound comes 2.5 ms after the direct one."""

_WINDOW_MS = 10
_BELOW_LOUDEST_DB = 35.0
_ABOVE_FLOOR_DB = 8.0
_LEAST_RANGE_DB = 15.0
_HIGH_PASS_HZ = 120.0
_CLICK_MS = 30
_WINDOWS_APART = 10  # of silence, so that a filter's end does not run into the begin
_SILENT_DB = -120.0

_TONE_PERIOD = 1 << 19
_REVERB_STREAM, _TONE_STREAM = 1, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Mix:
    """Speech and noise together: ``samples`` float32 ``[n]``, at most ``CEILING``.

    ``gain_db`` (0 or less) is what the whole mix was turned down by to stay under the ceiling.
    """

    samples: PcmFloat
    gain_db: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Utterances in a room.

    ``samples`` is int16 ``[n]`` at 16 kHz. ``spans`` holds the true begin frame and the end frame
    (one past the last) of each utterance's dry speech; its reverberation rings on after that.
    ``gain_db`` is as in ``Mix``.
    """

    samples: Pcm16
    spans: tuple[tuple[int, int], ...]
    gain_db: float


def impulse_response(*, reverb_ms: float, rate_hz: int = RATE_HZ, seed: int) -> PcmFloat:
    """The response of a living room: a direct path at index 0, then a tail of decaying noise.

    The tail falls by 60 dB in ``reverb_ms`` and is cut there. Its energy relative to the direct
    path's follows from the theory of the diffuse field (H. Kuttruff, Room Acoustics): direct to
    reverberant = Q A / (16 pi r^2), with Sabine's absorption area A = 0.161 V / RT60; for this
    room -3.2 dB at 300 ms. ``reverb_ms`` 0 gives a unit impulse.

    Returns:
        float32 ``[n]``; the first value is 1.

    Raises:
        ValueError: ``reverb_ms`` is negative or not finite.
    """
    if not (math.isfinite(reverb_ms) and reverb_ms >= 0):
        raise ValueError(f"reverb_ms must be 0 or more, not {reverb_ms}")
    frames = round(reverb_ms * rate_hz / 1000)
    begin = round(_FIRST_REFLECTION_MS * rate_hz / 1000)
    response = np.zeros(max(1, frames), dtype=np.float64)
    if frames > begin:
        reverb_s = reverb_ms / 1000
        absorption_m2 = 0.161 * _ROOM_M3 / reverb_s
        direct_to_tail = _DIRECTIVITY * absorption_m2 / (16 * math.pi * _DISTANCE_M**2)
        decay = 10.0 ** (-3.0 * np.arange(frames - begin) / frames)
        tail = _white(frames - begin, seed, _REVERB_STREAM) * decay
        response[begin:] = tail / math.sqrt(float(np.sum(tail**2)) * direct_to_tail)
    response[0] = 1.0
    return response.astype(np.float32)


def in_room(dry: PcmFloat, response: PcmFloat) -> PcmFloat:
    """``dry`` as heard through ``response``, synthetic or recorded.

    The largest value of the response is taken for the direct path. It keeps its place (frame k of
    the result holds the direct sound of frame k) and its level; what a recorded response holds
    before it is cut where it would fall before frame 0.

    Returns:
        float32 ``[len(dry) + len(response) - 1 - direct]``: the reverberation rings out.

    Raises:
        ValueError: an array is empty, not one-dimensional or not finite, or the response is zero.
    """
    _check("dry", dry)
    _check("response", response)
    direct = int(np.argmax(np.abs(response)))
    if response[direct] == 0:
        raise ValueError("the room response is zero throughout")
    frames = len(dry) + len(response) - 1
    size = 1 << (frames - 1).bit_length()
    spectrum = np.fft.rfft(dry.astype(np.float64), size)
    spectrum *= np.fft.rfft(response.astype(np.float64) / abs(float(response[direct])), size)
    return np.fft.irfft(spectrum, size)[direct:frames].astype(np.float32)


def room_tone(frames: int, *, rate_hz: int = RATE_HZ, seed: int) -> PcmFloat:
    """The air of a room with a fan in it: stationary noise, unit RMS.

    Flat to 200 Hz, from there on 6 dB less each octave down to a floor of hiss 34 dB below, and
    nothing to speak of under 40 Hz. It repeats, without a seam, after 2^19 frames (33 s at 16 kHz).

    Returns:
        float32 ``[frames]``.
    """
    frequency = np.fft.rfftfreq(_TONE_PERIOD, 1 / rate_hz)
    shape = (1 / np.hypot(1, frequency / 200) + 0.02) * frequency / np.hypot(frequency, 40)
    white = np.fft.rfft(_white(_TONE_PERIOD, seed, _TONE_STREAM))
    tone = np.resize(np.fft.irfft(white * shape, _TONE_PERIOD), frames)
    return (tone / max(_rms(tone), 1e-12)).astype(np.float32)


def active_frames(speech: PcmFloat, *, rate_hz: int = RATE_HZ) -> Mask:
    """Which frames of a dry recording hold speech, by their energy.

    The rule: the level of windows of 10 ms, high-passed at 120 Hz against rumble. A window is
    active when it is less than 35 dB below the loudest level that lasts for 30 ms, and more than
    8 dB above the recording's own floor (its 10th percentile). The floor is believed only as far
    as 15 dB below the loudest: a recording without pauses has none. What is active for less than
    30 ms is a click, and does not count.

    Returns:
        bool ``[len(speech)]``.

    Raises:
        ValueError: the array is empty, not one-dimensional, not finite, or silent throughout.
    """
    _check("speech", speech)
    level_db = _levels_db(speech, rate_hz)
    lasting = min(len(level_db), _CLICK_MS // _WINDOW_MS)
    loudest = float(np.max(np.min(np.lib.stride_tricks.sliding_window_view(level_db, lasting), 1)))
    if loudest <= _SILENT_DB:
        raise ValueError("the speech is silent throughout")
    floor = min(float(np.percentile(level_db, 10)) + _ABOVE_FLOOR_DB, loudest - _LEAST_RANGE_DB)
    active = level_db >= max(loudest - _BELOW_LOUDEST_DB, floor)
    edges = np.flatnonzero(np.diff(active, prepend=False, append=False)).tolist()
    for begin, end in zip(edges[::2], edges[1::2], strict=True):
        if end - begin < lasting:
            active[begin:end] = False
    return np.repeat(active, rate_hz * _WINDOW_MS // 1000)[: len(speech)]


def speech_span(speech: PcmFloat, *, rate_hz: int = RATE_HZ) -> tuple[int, int]:
    """The first frame of the speech in a dry recording, and the frame after its last.

    Raises:
        ValueError: as ``active_frames``.
    """
    where = np.flatnonzero(active_frames(speech, rate_hz=rate_hz))
    return int(where[0]), int(where[-1]) + 1


def mix_at_snr(
    speech: PcmFloat, noise: PcmFloat, snr_db: float, *, active: Mask | None = None
) -> Mix:
    """Add noise so that the active speech stands ``snr_db`` above it; the speech keeps its level.

    The SNR is 10 log10 of the mean power of ``speech`` over the ``active`` frames (by default
    those of ``active_frames``, a plain threshold on energy) to the mean power of the whole noise.
    It counts the noise that is added; what the recording brought along is part of the speech.
    Where the sum would pass ``CEILING``, all of it is scaled down, and the result says by how much.

    Args:
        speech: float32 ``[n]``.
        noise: float32 ``[n]``.
        snr_db: finite.
        active: bool ``[n]``, with at least one true.

    Raises:
        ValueError: lengths differ, an array is not finite, or speech or noise has no power.
    """
    _check("speech", speech)
    _check("noise", noise)
    if active is None:
        active = active_frames(speech)
    if not len(speech) == len(noise) == len(active):
        lengths = f"{len(speech)}, {len(noise)}, {len(active)}"
        raise ValueError(f"speech, noise and mask must be equally long: {lengths}")
    if not math.isfinite(snr_db):
        raise ValueError(f"snr_db must be finite, not {snr_db}")
    speech_rms = _rms(speech[active]) if np.any(active) else 0.0
    noise_rms = _rms(noise)
    if speech_rms == 0 or noise_rms == 0:
        raise ValueError("speech and noise must both have power for an SNR between them")
    noise_gain = speech_rms / noise_rms * 10 ** (-snr_db / 20)
    total = speech.astype(np.float64) + noise.astype(np.float64) * noise_gain
    gain = min(1.0, CEILING / float(np.max(np.abs(total))))
    return Mix(samples=(total * gain).astype(np.float32), gain_db=20 * math.log10(gain))


@dataclass(frozen=True, slots=True, kw_only=True)
class Take:
    """An utterance cut to its speech: ``before`` frames of faded pad, speech, faded pad.

    ``dry`` is float32 ``[n]`` at 16 kHz, ``active`` bool ``[n]``: which frames hold speech.
    """

    dry: PcmFloat
    active: Mask
    before: int
    speech_frames: int


def take(utterance: PcmFloat, active: Mask | None = None) -> Take:
    """Cut a dry recording (float32 ``[n]``, 16 kHz) to its speech and up to 150 ms around it.

    Args:
        utterance: the recording.
        active: bool ``[n]``, where better is known than ``active_frames`` finds.

    Raises:
        ValueError: as ``active_frames``.
    """
    if active is None:
        active = active_frames(utterance)
    where = np.flatnonzero(active)
    first, last = int(where[0]), int(where[-1]) + 1
    before, after = min(first, _frames(PAD_MS)), min(len(utterance) - last, _frames(PAD_MS))
    dry = utterance[first - before : last + after].astype(np.float32)
    for pad, edge in ((before, dry), (after, dry[::-1])):
        fade = min(pad, _frames(FADE_MS))
        edge[:fade] *= (0.5 - 0.5 * np.cos(np.pi * np.arange(fade) / max(1, fade))).astype("f4")
    return Take(
        dry=dry,
        active=active[first - before : last + after],
        before=before,
        speech_frames=last - first,
    )


def scene(
    utterances: Sequence[PcmFloat],
    *,
    lead_ms: float,
    gap_ms: float,
    tail_ms: float,
    snr_db: float,
    reverb_ms: float,
    seed: int,
) -> Scene:
    """Spoken utterances (float32 ``[n]`` each, dry, 16 kHz) in a synthetic room.

    ``compose`` with ``impulse_response`` and ``room_tone``, both from ``seed``.
    """
    return compose(
        [take(utterance) for utterance in utterances],
        lead_ms=lead_ms,
        gaps_ms=[gap_ms] * (len(utterances) - 1),
        tail_ms=tail_ms,
        snr_db=snr_db,
        response=impulse_response(reverb_ms=reverb_ms, seed=seed),
        noise=partial(room_tone, seed=seed),
    )


def compose(
    takes: Sequence[Take],
    *,
    lead_ms: float,
    gaps_ms: Sequence[float],
    tail_ms: float,
    snr_db: float,
    response: PcmFloat,
    noise: Callable[[int], PcmFloat],
) -> Scene:
    """Set utterances into a room and its noise.

    Each is put through the room and brought to ``SPEECH_DBFS`` over its active frames; the SNR is
    that of ``mix_at_snr`` over all of them.

    Args:
        takes: one at least.
        lead_ms: from the first frame to the begin of the first speech.
        gaps_ms: from the end of each speech but the last to the begin of the next.
        tail_ms: from the end of the last speech to the end.
        snr_db: as in ``mix_at_snr``.
        response: float32 ``[n]``, as in ``in_room``.
        noise: gives float32 ``[frames]`` of any level when called with a number of frames.

    Raises:
        ValueError: there is no take, a time is negative, or the number of gaps does not fit.
    """
    if not takes or len(gaps_ms) != len(takes) - 1:
        raise ValueError(f"{len(takes)} utterances cannot have {len(gaps_ms)} gaps between them")
    if min(lead_ms, tail_ms, *gaps_ms, 0) < 0:
        raise ValueError("lead, gaps and tail must be 0 or more")
    spans: list[tuple[int, int]] = []
    begin = _frames(lead_ms)
    for spoken, gap in zip(takes, [*gaps_ms, tail_ms], strict=True):
        spans.append((begin, begin + spoken.speech_frames))
        begin = spans[-1][1] + _frames(gap)
    track = np.zeros(begin, dtype=np.float32)
    active = np.zeros(begin, dtype=np.bool_)
    for spoken, (first, _) in zip(takes, spans, strict=True):
        wet = in_room(spoken.dry, response)
        wet *= np.float32(10 ** (SPEECH_DBFS / 20) / _rms(wet[: len(spoken.dry)][spoken.active]))
        _add(track, wet, first - spoken.before)
        _add(active, spoken.active, first - spoken.before)
    mix = mix_at_snr(track, noise(len(track)), snr_db, active=active)
    return Scene(samples=to_pcm16(mix.samples), spans=tuple(spans), gain_db=mix.gain_db)


def _add(track: npt.NDArray[np.generic], piece: npt.NDArray[np.generic], at: int) -> None:
    """Add a piece at a frame; what passes an end of the track is cut. On masks this is 'or'."""
    piece = piece[max(0, -at) : max(0, len(track) - at)]
    at = max(0, at)
    np.add(track[at : at + len(piece)], piece, out=track[at : at + len(piece)])


def _levels_db(samples: PcmFloat, rate_hz: int) -> npt.NDArray[np.float64]:
    """The level of each window of 10 ms above 120 Hz, in dB of full scale squared."""
    window = rate_hz * _WINDOW_MS // 1000
    windows = -(-len(samples) // window)
    size = (windows + _WINDOWS_APART) * window
    # A gentle slope, 24 dB an octave without phase: a steep one would ring into the silence.
    gain = 1 / (1 + (_HIGH_PASS_HZ / np.maximum(np.fft.rfftfreq(size, 1 / rate_hz), 1e-3)) ** 4)
    passed = np.fft.irfft(np.fft.rfft(samples.astype(np.float64), size) * gain, size)
    power = np.mean(passed[: windows * window].reshape(windows, window) ** 2, axis=1)
    levels: npt.NDArray[np.float64] = 10 * np.log10(power + 1e-14)
    return levels


def _white(frames: int, seed: int, stream: int) -> npt.NDArray[np.float64]:
    """White noise of unit variance, evenly distributed, from PCG64's own bits."""
    bits = np.random.PCG64([seed, stream]).random_raw(frames)
    evenly = (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return (evenly - 0.5) * math.sqrt(12)


def _rms(samples: npt.NDArray[np.floating]) -> float:
    return math.sqrt(float(np.mean(np.square(samples, dtype=np.float64)))) if len(samples) else 0.0


def _frames(duration_ms: float) -> int:
    return round(duration_ms * RATE_HZ / 1000)


def _check(name: str, samples: PcmFloat) -> None:
    if samples.ndim != 1 or len(samples) == 0:
        raise ValueError(f"{name} must be one-dimensional and not empty, not {samples.shape}")
    if not np.all(np.isfinite(samples)):
        raise ValueError(f"{name} holds values that are not finite")
