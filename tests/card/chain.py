"""The card path without models: device thread, audio thread and frame ring over test cards."""

from __future__ import annotations

import math
import threading
import time
from dataclasses import replace
from typing import Any, Self

import numpy as np

from oyez.audio import alsa
from oyez.audio.cards import Direction
from oyez.messages import BLOCK_FRAMES, RATE_HZ, ThreadFailed
from oyez.rt.audio_thread import AudioThread
from oyez.rt.card import CardCapture, CardPlayback
from oyez.rt.front_end import FrontEnd
from oyez.rt.mailbox import Mailbox
from oyez.rt.ring import Flag, FrameRing, PlaybackRing
from oyez.rt.wake import WakeUp
from oyez.workers import device
from oyez.workers.device import INBOX_MESSAGES, DeviceLost, DeviceOpened, DeviceThread, LevelWishes

PATIENCE_S = 20
VOICE_HZ = 22_050
RING_BLOCKS = 4_000
PATTERN_FRAMES = 32_000
"""The pattern begins anew after so many frames."""
WISH = alsa.Wish(rate_hz=None, channels=None, sample_format=None, period_ms=20, periods=25)
"""So large a buffer that a machine that is busy with other things makes no overruns of its own."""


def pattern() -> np.ndarray:
    """int16 in which each sample tells its own place, without an offset that would be removed."""
    halves = np.arange(1, PATTERN_FRAMES // 2 + 1, dtype=np.int16)
    return np.stack((halves, -halves), axis=1).reshape(-1)


def places(samples: np.ndarray) -> np.ndarray:
    """Where in the pattern each sample was; nothing sensible for zeros."""
    return 2 * (np.abs(samples.astype(np.int64)) - 1) + (samples < 0)


class Deaf:
    """No VAD: these tests are about samples."""

    def is_speech(self, _block: np.ndarray) -> bool:
        return False


class Watched:
    """A PCM that notes who uses it, and that nobody does while another is at it."""

    def __init__(self, pcm: Any) -> None:
        self._pcm = pcm
        self._user: int | None = None
        self.faults: list[str] = []
        self.closed_by: list[str] = []

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._pcm, name)

        def call(*arguments: Any) -> Any:
            me = threading.get_ident()
            if self._user is not None:
                self.faults.append(f"{name} while another thread uses it")
            if self.closed_by:
                self.faults.append(f"{name} after it was closed")
            self._user = me
            try:
                return method(*arguments)
            finally:
                self._user = None
                if name == "close":
                    self.closed_by.append(threading.current_thread().name)

        return call


