"""How much a microphone is amplified: the level of speech, the policy, its memory, the amplifier.

Pure but for ``GainMemory``, which reads and writes one small file. ``AutoGain`` belongs to main,
which is told of every utterance; ``audio.amplifier`` applies the software part.

The policy, in words. Speech shall stand at -22 dBFS RMS: loud enough for every recognizer and
vocoder of 16 bits, with 22 dB left for the peaks of speech, which reach 12 to 20 dB above it. The
card's own gain is moved first, since what it adds comes before the converter's noise, and what it
takes away comes before the converter's limit. The rest is done by multiplication.

- Down at once when the microphone clips, for a clipped wave cannot be mended later.
- Otherwise one step after an utterance, by the error of the last two, and only if both say the
  same: people differ by more than 3 dB from one sentence to the next. A gain that nobody has
  chosen yet is mended after the first. Steps are as large as the error, since many small ones would
  cost the person that many badly understood sentences; up, they end at 15 dB.
- Up only on speech: there was silence after it, there was text in it, and it stood 10 dB above the
  noise. A detector that takes noise for speech gives no end in silence, or no height above it.
- Never against the last step within 5 s, which would be hunting.
- Never so high that the peaks heard would come within 6 dB of the level where clipping was seen.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import tempfile
from collections import deque
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from oyez.audio.amplifier import SOFTWARE_HEADROOM_DB
from oyez.errors import OutputError

if TYPE_CHECKING:
    from pathlib import Path

    from oyez.audio.levels import PerChannel

TARGET_DBFS = -22.0
DEAD_BAND_DB = 2.0
"""Errors up to this are left alone: speech itself varies by more."""
MOST_UP_DB = 15.0
MOST_DOWN_DB = 18.0
CLIPPED_DOWN_DB = 6.0
"""The least step down when clipping: how far the wave would have gone, nobody knows."""
HEADROOM_DB = 6.0
"""What stays between the peaks of speech and the clipping level when the card's gain goes up."""
LEAST_ABOVE_NOISE_DB = 10.0
LEAST_STEP_DB = 0.5
REVERSAL_MS = 5000
INEXACT_SHARE = 1 / 3
"""What a control without true dB takes of a change: software, which is exact, does the rest.

Should its steps be twice as large as was guessed, the error shrinks to a third with every step.
"""
SOFTWARE_LEAST_DB = -20.0
SOFTWARE_MOST_DB = 30.0

ACTIVE_QUANTILE = 0.9
ACTIVE_BELOW_DB = 15.0
ACTIVE_ABOVE_DB = 6.0


def active_level_dbfs(rms: PerChannel) -> float:
    """The RMS level of active speech from that of its voiced blocks (float [n], n >= 1).

    The mean power of the blocks that are less than 15 dB below the 90th percentile, as ITU-T P.56
    measures what is less than 15.9 dB below the level itself: pauses do not count. The reference
    is a percentile, and no block counts for more than 6 dB above it, so that a click counts little.
    """
    level_db = 20 * np.log10(np.maximum(rms, 1e-6))
    reference = float(np.quantile(level_db, ACTIVE_QUANTILE))
    active = np.minimum(
        level_db[level_db >= reference - ACTIVE_BELOW_DB], reference + ACTIVE_ABOVE_DB
    )
    return 10 * math.log10(float(np.mean(10 ** (active / 10))))


@dataclass(frozen=True, slots=True, kw_only=True)
class HardwareRange:
    """What the card's capture control can do: ``lowest_db + n * step_db`` up to ``highest_db``.

    Where the driver knows no dB, they are a guess, and ``exact`` is false.
    """

    lowest_db: float
    highest_db: float
    step_db: float
    exact: bool = True

    def at_most(self, gain_db: float) -> float:
        """The highest gain that the control has and that is not above this, if there is one."""
        # Ranges come in hundredths of a dB, so that a step may be short by a rounding.
        steps = math.floor((gain_db - self.lowest_db) / self.step_db + 0.01)
        last = round((self.highest_db - self.lowest_db) / self.step_db)
        return self.lowest_db + min(max(steps, 0), last) * self.step_db


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """The card's own gain, in its own dB (0 where it has none), and that of the multiplication."""

    hardware_db: float
    software_db: float

    @property
    def total_db(self) -> float:
        """Both together."""
        return self.hardware_db + self.software_db

    def __str__(self) -> str:
        return f"{self.hardware_db:+.1f} dB in the card, {self.software_db:+.1f} dB in software"


