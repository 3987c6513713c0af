"""The device's thread, ``oyez-device``: finds, opens and reopens the cards, and watches for plugs.

It owns everything about a card that may take time: looking it up, opening it, its mixer, /proc.
Opened handles go to the audio thread (``rt/card.py``); those that failed come back through the
inbox. For each end there is one handle at most, here or there.
"""

from __future__ import annotations

import random
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from oyez.audio import alsa, cards, mixer
from oyez.audio.cards import Direction
from oyez.audio.recovery import Action, Fault, Recovery
from oyez.errors import AudioDeviceError
from oyez.messages import ThreadFailed
from oyez.rt.card import Returned

if TYPE_CHECKING:
    from pathlib import Path

    from oyez.audio.alsa import Handle, Wish
    from oyez.audio.mixer import Found
    from oyez.audio.pcm import SampleFormat
    from oyez.rt.card import CardCapture, CardPlayback
    from oyez.rt.mailbox import Mailbox

INBOX_MESSAGES = 16
"""Two ends with one handle each: it never fills."""
PLUG_LOOK_S = 0.5
"""How often a missing card is looked for: reading /proc/asound costs 0.1 ms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceOpened:
    """A card was opened.

    ``complaints`` are the wishes that its driver did not grant, and what had to be put right.
    ``hardware_db`` is the microphone's gain in the card now; None where it has no control.
    """

    direction: Direction
    device: str
    handle: str
    sample_format: SampleFormat
    complaints: tuple[str, ...]
    mixer: Found
    hardware_db: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetGain:
    """Main asks the device's thread to set the microphone's gain in the card."""

    hardware_db: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GainSet:
    """What the card made of it."""

    hardware_db: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceLost:
    """A card cannot be used, or no longer; the device's thread goes on trying."""

    direction: Direction
    device: str
    fault: Fault
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelWishes:
    """The configuration's ``capture.gain_db`` and ``playback.volume_db``."""

    gain_db: float | Literal["auto", "leave"]
    volume_db: float | Literal["leave"]


@dataclass(slots=True)
class _Side:
    """One end: what is wished for, and how its card is doing."""

    direction: Direction
    device: str
    wish: Wish
    end: CardCapture | CardPlayback
    recovery: Recovery
    resolved: str = ""
    due_s: float | None = 0.0  # the next attempt; None while the handle is with the audio thread
    told: Fault | None = None  # the fault that main was told last, so that each is told once
    seen: frozenset[str] = frozenset()
    mixer: Found | None = None


