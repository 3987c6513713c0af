"""What sound cards the kernel knows: read from /proc/asound, opened nowhere.

Runs on the device thread and in ``oyez devices``. A card is named by its id (``hw:CARD=Device``),
never by its index: the index changes with the order in which plugs are found.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

_PCM_FOLDER = re.compile(r"pcm(\d+)([cp])")
_NAME = re.compile(r"^ *(\d+) \[.*?\]: (?P<driver>.*?) - (?P<name>.*)$", re.MULTILINE)


class Direction(StrEnum):
    """Which way the sound goes."""

    CAPTURE = "capture"
    PLAYBACK = "playback"


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A card: ``capture`` and ``playback`` are the numbers of its devices of each kind."""

    index: int
    id: str
    name: str
    usb: bool
    capture: tuple[int, ...]
    playback: tuple[int, ...]

    def devices(self, direction: Direction) -> tuple[int, ...]:
        """Its devices that go this way."""
        return self.capture if direction is Direction.CAPTURE else self.playback

    def device_name(self, device: int) -> str:
        """ALSA's stable name of one of its devices."""
        return f"hw:CARD={self.id},DEV={device}"


def cards(root: Path) -> list[Card]:
    """All cards, by index; none where the kernel has no sound at all."""
    try:
        listing = (root / "cards").read_text(errors="replace")
    except OSError:
        return []
    names = {int(found[1]): found["name"].strip() for found in _NAME.finditer(listing)}
    found = []
    for folder in root.glob("card[0-9]*"):
        try:
            card_id = (folder / "id").read_text(errors="replace").strip()
            entries = sorted(entry.name for entry in folder.iterdir())
        except OSError:  # it was unplugged just now
            continue
        index = int(folder.name.removeprefix("card"))
        pcms = [match for entry in entries if (match := _PCM_FOLDER.fullmatch(entry))]
        found.append(
            Card(
                index=index,
                id=card_id,
                name=names.get(index, card_id),
                usb="usbid" in entries,
                capture=tuple(int(pcm[1]) for pcm in pcms if pcm[2] == "c"),
                playback=tuple(int(pcm[1]) for pcm in pcms if pcm[2] == "p"),
            )
        )
    return sorted(found, key=lambda card: card.index)


def resolve(wish: str, direction: Direction, known: list[Card]) -> str | None:
    """The ALSA name to open for what the configuration says; None when no card fits.

    ``auto`` is a USB card before one that is built in, since whoever plugs one in wants it used,
    then the lowest index; without any card it is None. A part of a card's name is its first
    device. What looks like a name of ALSA's (``hw:``, ``plughw:``, ``default``) is taken as it is.
    """
    fitting = [card for card in known if card.devices(direction)]
    if wish == "auto":
        fitting.sort(key=lambda card: (not card.usb, card.index))
    elif ":" in wish or wish in ("default", "sysdefault", "pulse", "pipewire"):
        return wish
    else:
        part = wish.casefold()
        fitting = [card for card in fitting if part in f"{card.id} {card.name}".casefold()]
    if not fitting:
        return None
    return fitting[0].device_name(fitting[0].devices(direction)[0])


def holder(device_name: str, direction: Direction, root: Path) -> str:
    """Who holds a device, as ``name (process 123)``; empty when /proc does not tell."""
    match = re.match(r"(?:plug)?hw:(?:CARD=)?([^,]+)(?:,(?:DEV=)?(\d+))?", device_name)
    if match is None:
        return ""
    kind = "c" if direction is Direction.CAPTURE else "p"
    for card in cards(root):
        if match[1] not in (card.id, str(card.index)):
            continue
        pcm = root / f"card{card.index}" / f"pcm{match[2] or 0}{kind}"
        for status in sorted(pcm.glob("sub*/status")):
            if owner := _owner(status):
                return owner
    return ""


def _owner(status: Path) -> str:
    try:
        found = re.search(r"owner_pid\s*:\s*(\d+)", status.read_text())
        if found is None:
            return ""
        # The owner is a thread; its process has the name that people know.
        process = Path("/proc") / found[1] / "status"
        fields = dict(
            line.split(":", 1) for line in process.read_text().splitlines() if ":" in line
        )
        number = int(fields["Tgid"])
        name = (Path("/proc") / str(number) / "comm").read_text().strip()
    except (OSError, KeyError, ValueError):
        return ""
    return f"{name} (process {number})" if number != os.getpid() else "Oyez itself"