def split(total_db: float, hardware: HardwareRange | None) -> Gain:
    """A gain as the card's own as far as that reaches, and the rest in software, within limits.

    This is also what a fixed ``gain_db`` of the configuration means.
    """
    hardware_db = hardware.at_most(total_db) if hardware else 0.0
    rest = min(max(total_db - hardware_db, SOFTWARE_LEAST_DB), SOFTWARE_MOST_DB)
    return Gain(hardware_db=hardware_db, software_db=round(rest, 2))


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoken:
    """One utterance as the card delivered it, before any software gain.

    ``level_dbfs`` is that of ``active_level_dbfs``; ``floor_dbfs`` the noise floor at its end.
    """

    level_dbfs: float
    peak_dbfs: float
    floor_dbfs: float
    clipped: bool
    ended_in_silence: bool
    has_text: bool


class Reason(StrEnum):
    """Why the gain was changed, or why it was not although it should be."""

    CLIPPED = "the microphone clips"
    LOUD = "speech is too loud"
    SOFT = "speech is too soft"
    STUCK = "the microphone clips, and the card has no lower gain"
    UPSTREAM = "the microphone clips before the card's gain, which cannot help"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A decision: the gain from now on. It is that of before when nothing can be done."""

    gain: Gain
    reason: Reason
    level_dbfs: float

    def __str__(self) -> str:
        what = f"{self.reason} ({self.level_dbfs:.1f} dBFS, wanted {TARGET_DBFS:.0f} dBFS)"
        return what if self.in_vain else f"{what}: now {self.gain}"

    @property
    def in_vain(self) -> bool:
        """Whether nothing can be done here: the person must move, or the microphone."""
        return self.reason in (Reason.STUCK, Reason.UPSTREAM)


@dataclass(frozen=True, slots=True)
class _Heard:
    """One utterance as it would be at a hardware gain of 0 dB."""

    level_db: float
    peak_db: float


class AutoGain:
    """Decides the gain from utterances. No clock: the caller says the time, in ms of the stream.

    Args:
        hardware: what the card can do, or None.
        gain: what is set now.
        proven: whether that gain was remembered, rather than found.
    """

    def __init__(self, hardware: HardwareRange | None, gain: Gain, *, proven: bool) -> None:
        self.gain = gain
        self._hardware = hardware
        self._heard: deque[_Heard] = deque(maxlen=2)
        self._agree = 2 if proven else 1
        self._clip_level_dbfs = 0.0
        self._stepped = False
        self._last_ms = -math.inf
        self._last_sign = 0.0
        self._said_stuck = False
        self._upstream = False
        self._cut_at: tuple[float, float] | None = None  # peak in dBFS, the card's gain then

    def clips(self, level_dbfs: float, peak_dbfs: float, now_ms: float) -> Step | None:
        """The microphone clips while somebody speaks; to be called as often as that is seen.

        Args:
            level_dbfs: the active level of what was said so far.
            peak_dbfs: its peak, which is where the wave was cut.
            now_ms: where the stream is.
        """
        if self._stepped:
            return None
        before = self.gain
        self._clip_level_dbfs = min(self._clip_level_dbfs, peak_dbfs)
        self._look_upstream(peak_dbfs)
        if not self._can_cure:
            if self._said_stuck:
                return None
            self._said_stuck = True
            reason = Reason.UPSTREAM if self._upstream else Reason.STUCK
            return Step(gain=before, reason=reason, level_dbfs=level_dbfs)
        if not self._may(-1.0, now_ms):
            return None
        assert self._hardware is not None  # noqa: S101 - it can go lower
        self._cut_at = (peak_dbfs, before.hardware_db)
        self._said_stuck = False
        down_db = min(max(level_dbfs - TARGET_DBFS, CLIPPED_DOWN_DB), MOST_DOWN_DB)
        hardware_db = self._hardware.at_most(before.hardware_db - down_db)
        level_dbfs_then = level_dbfs + hardware_db - before.hardware_db
        # What is clipped is never amplified, and what is loud is brought down.
        software_db = min(0.0, max(TARGET_DBFS - level_dbfs_then, SOFTWARE_LEAST_DB))
        gain = Gain(hardware_db=hardware_db, software_db=round(software_db, 2))
        return self._step(gain, Reason.CLIPPED, level_dbfs, now_ms)

    def utterance(self, spoken: Spoken, now_ms: float) -> Step | None:
        """An utterance has ended, with or without text; at most one step follows."""
        step = self._after(spoken, now_ms)
        self._stepped = False
        return step

    def blip(self) -> None:
        """What began like an utterance was none. A step that was taken meanwhile stands."""
        self._stepped = False

    def granted(self, hardware_db: float) -> None:
        """What the mixer made of the last step, where that is something else."""
        self.gain = Gain(hardware_db=hardware_db, software_db=self.gain.software_db)

    def _after(self, spoken: Spoken, now_ms: float) -> Step | None:
        if self._stepped:  # its level is a mixture of two gains
            return None
        if spoken.clipped and (self._can_cure or not self._said_stuck):
            return self.clips(spoken.level_dbfs, spoken.peak_dbfs, now_ms)
        above_db = spoken.level_dbfs - spoken.floor_dbfs
        if not (spoken.has_text and spoken.ended_in_silence and above_db >= LEAST_ABOVE_NOISE_DB):
            return None
        at_zero = self.gain.hardware_db
        self._heard.append(_Heard(spoken.level_dbfs - at_zero, spoken.peak_dbfs - at_zero))
        error = self._agreed_error()
        if abs(error) <= DEAD_BAND_DB or not self._may(error, now_ms):
            return None
        gain = self._towards(self.gain.total_db + min(max(error, -MOST_DOWN_DB), MOST_UP_DB))
        change_db = gain.total_db - self.gain.total_db
        # Headroom or a limit may leave nothing that is worth it, and what clips is not amplified.
        worth_it = change_db * error > 0 and abs(change_db) >= LEAST_STEP_DB
        if not worth_it or (spoken.clipped and change_db > 0):
            return None
        return self._step(
            gain, Reason.SOFT if error > 0 else Reason.LOUD, spoken.level_dbfs, now_ms
        )

    def _agreed_error(self) -> float:
        """How far speech is from the target; 0 where too few utterances say so, or not the same."""
        errors = [TARGET_DBFS - heard.level_db - self.gain.total_db for heard in self._heard]
        if len(errors) < self._agree or min(errors) * max(errors) < 0:
            return 0.0
        return min(errors, key=abs)

    def _look_upstream(self, peak_dbfs: float) -> None:
        """Whether the level of the cut came down with the gain: then it is made before the gain.

        So it is with a microphone that is overdriven, or a volume that comes after the converter.
        """
        if self._cut_at is None:
            return
        cut_dbfs, hardware_db = self._cut_at
        lowered_db = hardware_db - self.gain.hardware_db
        if lowered_db >= LEAST_STEP_DB:
            self._upstream = cut_dbfs - peak_dbfs > lowered_db / 2
        elif lowered_db < 0:
            self._upstream = False

    def _towards(self, total_db: float) -> Gain:
        """The gain nearest to this total that leaves the peaks their headroom."""
        peak_db = max(heard.peak_db for heard in self._heard)
        before_db = hardware_db = self.gain.hardware_db
        if self._hardware:
            share = 1.0 if self._hardware.exact else INEXACT_SHARE
            wanted_db = before_db + share * (total_db - before_db)
            most_db = self._clip_level_dbfs - HEADROOM_DB - peak_db
            hardware_db = self._hardware.at_most(min(wanted_db, max(most_db, before_db)))
        rest = min(total_db - hardware_db, -SOFTWARE_HEADROOM_DB - peak_db - hardware_db)
        rest = min(max(rest, SOFTWARE_LEAST_DB), SOFTWARE_MOST_DB)
        return Gain(hardware_db=hardware_db, software_db=round(rest, 2))

    @property
    def _can_cure(self) -> bool:
        """Whether the card's gain, turned down, may end the clipping."""
        hardware = self._hardware
        lowest_db = hardware.lowest_db if hardware else math.inf
        return self.gain.hardware_db > lowest_db and not self._upstream

    def _may(self, sign: float, now_ms: float) -> bool:
        return sign * self._last_sign >= 0 or now_ms - self._last_ms >= REVERSAL_MS

    def _step(self, gain: Gain, reason: Reason, level_dbfs: float, now_ms: float) -> Step:
        self._last_sign = math.copysign(1.0, gain.total_db - self.gain.total_db)
        self._last_ms = now_ms
        self._stepped = True
        guessed = self._hardware is not None and not self._hardware.exact
        if reason is Reason.CLIPPED or (guessed and gain.hardware_db != self.gain.hardware_db):
            # The level beside clipped waves is no measure of what comes, and neither is a step of
            # unknown size: the next utterance tells anew.
            self._heard.clear()
            self._agree = 1
        else:
            self._agree = 2
        self.gain = gain
        return Step(gain=gain, reason=reason, level_dbfs=level_dbfs)


