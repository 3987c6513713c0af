"""`oyez devices`: the sound devices there are, what each really supports, and who holds them.

Main's thread only. Each device is opened for a moment, since only its driver knows what it can do.
One that cannot be opened is a line like the others, with the reason.
"""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from oyez.audio import alsa, cards, mixer, portaudio
from oyez.audio.cards import Direction
from oyez.audio.recovery import Fault
from oyez.errors import AudioDeviceError, MissingLibraryError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from oyez.audio.alsa import Offer
    from oyez.audio.cards import Card
    from oyez.audio.mixer import Found, Knob
    from oyez.audio.portaudio import Listed

NO_CARD = """\
no sound card: the kernel knows of none
  Plug one in (a USB microphone or headset needs no driver), or have the board's own turned on.
  `lsusb` and `dmesg` tell whether the kernel has seen it."""
_DENIED = os.strerror(errno.EACCES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One device of a card: ``offer`` is what it supports, or ``problem`` why nobody can tell.

    ``holder`` is who uses it, where that is known; ``auto`` whether the word auto means it.
    """

    name: str
    direction: Direction
    auto: bool
    offer: Offer | None = None
    problem: str = ""
    holder: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A card with its devices and its mixer; ``mixer_problem`` is why the latter is not known."""

    card: Card
    devices: tuple[Device, ...]
    knobs: tuple[Knob, ...] = ()
    found: Found | None = None
    mixer_problem: str = ""


def survey(proc_asound: Path) -> list[Seen]:
    """All cards, by index."""
    known = cards.cards(proc_asound)
    auto = {direction: cards.resolve("auto", direction, known) for direction in Direction}
    return [_seen(card, auto, proc_asound) for card in known]


def _seen(card: Card, auto: dict[Direction, str | None], proc_asound: Path) -> Seen:
    devices = tuple(
        _device(card.device_name(number), direction, auto, proc_asound)
        for direction in Direction
        for number in card.devices(direction)
    )
    name = mixer.mixer_name(card.device_name(0))
    try:
        knobs = tuple(mixer.knobs(name))
    except (AudioDeviceError, MissingLibraryError) as error:
        return Seen(card=card, devices=devices, mixer_problem=error.message)
    return Seen(card=card, devices=devices, knobs=knobs, found=mixer.choose(name, knobs))


def _device(
    name: str, direction: Direction, auto: dict[Direction, str | None], proc_asound: Path
) -> Device:
    is_auto = auto[direction] == name
    holder = cards.holder(name, direction, proc_asound)
    try:
        offer = alsa.probe(name, direction)
    except alsa.OpenError as error:
        problem = f"{error.fault}: {error.reason}"
        if error.fault is Fault.BUSY:
            problem = f"{error.fault}: {holder or 'nobody knows by whom'}"
        elif error.reason == _DENIED:
            problem += " (are you in the group audio?)"
    except MissingLibraryError as error:
        problem = str(error)
    else:
        return Device(name=name, direction=direction, auto=is_auto, offer=offer, holder=holder)
    return Device(name=name, direction=direction, auto=is_auto, problem=problem, holder=holder)


def sound_server() -> Sequence[Listed]:
    """What PortAudio offers, where it is installed: for machines without a card of their own."""
    try:
        return portaudio.listed()
    except MissingLibraryError:
        return []


def lines(seen: Sequence[Seen], offered: Sequence[Listed]) -> Iterator[str]:
    """The survey for a person; ``offered`` is what ``sound_server`` found."""
    if not seen:
        yield NO_CARD
    if offered:
        yield "PortAudio (a sound server) offers:"
    for other in offered:
        yield f"  {other.name}: {other.inputs} in, {other.outputs} out, {other.rate_hz} Hz"
    for entry in seen:
        card = entry.card
        yield f"{card.id}: {card.name} (card {card.index}{', USB' if card.usb else ''})"
        for device in entry.devices:
            yield f"  {device.direction:<8}  {device.name}{_marks(device)}"
            yield f"            {_shown(device.offer) if device.offer else device.problem}"
        yield from _mixer_lines(entry)


def _marks(device: Device) -> str:
    return "  (auto takes this one)" if device.auto else ""


def _shown(offer: Offer) -> str:
    return (
        f"{', '.join(offer.formats) or 'no format that Oyez can read'}; "
        f"{_numbers(offer.rates_hz)} Hz; {_numbers(offer.channels)} ch"
    )


def _numbers(values: Sequence[int]) -> str:
    """The values, rows without holes as a range."""
    ordered = sorted(values)
    if len(ordered) > 2 and ordered == list(range(ordered[0], ordered[-1] + 1)):  # noqa: PLR2004
        return f"{ordered[0]} to {ordered[-1]}"
    return ", ".join(map(str, ordered))


def _mixer_lines(entry: Seen) -> Iterator[str]:
    if entry.mixer_problem:
        yield f"  mixer     {entry.mixer_problem}"
    elif not entry.knobs:
        yield "  mixer     none: gain and volume are left to software"
    for knob in entry.knobs:
        does = [
            f"{direction} {volume}"
            for direction, volume in (("capture", knob.capture), ("playback", knob.playback))
            if volume is not None
        ]
        does += ["switch"] if knob.capture_switch or knob.playback_switch else []
        does += [" | ".join(knob.items)] if knob.items else []
        use = _use(entry, knob)
        yield f"  mixer     {knob.label}: {'; '.join(does) or '-'}{f'  ({use})' if use else ''}"


def _use(entry: Seen, knob: Knob) -> str:
    found = entry.found
    if found is None:
        return ""
    uses = [
        use
        for use, there in (
            ("the microphone's gain", knob in found.capture),
            ("turned on", knob in found.switches),
            ("turned off", knob in found.agc),
            ("the speaker's volume", knob == found.playback),
        )
        if there
    ]
    return ", ".join(uses)


def fields(seen: Sequence[Seen], offered: Sequence[Listed]) -> Iterator[dict[str, Any]]:
    """The survey for a program: an object for each card, and for each device of PortAudio's."""
    for entry in seen:
        card = entry.card
        yield {
            "card": card.id,
            "name": card.name,
            "index": card.index,
            "usb": card.usb,
            "devices": [_device_fields(device) for device in entry.devices],
            "mixer": [
                {
                    "control": knob.label,
                    "capture": str(knob.capture) if knob.capture else None,
                    "playback": str(knob.playback) if knob.playback else None,
                    "use": _use(entry, knob) or None,
                }
                for knob in entry.knobs
            ],
            "mixer_problem": entry.mixer_problem or None,
        }
    for device in offered:
        yield {"portaudio": device.name, "inputs": device.inputs, "outputs": device.outputs}


def _device_fields(device: Device) -> dict[str, Any]:
    offer = device.offer
    return {
        "device": device.name,
        "direction": device.direction.value,
        "auto": device.auto,
        "formats": [f.value for f in offer.formats] if offer else None,
        "rates_hz": sorted(offer.rates_hz) if offer else None,
        "channels": sorted(offer.channels) if offer else None,
        "problem": device.problem or None,
        "holder": device.holder or None,
    }
