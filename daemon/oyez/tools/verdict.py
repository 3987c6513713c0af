"""What follows from a calibration's figures: the microphone's gain, and what to tell the owner.

Pure: figures in, words and proposals out. A value is proposed only where a measurement asks for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from oyez.audio.amplifier import SOFTWARE_HEADROOM_DB
from oyez.audio.gain import (
    CLIPPED_DOWN_DB,
    DEAD_BAND_DB,
    HEADROOM_DB,
    LEAST_ABOVE_NOISE_DB,
    MOST_DOWN_DB,
    TARGET_DBFS,
    HardwareRange,
    active_level_dbfs,
    split,
)
from oyez.audio.levels import Signal
from oyez.audio.pcm import dbfs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from oyez.audio.levels import PerChannel
    from oyez.yaml_writer import Value

GAIN_KEY = "audio.capture.gain_db"
VAD_KEY = "vad.aggressiveness"
GAIN_RANGE_DB = (-30.0, 60.0)
"""What ``audio.capture.gain_db`` may be."""
NOISY_DB = 20.0
"""Below this height of speech above the noise, recognizers begin to miss words."""
SPEECH_ABOVE_DB = 6.0
"""A block is speech when it is so far above nearly all of the silence."""
SILENCE_QUANTILE = 0.9
LEAST_SPEECH_BLOCKS = 25
"""Half a second: less is a cough."""
LARGE_DC = 0.05

MANY_FALSE = 0.10
"""Speech is found in so much of the silence: utterances would not end."""
FEW_FALSE = 0.03
MANY_MISSED = 0.5
"""Of what is louder than the noise: half of it is pauses' tails and soft endings at most."""
FEW_MISSED = 0.35


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoken:
    """What was heard while the person spoke, as the card delivered it, at ``hardware_db``."""

    level_dbfs: float
    peak_dbfs: float
    clipped: bool
    hardware_db: float


@dataclass(frozen=True, slots=True, kw_only=True)
class VadShares:
    """The share of blocks in which a detector finds speech: of the silence's, and of speech's."""

    in_silence: float
    in_speech: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EchoHeard:
    """The device's own sound in the microphone.

    ``delay_ms`` is from writing to the speaker's buffer to the microphone's samples.
    """

    level_dbfs: float
    delay_ms: float
    clipped: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """All figures of a calibration.

    ``signals`` has a word for each channel, ``spoken`` is None when nobody was heard, and
    ``lowered_db`` is by how much the card's gain was turned down meanwhile because it clipped.
    ``speaker_trouble`` says why nothing was played, ``echo`` is None when nothing of it was heard.
    """

    channel: int
    signals: tuple[Signal, ...]
    floor_dbfs: float
    dc: float
    hardware: HardwareRange | None
    spoken: Spoken | None
    lowered_db: float = 0.0
    vad: Mapping[int, VadShares] = field(default_factory=dict)
    speaker_trouble: str = ""
    echo: EchoHeard | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Present:
    """What the configuration says now."""

    gain_db: float | Literal["auto", "leave"]
    aggressiveness: int
    echo: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a calibration found: for a person, and as values of dotted keys."""

    warnings: tuple[str, ...]
    proposals: Mapping[str, Value]

    @property
    def summary(self) -> str:
        """In one line."""
        if self.warnings:
            return "see to the warnings, then calibrate once more"
        return "all is well" + (", with the values below" if self.proposals else " as it is")


def speech_blocks(rms: PerChannel, silence_rms: PerChannel) -> npt.NDArray[np.bool_]:
    """Which blocks (RMS, float [n]) are louder than the silence before (float [m], m >= 1)."""
    loudest = float(np.quantile(silence_rms, SILENCE_QUANTILE))
    found: npt.NDArray[np.bool_] = rms > loudest * 10 ** (SPEECH_ABOVE_DB / 20)
    return found


def spoken(
    rms: PerChannel, silence_rms: PerChannel, *, peak: float, clipped: bool, hardware_db: float
) -> Spoken | None:
    """What was said, from the blocks of two steps; None when that is too little to judge."""
    loud = speech_blocks(rms, silence_rms)
    if np.count_nonzero(loud) < LEAST_SPEECH_BLOCKS:
        return None
    return Spoken(
        level_dbfs=active_level_dbfs(rms[loud]),
        peak_dbfs=dbfs(peak),
        clipped=clipped,
        hardware_db=hardware_db,
    )


def lower_gain_db(said: Spoken, hardware: HardwareRange | None) -> float | None:
    """The card's gain to try next after it clipped; None where it can go no lower."""
    if hardware is None or not said.clipped:
        return None
    down_db = min(max(said.level_dbfs - TARGET_DBFS, CLIPPED_DOWN_DB), MOST_DOWN_DB)
    lower_db = hardware.at_most(said.hardware_db - down_db)
    return lower_db if lower_db < said.hardware_db else None


