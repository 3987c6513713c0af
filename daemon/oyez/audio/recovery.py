"""What to do about a sound device that failed: stages, back-off and jitter. Pure: no clock, no I/O.

The device's thread asks after each fault and each failed attempt. A device that is not there is
waited for without end, since it may be plugged in again at any time; one that is there and cannot
be used is given up in the end, so that the supervisor starts afresh.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, StrEnum, auto
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Fault(StrEnum):
    """What went wrong, in words for the journal."""

    ABSENT = "it is not there"
    BUSY = "it is in use"
    REFUSED = "it cannot be opened"
    UNPLUGGED = "it was unplugged"
    STALLED = "it stopped delivering"
    FAILED = "it failed"


class Action(Enum):
    """What the device's thread does next."""

    REOPEN = auto()
    """Open the same card once more."""
    RESOLVE = auto()
    """Look the card up anew: it may be back under another index."""
    GIVE_UP = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The next action, ``delay_s`` from now."""

    action: Action
    delay_s: float


FIRST_DELAY_S = 0.1
"""A plug that wiggles is back within this time more often than not."""
MAX_DELAY_S = 2.0
"""The device must be heard again within 5 s of its return, opening included."""
REOPENS = 2
"""So many attempts on the same card before it is looked up anew."""
GIVE_UP_S = 60.0
"""A device that is there and cannot be used for so long needs more than patience."""
RELAPSE_S = 10.0
"""A device that fails again so soon has not recovered: the stages go on where they were."""
JITTER = 0.25
"""Boards that lost their power together must not all try at the same moment."""


class Recovery:
    """The attempts on one device. Times are seconds of any clock that never goes back.

    Args:
        jitter: gives numbers in [0, 1).
    """

    def __init__(self, jitter: Callable[[], float]) -> None:
        self._jitter = jitter
        self._attempts = 0
        self._unusable_since_s: float | None = None
        self._works_since_s: float | None = None

    def failed(self, fault: Fault, now_s: float) -> Step:
        """A fault of a working device, or an attempt that failed."""
        if self._works_since_s is not None and now_s - self._works_since_s >= RELAPSE_S:
            self._attempts = 0
            self._unusable_since_s = None
        self._works_since_s = None
        self._attempts += 1
        if fault in (Fault.ABSENT, Fault.UNPLUGGED, Fault.BUSY):
            # Nobody's fault that a new start would cure.
            self._unusable_since_s = None
        elif self._unusable_since_s is None:
            self._unusable_since_s = now_s
        elif now_s - self._unusable_since_s >= GIVE_UP_S:
            return Step(action=Action.GIVE_UP, delay_s=0.0)
        if self._attempts == 1 and fault not in (Fault.ABSENT, Fault.BUSY):
            return Step(action=Action.REOPEN, delay_s=0.0)
        delay_s = min(MAX_DELAY_S, FIRST_DELAY_S * 2.0 ** min(self._attempts - 1, 10))
        delay_s *= 1 - JITTER * self._jitter()
        again = self._attempts <= REOPENS and fault is not Fault.ABSENT
        return Step(action=Action.REOPEN if again else Action.RESOLVE, delay_s=delay_s)

    def works(self, now_s: float) -> None:
        """The device delivers."""
        if self._works_since_s is None:
            self._works_since_s = now_s
