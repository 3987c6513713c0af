"""The knobs of a test card's mixer."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from alsa.layout import NUMBERS


class Kind(enum.IntEnum):
    """SND_CTL_ELEM_TYPE_*."""

    SWITCH = 1
    VOLUME = 2
    ENUM = 3


class Role(enum.IntEnum):
    """What a control truly does to the sound."""

    NONE = NUMBERS["ROLE_NONE"]
    CAPTURE_GAIN = NUMBERS["ROLE_CAPTURE_GAIN"]
    CAPTURE_SWITCH = NUMBERS["ROLE_CAPTURE_SWITCH"]
    PLAYBACK_GAIN = NUMBERS["ROLE_PLAYBACK_GAIN"]
    PLAYBACK_SWITCH = NUMBERS["ROLE_PLAYBACK_SWITCH"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """One control, under the name that a driver gives it ("Mic Capture Volume")."""

    name: str
    kind: Kind
    role: Role = Role.NONE
    index: int = 0
    channels: int = 1
    minimum: int = 0
    maximum: int = 1
    value: int = 0
    gain_minimum_cdb: int = 0
    """What it truly does at the minimum, in hundredths of a decibel."""
    gain_step_cdb: int = 0
    """And for each step above it."""
    tlv: tuple[int, ...] = ()
    """What it says of its decibels, word by word; empty: nothing."""
    items: tuple[str, ...] = ()


def db_scale(minimum_cdb: int, step_cdb: int, *, mutes: bool = False) -> tuple[int, ...]:
    """The words that say: so many hundredths of a decibel at the minimum, so many a step."""
    return (1, 8, minimum_cdb & 0xFFFFFFFF, step_cdb | (mutes << 16))


def db_range(minimum_cdb: int, maximum_cdb: int) -> tuple[int, ...]:
    """The words that say: linear in decibels between these two."""
    return (4, 8, minimum_cdb & 0xFFFFFFFF, maximum_cdb & 0xFFFFFFFF)


def volume(
    name: str,
    *,
    role: Role = Role.CAPTURE_GAIN,
    minimum: int = 0,
    maximum: int = 31,
    value: int = 11,
    minimum_cdb: int = -1650,
    step_cdb: int = 150,
    channels: int = 1,
    tlv: tuple[int, ...] | None = None,
) -> Control:
    """A volume; as it stands, from -16.5 to +30 dB in steps of 1.5 dB, set to 0 dB.

    ``tlv`` is what it says of its decibels: the truth unless told otherwise, and nothing if empty.
    """
    return Control(
        name=name,
        kind=Kind.VOLUME,
        role=role,
        channels=channels,
        minimum=minimum,
        maximum=maximum,
        value=value,
        gain_minimum_cdb=minimum_cdb,
        gain_step_cdb=step_cdb,
        tlv=db_scale(minimum_cdb, step_cdb) if tlv is None else tlv,
    )


def switch(
    name: str, *, role: Role = Role.CAPTURE_SWITCH, on: bool = True, channels: int = 1
) -> Control:
    """A switch; as it stands, one that mutes the microphone when off."""
    return Control(name=name, kind=Kind.SWITCH, role=role, value=int(on), channels=channels)


def choice(name: str, items: tuple[str, ...], *, value: int = 0) -> Control:
    """A choice among names, such as Off and On of an automatic gain."""
    return Control(name=name, kind=Kind.ENUM, maximum=len(items) - 1, value=value, items=items)