class GainMemory:
    """The gains of devices, kept across restarts in one JSON file: ``{device: {...}}``.

    Main or the device thread only. A key names card and control, so that another card does not
    inherit a gain that was never its own.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.note = ""
        """Why what was in the file is not used; empty when all is well."""
        self._gains = self._read()

    def recall(self, device: str) -> Gain | None:
        """The gain that was last kept for this device."""
        return self._gains.get(device)

    def keep(self, device: str, gain: Gain) -> None:
        """Keep a gain. The file is whole at any time: the new one takes the old one's place.

        Raises:
            OutputError: the file cannot be written; the gain is remembered until the end.
        """
        if self._gains.get(device) == gain:
            return
        self._gains[device] = gain
        content = {
            key: {"hardware_db": kept.hardware_db, "software_db": kept.software_db}
            for key, kept in self._gains.items()
        }
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            _replace(self._path, json.dumps(content, indent=1, ensure_ascii=False) + "\n")
        except OSError as error:
            raise OutputError(
                f"the gain cannot be kept in {self._path}: {error.strerror}",
                remedy="see to the folder's owner, mode and free space",
            ) from error

    def _read(self) -> dict[str, Gain]:
        try:
            content = json.loads(self._path.read_bytes())
            return {str(device): _gain(entry) for device, entry in content.items()}
        except FileNotFoundError:
            return {}
        except OSError as error:
            self.note = f"the remembered gain in {self._path} cannot be read: {error.strerror}"
        except (ValueError, AttributeError, TypeError, KeyError, RecursionError):
            self.note = f"the remembered gain in {self._path} is damaged and is not used"
        return {}


def _gain(entry: dict[str, float]) -> Gain:
    gain = Gain(hardware_db=float(entry["hardware_db"]), software_db=float(entry["software_db"]))
    if not (math.isfinite(gain.hardware_db) and math.isfinite(gain.software_db)):
        raise ValueError("a gain must be finite")
    return gain


def _replace(path: Path, text: str) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with open(handle, "w", encoding="utf-8") as file:  # noqa: PTH123 - a descriptor
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)  # noqa: PTH105 - a name, not a Path
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(name)  # noqa: PTH108 - a name, not a Path
        raise
