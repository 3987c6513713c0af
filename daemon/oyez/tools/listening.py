"""A microphone that is listened to as the daemon listens, without recognizer and voice.

The same ports, device thread, audio thread and front end; what is added is a note of every
period's levels. Main's thread uses it: ``step`` lets time pass, as the frame index counts it.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from oyez.audio.cards import Direction
from oyez.dialog.loudness import Loudness
from oyez.errors import AudioDeviceError
from oyez.messages import BLOCK_FRAMES, RATE_HZ, ThreadFailed
from oyez.rt.audio_thread import AudioThread
from oyez.rt.front_end import FrontEnd
from oyez.rt.mailbox import Mailbox
from oyez.rt.ring import FrameRing, PlaybackRing
from oyez.sound import open_card
from oyez.speech import engines
from oyez.workers.device import DeviceLost, DeviceOpened, DeviceThread, GainSet

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from oyez.audio import pcm
    from oyez.audio.levels import Levels
    from oyez.config import Settings
    from oyez.rt.front_end import Block, BlockVad

RING_S = 60
"""More than any step of the calibration takes."""
SPOKEN_S = 10
NOTED_PERIODS = 2000
"""Main looks every 20 ms, so that this many never wait."""
MAIN_MESSAGES = 256
STEP_MS = 200
JOIN_S = 1.5
BLOCKS_PER_S = RATE_HZ // BLOCK_FRAMES


class _NotingFrontEnd(FrontEnd):
    """Keeps the levels of each period until somebody takes them."""

    def __init__(self, vad: BlockVad) -> None:
        super().__init__(vad)
        # Written by the audio thread, taken by main: both ends of a deque are atomic.
        self.noted: deque[Levels] = deque(maxlen=NOTED_PERIODS)

    def process(
        self, raw: bytes | memoryview, stream: pcm.StreamFormat, *, gated: bool
    ) -> Iterator[Block]:
        """See ``FrontEnd``."""
        before = self.levels
        yield from super().process(raw, stream, gated=gated)
        if self.levels is not None and self.levels is not before:
            self.noted.append(self.levels)


class Listening:
    """The microphone of a configuration while the ``with`` block lasts, and its speaker if wanted.

    Args:
        settings: the configuration.
        speaker_hz: the rate of what is to be played, or None for no speaker.
        gain_memory: the daemon's file of gains: with it, the microphone is amplified as the
            daemon would begin; without, it stays as it is.

    Raises:
        AudioDeviceError, MissingLibraryError: see ``sound.open_card``.
    """

    def __init__(
        self, settings: Settings, *, speaker_hz: int | None, gain_memory: Path | None
    ) -> None:
        self._main: Mailbox[object] = Mailbox(MAIN_MESSAGES)
        self._sound = open_card(settings.audio, self._main, speaker_hz=speaker_hz)
        self._front_end = _NotingFrontEnd(engines.make_vad(settings.vad))
        self.heard = FrameRing(RING_S * BLOCKS_PER_S)
        playback = self._sound.playback
        self.speaker_hz = playback.rate_hz if playback is not None else None
        self.spoken = PlaybackRing(SPOKEN_S * playback.rate_hz) if playback is not None else None
        self._audio = AudioThread(
            capture=self._sound.capture,
            playback=playback,
            front_end=self._front_end,
            heard=self.heard,
            spoken=self.spoken,
            gate=False,
            main=self._main,
        )
        self._loudness: Loudness | None = None
        if gain_memory is not None:
            wish = settings.audio.capture.gain_db
            self._loudness = Loudness(wish, self._front_end, self.set_gain, gain_memory)
        self.opened: dict[Direction, DeviceOpened] = {}
        """The cards that are open now; a sound server's devices are none."""
        self.trouble: dict[Direction, str] = {}
        """Why a card is not open, in words."""
        self.hardware_db = 0.0
        """The microphone's gain in the card now; 0 where it has none."""

    def __enter__(self) -> Self:
        if self._sound.device is not None:
            self._sound.device.start()
        self._audio.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.spoken is not None:
            self.spoken.close()
        if _ends(self._audio) and (self._sound.device is None or _ends(self._sound.device)):
            self._sound.close()

    @property
    def description(self) -> str:
        """The microphone, for a person."""
        if Direction.CAPTURE in self.opened:
            return self.opened[Direction.CAPTURE].handle
        return self._sound.capture.description

    @property
    def channel(self) -> int:
        """The channel that is listened to."""
        return self._front_end.channel

    @property
    def latency_ms(self) -> float:
        """What the speaker's buffer holds, as far as its driver tells."""
        return self._sound.playback.latency_ms if self._sound.playback is not None else 0.0

    @property
    def lost_s(self) -> float:
        """How much was not heard, in all, since there was anything to hear."""
        return self._audio.lost_s

    @property
    def hears(self) -> bool:
        """Whether a microphone delivers now."""
        return self._front_end.levels is not None and Direction.CAPTURE not in self.trouble

    def set_gain(self, hardware_db: float) -> None:
        """Set the microphone's gain in the card, if it has one; ``step`` returns ``GainSet``."""
        if self._sound.device is not None:
            self._sound.device.set_gain(hardware_db)

    def take_levels(self) -> list[Levels]:
        """The levels of all periods since the last call."""
        noted = self._front_end.noted
        return [noted.popleft() for _ in range(len(noted))]

    def step(self) -> list[object]:
        """Wait until more was heard, for a moment at most; what main was told meanwhile.

        Raises:
            OyezError: a device failed for good.
        """
        self.heard.wait(STEP_MS)
        told = []
        while (message := self._main.take(0)) is not None:
            told.append(message)
            self._note(message)
        return told

    def pass_s(self, seconds: float) -> Iterator[list[object]]:
        """``step`` until so much time has passed, as the frame index counts it."""
        end = self.heard.head_block + round(seconds * BLOCKS_PER_S)
        while self.heard.head_block < end:
            yield self.step()

    def _note(self, message: object) -> None:
        match message:
            case DeviceOpened(direction=direction):
                self.opened[direction] = message
                self.trouble.pop(direction, None)
                if direction is Direction.CAPTURE:
                    self._take_gain(message)
            case GainSet(hardware_db=hardware_db):
                self.hardware_db = hardware_db
            case DeviceLost(direction=direction, device=device, fault=fault, reason=reason):
                self.opened.pop(direction, None)
                self.trouble[direction] = f"{device}: {fault} ({reason})"
            case ThreadFailed(error=error):
                raise error

    def _take_gain(self, message: DeviceOpened) -> None:
        self.hardware_db = message.hardware_db or 0.0
        if self._loudness is not None:
            self._loudness.opened(message)


def _ends(thread: AudioThread | DeviceThread) -> bool:
    """Stop a thread; False when it does not end, and what it holds must not be closed."""
    thread.stop()
    thread.join(JOIN_S)
    return not thread.is_alive()


def not_heard(listening: Listening) -> AudioDeviceError:
    """The error when a microphone delivered nothing."""
    why = listening.trouble.get(Direction.CAPTURE, "it delivers nothing")
    return AudioDeviceError(
        f"the microphone cannot be heard: {why}",
        remedy="`oyez devices` tells what is there and who holds it; a running daemon is stopped "
        "with `systemctl stop oyez`",
    )
