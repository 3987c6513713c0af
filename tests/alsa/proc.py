"""Writes a folder in the shape of /proc/asound, for cards that the kernel does not know.

alsaaudio.cards() and card_indexes() ask the kernel through /dev/snd, so they never list a test
card. A program that finds its cards in /proc/asound, under a root that it is given, finds these.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcCard:
    """What /proc/asound tells of a card."""

    index: int
    id: str
    driver: str
    name: str
    longname: str
    has_playback: bool
    has_capture: bool

    @property
    def directions(self) -> str:
        """The letters of its devices: p, c or both."""
        return "p" * self.has_playback + "c" * self.has_capture


def write_card(root: Path, card: ProcCard, state: Path) -> None:
    """Adds a card: card0/id, card0/pcm0c/info, card0/pcm0c/sub0/status and so on."""
    folder = root / f"card{card.index}"
    # Made aside and renamed, so that nobody sees half a card.
    unfinished = root / f".card{card.index}"
    unfinished.mkdir()
    (unfinished / "id").write_text(f"{card.id}\n")
    for letter in card.directions:
        device = unfinished / f"pcm0{letter}"
        (device / "sub0").mkdir(parents=True)
        info = _info(card, "CAPTURE" if letter == "c" else "PLAYBACK")
        (device / "info").write_text(info)
        (device / "sub0" / "info").write_text(info)
        (device / "sub0" / "status").write_text("closed\n")
        (device / "sub0" / "hw_params").write_text("closed\n")
    (unfinished / "state").symlink_to(state)
    unfinished.rename(folder)
    (root / card.id).symlink_to(folder.name)


def remove_card(root: Path, card: ProcCard) -> None:
    """Takes a card away; what was open on it stays open."""
    (root / card.id).unlink()
    folder = root / f"card{card.index}"
    aside = root / f".card{card.index}"
    folder.rename(aside)
    shutil.rmtree(aside)


def write_lists(root: Path, cards: list[ProcCard]) -> None:
    """Writes the files that list all cards: `cards` and `pcm`."""
    cards = sorted(cards, key=lambda card: card.index)
    listing = "".join(
        f"{card.index:2d} [{card.id:<15s}]: {card.driver} - {card.name}\n"
        f"                      {card.longname}\n"
        for card in cards
    )
    _replace(root / "cards", listing or "--- no soundcards ---\n")
    _replace(
        root / "pcm",
        "".join(
            f"{card.index:02d}-00: {card.name} : {card.name} :"
            + " playback 1 :" * card.has_playback
            + " capture 1" * card.has_capture
            + "\n"
            for card in cards
        ),
    )


def _info(card: ProcCard, stream: str) -> str:
    return (
        f"card: {card.index}\ndevice: 0\nsubdevice: 0\nstream: {stream}\nid: {card.name}\n"
        f"name: {card.name}\nsubname: subdevice #0\nclass: 0\nsubclass: 0\n"
        "subdevices_count: 1\nsubdevices_avail: 1\n"
    )


def _replace(path: Path, text: str) -> None:
    unfinished = path.with_name(f".{path.name}")
    unfinished.write_text(text)
    unfinished.replace(path)
