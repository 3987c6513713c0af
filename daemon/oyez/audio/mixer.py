"""A card's mixer: which control is the microphone's gain, and setting it.

Runs on the device thread, and in ``oyez devices``. ``choose`` is pure: it picks controls from
their descriptions. Everything else opens pyalsaaudio's mixers for a moment and closes them again,
since a mixer that is kept open fails in many ways when its card is unplugged.

pyalsaaudio ignores the driver's answer to a write, and fills in whatever stood in memory where a
control knows no dB. So every write is read back, and dB are believed only where they make sense.
"""

from __future__ import annotations

import contextlib
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from oyez.audio.alsa import library
from oyez.audio.gain import HardwareRange
from oyez.errors import AudioDeviceError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

NOMINAL_SPAN_DB = 30.0
"""What a control without dB is taken to span: microphone amplifiers have 20 to 45 dB."""
UNUSED_SHARE = 0.1
"""The lowest part of a control without dB is left alone, since it may mute."""
LEAST_DB = -30.0
"""A control may go lower, to silence even; no microphone needs that."""

_MUTED_CDB = -20_000
_SANE_CDB = (-15_000, 10_000)
_LEAST_SPAN_CDB = 300

_NEVER = {"sidetone", "loopback", "monitor", "monitoring", "talkback", "echo", "beep"}
_LINES = {"line", "linein", "cd", "aux", "phono", "video", "tv", "fm", "radio", "mix", "mixer"}
_LINES |= {"iec", "spdif", "hdmi", "modem", "synth"}
_MICS = {"mic", "mics", "microphone", "headset", "dmic", "amic", "webcam"}
_CONVERTERS = {"adc", "pga", "capture", "input"}
_OUTPUTS = {"speaker", "headphone", "headphones", "dac", "out", "output", "playback", "master"}
_OUTPUTS |= {"pcm", "lineout"}
_OUTPUT_ORDER = ("master", "speaker", "headphone", "headset", "pcm", "playback", "digital", "dac")
_SIDES = re.compile(r"\d+|\bleft\b|\bright\b|\b[lr]\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """What one direction of a control can do.

    ``lowest_db`` and ``highest_db`` are None where the driver knows no dB or talks nonsense.
    ``lowest`` and ``highest`` are its own numbers; the former is the lowest that does not mute.
    """

    lowest: int
    highest: int
    lowest_db: float | None = None
    highest_db: float | None = None

    @property
    def span_db(self) -> float:
        """How much it can change, 0 where nobody knows."""
        if self.lowest_db is None or self.highest_db is None:
            return 0.0
        return self.highest_db - self.lowest_db

    @property
    def step_db(self) -> float:
        """One step; a guess where the driver knows no dB."""
        return (self.span_db or NOMINAL_SPAN_DB) / max(1, self.highest - self.lowest)

    def __str__(self) -> str:
        if self.lowest_db is None or self.highest_db is None:
            return f"{self.lowest} to {self.highest}, without dB"
        return f"{self.lowest_db:g} to {self.highest_db:g} dB in steps of {self.step_db:.2g} dB"


@dataclass(frozen=True, slots=True, kw_only=True)
class Knob:
    """One control of a mixer as alsa-lib groups them, with what it can do in each direction.

    ``undirected`` is one whose driver does not say which way its volume works.
    """

    name: str
    index: int = 0
    capture: Volume | None = None
    playback: Volume | None = None
    undirected: bool = False
    capture_switch: bool = False
    selects: bool = False
    """Whether its capture switch turns that of others off: a choice among inputs."""
    playback_switch: bool = False
    items: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The name as amixer writes it."""
        return f"'{self.name}',{self.index}"

    @property
    def words(self) -> frozenset[str]:
        """The words of the name in small letters, without digits."""
        return frozenset(re.findall(r"[a-z]+", self.name.lower()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What was found in the mixer of ``device`` and is going to be used."""

    device: str
    capture: tuple[Knob, ...] = ()
    """The microphone's gain: one control, or one for each channel."""
    switches: tuple[Knob, ...] = ()
    """What must be on for the microphone to be heard."""
    agc: tuple[Knob, ...] = ()
    """The card's own automatic gain."""
    playback: Knob | None = None

    @property
    def hardware(self) -> HardwareRange | None:
        """The range of the microphone's gain, or None where there is no control."""
        if not self.capture or (volume := self.capture[0].capture) is None:
            return None
        step_db, steps = volume.step_db, volume.highest - volume.lowest
        if volume.lowest_db is None:
            unused = max(1, math.ceil(steps * UNUSED_SHARE))
            return HardwareRange(
                lowest_db=unused * step_db, highest_db=steps * step_db, step_db=step_db, exact=False
            )
        unused = min(steps, max(0, math.ceil((LEAST_DB - volume.lowest_db) / step_db)))
        return HardwareRange(
            lowest_db=volume.lowest_db + unused * step_db,
            highest_db=volume.lowest_db + steps * step_db,
            step_db=step_db,
        )

    def __str__(self) -> str:
        said = [f"{self.device}: "]
        if self.capture:
            labels = " and ".join(knob.label for knob in self.capture)
            said.append(f"microphone gain {labels} ({self.capture[0].capture})")
        else:
            said.append("no control for the microphone's gain, which is left to software")
        if self.agc:
            said.append(f", automatic gain of its own {self.agc[0].label}")
        if self.playback:
            said.append(f", speaker volume {self.playback.label} ({self.playback.playback})")
        return "".join(said)


# -- choosing: pure -------------------------------------------------------------------------------


def choose(device: str, knobs: Sequence[Knob]) -> Found:
    """The controls to use, by their names and by what they can do."""
    agc = tuple(knob for knob in knobs if _is_agc(knob))
    others = [knob for knob in knobs if knob not in agc]
    capture = _choose_capture(others)
    switches = tuple(
        knob
        for knob in others
        if knob.capture_switch
        and (knob in capture or (not knob.selects and (_capture_rank(knob) or 0) < 0))
    )
    playback = [(rank, knob) for knob in others if (rank := _playback_rank(knob)) is not None]
    return Found(
        device=device,
        capture=capture,
        switches=switches,
        agc=agc,
        playback=min(playback, key=lambda ranked: ranked[0])[1] if playback else None,
    )


def _choose_capture(knobs: Sequence[Knob]) -> tuple[Knob, ...]:
    ranked = [
        (rank, not knob.capture.span_db, -knob.capture.span_db, knob.index, place)
        for place, knob in enumerate(knobs)
        if knob.capture and (rank := _capture_rank(knob)) is not None
    ]
    if not ranked:
        return ()
    best = knobs[min(ranked)[-1]]
    return tuple(
        knob
        for _, _, _, index, place in sorted(ranked, key=lambda entry: entry[-1])
        if index == best.index
        and _sideless(knob := knobs[place]) == _sideless(best)
        and knob.capture == best.capture
    )


def _sideless(knob: Knob) -> str:
    """The name without its channel: ``ADC1 PGA gain`` and ``ADC2 PGA gain`` belong together."""
    return _SIDES.sub("", knob.name.lower())


def _capture_rank(knob: Knob) -> int | None:
    """The lower, the more surely it is a microphone's gain; below 0 where its switch matters too.

    The converter's amplifier that all inputs share comes first, then the input's own; a boost is
    coarse and is taken where there is nothing else; a digital gain cannot undo clipping.
    """
    words = knob.words
    is_mic = bool(words & _MICS)
    if words & _NEVER:
        return None
    if knob.undirected and (words & _OUTPUTS or not words & (_MICS | _CONVERTERS | {"boost"})):
        return None
    rules = (
        (bool(words & _LINES) and not is_mic, 5),
        ("digital" in words or "pcm" in words, 4),
        ("boost" in words, 3),
        (words == {"capture"}, -2),
        (is_mic, -1),
        (bool(words & _CONVERTERS), 1),
    )
    return next((rank for applies, rank in rules if applies), 2)


def _playback_rank(knob: Knob) -> tuple[int, int] | None:
    words = knob.words
    if knob.playback is None or words & (_NEVER | _LINES) or (words & (_MICS - {"headset"})):
        return None
    if knob.undirected and not words & _OUTPUTS:
        return None
    for rank, word in enumerate(_OUTPUT_ORDER):
        if word in words or f"{word}s" in words:
            return rank, knob.index
    return len(_OUTPUT_ORDER), knob.index


def _is_agc(knob: Knob) -> bool:
    """Whether it turns an automatic gain on and off; its levels and times are left alone."""
    if not (knob.capture_switch or knob.playback_switch or _off(knob) is not None):
        return False
    name = knob.name.lower()
    return bool(knob.words & {"agc", "alc"}) or "auto gain" in name or "automatic gain" in name


def _off(knob: Knob) -> int | None:
    """The item of a choice that means off."""
    names = [item.lower() for item in knob.items]
    return next((names.index(off) for off in ("off", "disabled", "disable") if off in names), None)


def volume(
    numbers: Sequence[int], range_cdb: Sequence[int], value: int, value_cdb: int
) -> Volume | None:
    """What a control can do, from what the driver says of it; None where it can do nothing.

    Args:
        numbers: its lowest and highest value.
        range_cdb: what it says these are, in hundredths of a dB.
        value: what it is set to.
        value_cdb: what it says that is.
    """
    lowest, highest = numbers
    if highest <= lowest:
        return None
    low_cdb, high_cdb = range_cdb
    sane_low, sane_high = _SANE_CDB
    known = sane_low <= high_cdb <= sane_high and lowest < value < highest
    if low_cdb <= _MUTED_CDB and known and sane_low <= value_cdb < high_cdb:
        # The lowest value mutes: the step follows from where it stands now.
        step_cdb = (high_cdb - value_cdb) / (highest - value)
        lowest += 1
        low_cdb = round(high_cdb - step_cdb * (highest - lowest))
    sane = sane_low <= low_cdb < high_cdb <= sane_high and high_cdb - low_cdb >= _LEAST_SPAN_CDB
    if not sane or not low_cdb - 1 <= value_cdb <= high_cdb + 1:
        return Volume(lowest=numbers[0], highest=highest)
    return Volume(
        lowest=lowest, highest=highest, lowest_db=low_cdb / 100, highest_db=high_cdb / 100
    )


# -- looking and setting --------------------------------------------------------------------------


def mixer_name(device: str) -> str:
    """The mixer that belongs to a PCM: ``hw:CARD=Device`` for ``plughw:CARD=Device,DEV=0``."""
    found = re.match(r"(?:plug)?hw:(?:CARD=)?([^,]+)", device)
    return f"hw:{'' if found[1].isdigit() else 'CARD='}{found[1]}" if found else device


def find(device: str) -> Found:
    """What the mixer of a PCM has; nothing, where there is no mixer.

    Raises:
        MissingLibraryError: pyalsaaudio is not installed.
    """
    name = mixer_name(device)
    try:
        return choose(name, tuple(knobs(name)))
    except AudioDeviceError:
        return Found(device=name)


def knobs(mixer: str) -> Iterator[Knob]:
    """Every control of a mixer. Raises AudioDeviceError, MissingLibraryError."""
    alsa = library()
    try:
        names = alsa.mixers(device=mixer)
    except alsa.ALSAAudioError as error:
        raise _failed(mixer, error) from error
    seen: dict[str, int] = {}
    for name in names:
        index = seen.get(name, 0)
        seen[name] = index + 1
        try:
            control = alsa.Mixer(name, id=index, device=mixer)
        except alsa.ALSAAudioError:  # indices with holes: nothing that a card needs
            continue
        try:
            yield _describe(alsa, control, name, index)
        finally:
            control.close()


def switch_on(found: Found) -> tuple[str, ...]:
    """Turn on what must be on for the microphone to be heard; returns what was off."""
    changed = []
    for knob in found.switches:
        with _Opened(found.device, knob) as control:
            if not all(control.getrec()):
                control.setrec(1)
                stays = "" if all(control.getrec()) else ", and stays so"
                changed.append(f"the capture switch of {knob.label} was off{stays}")
    return tuple(changed)


def turn_agc_off(found: Found) -> tuple[str, ...]:
    """Turn the card's own automatic gain off; returns what was on."""
    changed = []
    for knob in found.agc:
        with _Opened(found.device, knob) as control:
            if _is_on(control, knob):
                _turn_off(control, knob)
                stays = ", and stays so" if _is_on(control, knob) else ""
                changed.append(f"the card's automatic gain {knob.label} was on{stays}")
    return tuple(changed)


def capture_gain_db(found: Found) -> float | None:
    """What the microphone's gain is set to, in the dB of ``Found.hardware``; None without one."""
    if not found.capture:
        return None
    return min(_get(found.device, knob, capture=True) for knob in found.capture)


def set_capture_gain(found: Found, gain_db: float) -> float:
    """Set the microphone's gain; returns what it is now.

    Raises:
        AudioDeviceError: there is no such control, or the mixer cannot be opened.
    """
    if not found.capture:
        raise AudioDeviceError(f"{found.device} has no control for the microphone's gain")
    return min(_set(found.device, knob, gain_db, capture=True) for knob in found.capture)


def set_playback_volume(found: Found, volume_db: float) -> float:
    """Set the speaker's volume and turn it on; returns what it is now.

    Raises:
        AudioDeviceError: there is no such control, or the mixer cannot be opened.
    """
    knob = found.playback
    if knob is None:
        raise AudioDeviceError(
            f"{found.device} has no control for the speaker's volume",
            remedy="set audio.playback.volume_db to leave, and voice.volume_db instead",
        )
    if knob.playback_switch:
        with _Opened(found.device, knob) as control:
            control.setmute(0)
    return _set(found.device, knob, volume_db, capture=False)


class _Opened:
    """A control, open for a moment; its errors become ours."""

    def __init__(self, mixer: str, knob: Knob) -> None:
        self._mixer = mixer
        self._alsa = library()
        try:
            self._control = self._alsa.Mixer(knob.name, id=knob.index, device=mixer)
        except self._alsa.ALSAAudioError as error:
            raise _failed(mixer, error) from error

    def __enter__(self) -> Any:
        return self._control

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._control.close()
        if isinstance(error, self._alsa.ALSAAudioError):
            raise _failed(self._mixer, error) from error


def _is_on(control: Any, knob: Knob) -> bool:
    if (off := _off(knob)) is not None:
        return bool(control.getenum()[0] != knob.items[off])
    if knob.capture_switch:
        return any(control.getrec())
    return not all(control.getmute())


def _turn_off(control: Any, knob: Knob) -> None:
    if (off := _off(knob)) is not None:
        # pyalsaaudio takes the answer "changed", which drivers in user space give, for an error.
        with contextlib.suppress(library().ALSAAudioError):
            control.setenum(off)
    elif knob.capture_switch:
        control.setrec(0)
    else:
        control.setmute(1)


def _describe(alsa: Any, control: Any, name: str, index: int) -> Knob:
    volumes, switches = set(control.volumecap()), set(control.switchcap())
    items = control.getenum()
    directed = {
        kind: _volume(alsa, control, kind)
        for kind, what in ((alsa.PCM_CAPTURE, "Capture"), (alsa.PCM_PLAYBACK, "Playback"))
        if volumes & {"Volume", f"{what} Volume"}
    }
    return Knob(
        name=name,
        index=index,
        capture=directed.get(alsa.PCM_CAPTURE),
        playback=directed.get(alsa.PCM_PLAYBACK),
        undirected="Volume" in volumes,
        capture_switch="Capture Mute" in switches,
        selects="Capture Exclusive" in switches,
        playback_switch=bool(switches & {"Mute", "Playback Mute"}),
        items=tuple(items[1]) if items else (),
    )


def _volume(alsa: Any, control: Any, kind: int) -> Volume | None:
    values = control.getvolume(kind, alsa.VOLUME_UNITS_RAW)
    values_cdb = control.getvolume(kind, alsa.VOLUME_UNITS_DB)
    if not values:
        return None
    return volume(
        control.getrange(kind, alsa.VOLUME_UNITS_RAW),
        control.getrange(kind, alsa.VOLUME_UNITS_DB),
        values[0],
        values_cdb[0],
    )


def _scale(knob: Knob, *, capture: bool) -> Volume:
    found = knob.capture if capture else knob.playback
    assert found is not None  # noqa: S101 - only such knobs are chosen
    return found


def _get(mixer: str, knob: Knob, *, capture: bool) -> float:
    with _Opened(mixer, knob) as control:
        return _read(control, _scale(knob, capture=capture), capture=capture)


def _read(control: Any, scale: Volume, *, capture: bool) -> float:
    """The softest channel's gain: an uneven pair is as bad as its worse half."""
    alsa = library()
    kind = alsa.PCM_CAPTURE if capture else alsa.PCM_PLAYBACK
    if scale.lowest_db is not None:
        value_cdb: int = min(control.getvolume(kind, alsa.VOLUME_UNITS_DB))
        return max(value_cdb / 100, scale.lowest_db)  # what is muted counts as the lowest
    value: int = min(control.getvolume(kind, alsa.VOLUME_UNITS_RAW))
    return (value - scale.lowest) * scale.step_db


def _set(mixer: str, knob: Knob, gain_db: float, *, capture: bool) -> float:
    """Write once to each channel that there is, and read back: the driver may round, or refuse."""
    alsa = library()
    kind = alsa.PCM_CAPTURE if capture else alsa.PCM_PLAYBACK
    scale = _scale(knob, capture=capture)
    if scale.lowest_db is not None and scale.highest_db is not None:
        units = alsa.VOLUME_UNITS_DB
        value = round(100 * min(max(gain_db, scale.lowest_db), scale.highest_db))
    else:
        units = alsa.VOLUME_UNITS_RAW
        value = scale.lowest + round(gain_db / scale.step_db)
        value = min(max(value, scale.lowest), scale.highest)
    with _Opened(mixer, knob) as control:
        control.setvolume(value, alsa.MIXER_CHANNEL_ALL, kind, units)
        return _read(control, scale, capture=capture)


def _failed(mixer: str, error: Exception) -> AudioDeviceError:
    text = str(error).removesuffix(f" [{mixer}]")
    return AudioDeviceError(f"the mixer of {mixer} cannot be used: {text}")