class DeviceThread(threading.Thread):
    """Keeps both ends supplied with an opened card, for as long as there is any hope.

    Args:
        main: told of every card that is opened or lost, and of the end.
        inbox: where the audio thread returns handles.
        proc_asound: the kernel's folder of cards.
        levels: what the mixers are to be set to.
    """

    def __init__(
        self,
        *,
        main: Mailbox[object],
        inbox: Mailbox[object],
        proc_asound: Path,
        levels: LevelWishes,
    ) -> None:
        super().__init__(name="oyez-device", daemon=True)
        self._main = main
        self._inbox = inbox
        self._proc_asound = proc_asound
        self._levels = levels
        self._sides: list[_Side] = []
        self._stopping = False

    def keep(
        self, direction: Direction, device: str, wish: Wish, end: CardCapture | CardPlayback
    ) -> None:
        """Supply ``end`` with what ``device`` names. Before ``start``."""
        recovery = Recovery(random.random)
        self._sides.append(
            _Side(direction=direction, device=device, wish=wish, end=end, recovery=recovery)
        )

    def set_gain(self, hardware_db: float) -> None:
        """Set the microphone's gain in the card; main is told what it became. Any thread."""
        self._inbox.post(SetGain(hardware_db=hardware_db))

    def stop(self) -> None:
        """Close what is here and end. Any thread; the audio thread must have ended."""
        self._stopping = True
        self._inbox.wake()

    def run(self) -> None:
        """Serve both ends until ``stop``, or until one of them is given up."""
        try:
            while not self._stopping:
                self._take(self._inbox.take(self._pause_ms()))
                now_s = time.monotonic()
                for side in self._sides:
                    if side.due_s is not None and self._is_due(side, now_s):
                        self._attempt(side, now_s)
        except Exception as error:  # noqa: BLE001 - the thread's top: main reports it
            self._main.post(ThreadFailed(thread=self.name, error=error))
        while (message := self._inbox.take(0)) is not None:
            self._take(message)

    def _pause_ms(self) -> int | None:
        """Until the next attempt or look at the plugs; without end while all is well."""
        due = [side.due_s for side in self._sides if side.due_s is not None]
        if not due:
            return None
        pause_s = min(min(due) - time.monotonic(), PLUG_LOOK_S)
        return max(0, round(pause_s * 1000))

    def _take(self, message: object) -> None:
        """A handle comes back: close it, and decide when to try again. Or the gain is to be set."""
        match message:
            case SetGain(hardware_db=hardware_db):
                self._set_gain(hardware_db)
            case Returned(handle=handle):
                handle.close()
                for side in self._sides:
                    if side.direction is handle.direction and not self._stopping:
                        self._failed(side, message.fault, message.reason)

    def _is_due(self, side: _Side, now_s: float) -> bool:
        """Whether to try now: it is time, or a card has appeared that was not there before."""
        assert side.due_s is not None  # noqa: S101 - the caller asks for those only
        there = frozenset(f"{card.index}:{card.id}" for card in cards.cards(self._proc_asound))
        appeared = bool(there - side.seen)
        side.seen = there
        return appeared or now_s >= side.due_s

    def _attempt(self, side: _Side, now_s: float) -> None:
        try:
            handle = self._open(side)
        except alsa.OpenError as error:
            self._failed(side, error.fault, error.reason)
            return
        side.due_s = None
        side.told = None
        side.recovery.works(now_s)
        self._main.post(self._prepared(side, handle))
        side.end.offer(handle)

    def _prepared(self, side: _Side, handle: Handle) -> DeviceOpened:
        """Set the card's mixer as far as that is nobody's choice, and tell what was found."""
        found = side.mixer = mixer.find(handle.device)
        mended: tuple[str, ...] = ()
        hardware_db = None
        try:
            if side.direction is Direction.CAPTURE:
                if self._levels.gain_db != "leave":
                    mended = mixer.switch_on(found) + mixer.turn_agc_off(found)
                hardware_db = mixer.capture_gain_db(found)
            elif self._levels.volume_db != "leave":
                mixer.set_playback_volume(found, self._levels.volume_db)
        except AudioDeviceError as error:
            mended += (str(error),)
        return DeviceOpened(
            direction=side.direction,
            device=handle.device,
            handle=str(handle),
            sample_format=handle.stream.sample_format,
            complaints=handle.complaints + mended,
            mixer=found,
            hardware_db=hardware_db,
        )

    def _set_gain(self, hardware_db: float) -> None:
        for side in self._sides:
            if side.direction is Direction.CAPTURE and side.mixer is not None:
                try:
                    granted = mixer.set_capture_gain(side.mixer, hardware_db)
                except AudioDeviceError:
                    return  # unplugged just now: the gain is set anew when it is back
                self._main.post(GainSet(hardware_db=granted))

    def _open(self, side: _Side) -> Handle:
        if not side.resolved:
            found = cards.resolve(side.device, side.direction, cards.cards(self._proc_asound))
            if found is None and side.device == "auto":
                found = "default"  # no card of the kernel's; a sound server may offer one
            if found is None:
                raise alsa.OpenError(side.device, Fault.ABSENT, "no card has this name")
            side.resolved = found
        try:
            return alsa.open_device(side.resolved, side.direction, side.wish)
        except alsa.OpenError as error:
            if error.fault is Fault.BUSY:
                who = cards.holder(side.resolved, side.direction, self._proc_asound)
                raise alsa.OpenError(error.device, error.fault, who or error.reason) from error
            raise

    def _failed(self, side: _Side, fault: Fault, reason: str) -> None:
        now_s = time.monotonic()
        step = side.recovery.failed(fault, now_s)
        if step.action is Action.GIVE_UP:
            raise AudioDeviceError(
                f"the {side.direction} device {side.device} cannot be used: {reason}",
                remedy="unplug it and plug it in again, or choose another one",
            )
        if step.action is Action.RESOLVE:
            side.resolved = ""
        side.due_s = now_s + step.delay_s
        unplugged = side.told is Fault.UNPLUGGED and fault is Fault.ABSENT  # known already
        if fault is not side.told and not unplugged:
            side.told = fault
            self._main.post(
                DeviceLost(direction=side.direction, device=side.device, fault=fault, reason=reason)
            )