def gain_db(measured: Measured) -> float | None:
    """The gain that brings this speech to the target, as ``gain.split`` will carry it out.

    None where nothing can be said: nobody spoke, it clips, or noise is as loud as speech. The
    peaks keep their distance to full scale, for the next sentence may be louder.
    """
    said = measured.spoken
    if said is None or said.clipped or said.level_dbfs - measured.floor_dbfs < LEAST_ABOVE_NOISE_DB:
        return None
    total_db = said.hardware_db + TARGET_DBFS - said.level_dbfs
    if measured.hardware is not None:
        # What the card can do of it, its converter must bear.
        bears_db = said.hardware_db - HEADROOM_DB - said.peak_dbfs
        if split(total_db, measured.hardware).hardware_db > bears_db:
            total_db = min(total_db, bears_db)
    total_db = min(total_db, said.hardware_db - SOFTWARE_HEADROOM_DB - said.peak_dbfs)
    low_db, high_db = GAIN_RANGE_DB
    return round(min(max(total_db, low_db), high_db), 1)


def judge(measured: Measured, present: Present) -> Verdict:
    """What to tell, and what to set."""
    warnings = [*_of_signal(measured), *_of_speech(measured), *_of_echo(measured, present)]
    proposals: dict[str, Value] = {}
    proposals.update(_gain_proposal(measured, present))
    wanted, warning = _vad(measured.vad, present.aggressiveness)
    warnings += [warning] if warning else []
    if wanted != present.aggressiveness:
        proposals[VAD_KEY] = wanted
    return Verdict(warnings=tuple(warnings), proposals=proposals)


def _gain_proposal(measured: Measured, present: Present) -> Iterator[tuple[str, Value]]:
    wanted_db = gain_db(measured)
    if wanted_db is None:
        return
    if measured.hardware is not None and not measured.hardware.exact:
        # A step is of unknown size: only one who hears what came of it can set it.
        if present.gain_db != "auto":
            yield GAIN_KEY, "auto"
        return
    if isinstance(present.gain_db, str) or abs(wanted_db - present.gain_db) > DEAD_BAND_DB:
        yield GAIN_KEY, int(wanted_db) if wanted_db.is_integer() else wanted_db


def _of_signal(measured: Measured) -> Iterator[str]:
    signal = measured.signals[measured.channel]
    if signal is not Signal.LIVE and measured.echo is None:
        yield (
            f"the microphone delivers {signal}: it is muted, dead or not plugged in "
            "(`oyez devices` lists switches; audio.capture.gain_db: leave turns none on)"
        )
    if abs(measured.dc) > LARGE_DC:
        yield (
            f"the microphone has an offset of {measured.dc:+.2f} of full scale; it is removed, but "
            "takes as much from the room for loud sounds"
        )