class Chain:
    """A run over cards; ``with`` starts and stops it, and sees that no handle is left.

    ``capture`` and ``playback`` are ALSA's or the owner's names; without the second one, nothing
    is played.
    """

    def __init__(
        self,
        rack: Any,
        *,
        capture: str = "auto",
        playback: str | None = None,
        wish: alsa.Wish = WISH,
        vad: Any = None,
        audio_thread: type[AudioThread] = AudioThread,
    ) -> None:
        self.rack = rack
        self.main: Mailbox[object] = Mailbox(10_000)
        self.told: list[object] = []
        inbox: Mailbox[object] = Mailbox(INBOX_MESSAGES)
        wake_up = WakeUp()
        self.playback = CardPlayback(inbox, wake_up, VOICE_HZ) if playback else None
        self.capture = CardCapture(inbox, wake_up, self.playback)
        self.device = DeviceThread(
            main=self.main,
            inbox=inbox,
            proc_asound=rack.proc,
            levels=LevelWishes(gain_db="leave", volume_db="leave"),
        )
        self.device.keep(Direction.CAPTURE, capture, wish, self.capture)
        if self.playback is not None and playback is not None:
            self.device.keep(Direction.PLAYBACK, playback, wish, self.playback)
        self.heard = FrameRing(RING_BLOCKS)
        self.spoken = PlaybackRing(20 * VOICE_HZ) if playback else None
        self.front_end = FrontEnd(vad or Deaf())
        self.audio = audio_thread(
            capture=self.capture,
            playback=self.playback,
            front_end=self.front_end,
            heard=self.heard,
            spoken=self.spoken,
            gate=False,
            main=self.main,
        )
        self.handles: list[Watched] = []
        self._open = alsa.open_device
        self.stopped_after_s = 0.0

    def __enter__(self) -> Self:
        device.alsa.open_device = self._open_watched
        self.device.start()
        self.audio.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.stop()
        if kind is None:
            for message in self.messages():
                assert not isinstance(message, ThreadFailed), message
            assert [handle.faults for handle in self.handles if handle.faults] == []
            assert all(len(handle.closed_by) == 1 for handle in self.handles)

    def stop(self) -> None:
        """Stop everything, in the product's order."""
        begin_s = time.monotonic()
        for thread in (self.audio, self.device):
            thread.stop()
            thread.join(PATIENCE_S)
            assert not thread.is_alive(), f"{thread.name} does not end"
        self.capture.close()
        if self.playback is not None:
            self.playback.close()
        device.alsa.open_device = self._open
        self.stopped_after_s = time.monotonic() - begin_s

    def _open_watched(self, *arguments: Any) -> alsa.Handle:
        handle = self._open(*arguments)
        watched = Watched(handle.pcm)
        self.handles.append(watched)
        return replace(handle, pcm=watched)

    # -- waiting ------------------------------------------------------------------------------

    def until(self, happened: Any, patience_s: float = PATIENCE_S) -> None:
        """Wait for something; the frame ring's blocks come in between."""
        deadline_s = time.monotonic() + patience_s
        while not happened():
            assert time.monotonic() < deadline_s, f"it did not happen; {self.messages()}"
            self.heard.wait(10)

    def pass_s(self, seconds: float) -> None:
        """Let time pass, as the frame index counts it."""
        blocks = self.heard.head_block + math.ceil(seconds * RATE_HZ / BLOCK_FRAMES)
        self.until(lambda: self.heard.head_block >= blocks)

    def hears(self, blocks: int = 10) -> None:
        """Wait until so many blocks in a row were really heard."""
        begin = self.heard.head_block
        self.until(
            lambda: (
                self.heard.head_block >= begin + blocks
                and not any(
                    self.flags(n) & Flag.LOST
                    for n in range(self.heard.head_block - blocks, self.heard.head_block)
                )
            )
        )

    # -- what came of it ----------------------------------------------------------------------

    def flags(self, block: int) -> int:
        """A block's flags."""
        return self.heard.flags(block) or 0

    def messages(self) -> list[object]:
        """All that main was told so far."""
        while (message := self.main.take(0)) is not None:
            self.told.append(message)
        return self.told

    def lost(self) -> list[DeviceLost]:
        """What was told of lost devices."""
        return [message for message in self.messages() if isinstance(message, DeviceLost)]

    def opened(self) -> list[DeviceOpened]:
        """What was told of opened devices."""
        return [message for message in self.messages() if isinstance(message, DeviceOpened)]

    def samples(self) -> np.ndarray:
        """All that stands in the ring, int16 [n]."""
        begin, end = self.heard.oldest_block, self.heard.head_block
        copied = self.heard.copy(begin, end)
        assert copied is not None
        return copied

    def lost_blocks(self) -> int:
        """How many of the ring's blocks are flagged as lost."""
        blocks = range(self.heard.oldest_block, self.heard.head_block)
        return sum(bool(self.flags(block) & Flag.LOST) for block in blocks)

    def shifts(self) -> np.ndarray:
        """By how many frames the ring is behind the pattern, at each heard sample: int64 [n].

        Constant as long as nothing is lost or doubled; where time is accounted for it stays near
        its first value.
        """
        samples = self.samples()
        heard = np.flatnonzero(samples)
        shift = (places(samples)[heard] - heard) % PATTERN_FRAMES
        return (shift - shift[0] + PATTERN_FRAMES // 2) % PATTERN_FRAMES - PATTERN_FRAMES // 2