def _of_speech(measured: Measured) -> Iterator[str]:
    said = measured.spoken
    if said is None:
        if measured.signals[measured.channel] is Signal.LIVE or measured.echo is not None:
            yield "no speech was heard above the noise: speak nearer, or turn the microphone up"
        return
    above_db = said.level_dbfs - measured.floor_dbfs
    if said.clipped and measured.lowered_db:
        yield (
            f"speech clips still, {measured.lowered_db:.0f} dB lower in the card: it is the "
            "microphone itself that clips, so speak from further away"
        )
    elif said.clipped:
        yield "speech clips, and the card has no lower gain: speak from further away"
    if above_db < LEAST_ABOVE_NOISE_DB:
        yield (
            f"speech is only {above_db:.0f} dB above the noise, too little to understand: "
            "bring the microphone nearer, or take the noise away"
        )
    elif above_db < NOISY_DB:
        yield f"speech is {above_db:.0f} dB above the noise: with {NOISY_DB:.0f} fewer words fail"
    wanted_db = gain_db(measured)
    if wanted_db is not None:
        reached_dbfs = said.level_dbfs + split(wanted_db, measured.hardware).total_db
        short_db = TARGET_DBFS - (reached_dbfs - said.hardware_db)
        if short_db > LEAST_ABOVE_NOISE_DB:
            yield f"speech stays {short_db:.0f} dB too soft even with all gain: speak nearer"


def _of_echo(measured: Measured, present: Present) -> Iterator[str]:
    if measured.speaker_trouble:
        yield f"nothing was played: {measured.speaker_trouble}"
    elif measured.echo is None:
        if present.echo == "gate" and measured.signals[measured.channel] is Signal.LIVE:
            yield (
                "the microphone does not hear the speaker: is it on, and turned up? (With "
                "headphones it must be so.)"
            )
    elif measured.echo.clipped:
        yield "the speaker is so loud that the microphone clips: turn it down, or move it away"
    elif present.echo == "external":
        yield (
            f"the microphone hears the speaker at {measured.echo.level_dbfs:.0f} dBFS, so nothing "
            "cancels the echo: set audio.echo to gate"
        )


def _vad(vad: Mapping[int, VadShares], present: int) -> tuple[int, str]:
    """The detector's mode to use, and a warning where none is good."""
    if present not in vad:
        return present, ""
    if vad[present].in_silence > MANY_FALSE:
        for mode in range(present + 1, max(vad) + 1):
            if vad[mode].in_silence <= FEW_FALSE and 1 - vad[mode].in_speech <= MANY_MISSED:
                return mode, ""
        share = vad[present].in_silence
        return present, f"{share:.0%} of the silence is taken for speech: take the noise away"
    if 1 - vad[present].in_speech > MANY_MISSED:
        for mode in range(present - 1, -1, -1):
            if 1 - vad[mode].in_speech <= FEW_MISSED and vad[mode].in_silence <= FEW_FALSE:
                return mode, ""
        share = 1 - vad[present].in_speech
        return present, f"{share:.0%} of your speech is not found: speak nearer"
    return present, ""


def findings(measured: Measured) -> Iterator[tuple[str, str]]:
    """The figures in words: what, and how much."""
    others = (
        f"; channel {number}: {signal}"
        for number, signal in enumerate(measured.signals)
        if number != measured.channel
    )
    yield "channel", f"{measured.channel}{''.join(others)}"
    yield "noise", f"{measured.floor_dbfs:.1f} dBFS"
    if (said := measured.spoken) is not None:
        above_db = said.level_dbfs - measured.floor_dbfs
        clips = ", CLIPPING" if said.clipped else ""
        levels = f"{said.level_dbfs:.1f} dBFS, peak {said.peak_dbfs:.1f} dBFS"
        yield "speech", f"{levels}{clips}, {above_db:.0f} dB above the noise"
    if (echo := measured.echo) is not None:
        yield (
            "speaker",
            f"heard at {echo.level_dbfs:.1f} dBFS, {echo.delay_ms:.0f} ms after writing",
        )
    for mode, shares in measured.vad.items():
        found = f"{shares.in_silence:.0%} of the silence, {shares.in_speech:.0%} of the speech"
        yield f"detector {mode}", f"finds speech in {found}"
