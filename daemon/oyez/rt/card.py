"""The two ends of sound cards on the audio thread: opened handles that are polled together.

Handles are opened elsewhere (``workers/device.py``) and handed over; one that fails is handed back
with its fault. Until another comes the stream goes on by the clock: what could not be heard is
reported as lost time, and what could not be played is passed over. So the frame index never stops,
a lost speaker does not stop hearing, and a lost microphone does not stop an answer.

Each end moves at the pace of its own card: what their clocks differ by stays in their buffers.
"""

from __future__ import annotations

import select
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

import soxr

from oyez.audio.pcm import SampleFormat, StreamFormat, encode
from oyez.audio.ports import Period
from oyez.audio.recovery import Fault
from oyez.messages import RATE_HZ

if TYPE_CHECKING:
    from oyez.audio.alsa import Handle
    from oyez.messages import PcmFloat
    from oyez.rt.mailbox import Mailbox
    from oyez.rt.wake import WakeUp

XRUN = -32
"""-EPIPE, which pyalsaaudio returns in the place of a length; it has then prepared the stream."""
STALL_S = 1.0
"""A card that moves nothing for so long, and for STALL_PERIODS, is not alive."""
STALL_PERIODS = 4
LATE_S = 0.1
"""A card whose period comes so late, with nothing behind it, stood still."""
STEP_S = 0.1
"""The step in which time passes without a microphone: waiting for one must cost next to nothing."""
REST_S = 0.02
"""Between two overruns without any sound in between."""
SLEPT_S = 0.001
"""A poll that took longer waited for something: there was no backlog."""
DISCONNECTED = 8
"""SND_PCM_STATE_DISCONNECTED."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Returned:
    """A handle that is of no more use, for the device's thread to close."""

    handle: Handle
    fault: Fault
    reason: str


NO_STREAM = StreamFormat(rate_hz=RATE_HZ, channels=1, sample_format=SampleFormat.S16)
"""What the silence in the place of a microphone is taken for."""
NOTHING = Period(b"", overrun=False)
"""Nothing was heard: it is the speaker's turn."""


class _End:
    """What both ends share: the handle, how it comes and goes, and when it last moved."""

    def __init__(self, device_thread: Mailbox[object], wake_up: WakeUp) -> None:
        self._device_thread = device_thread
        self._wake_up = wake_up
        self._offered: deque[Handle] = deque()  # one at most: see workers/device.py
        self.handle: Handle | None = None
        self.moved_s = 0.0
        self.polled_s = 0.0
        self.ready = False

    def offer(self, handle: Handle) -> None:
        """Hand an opened device over. The device's thread."""
        self._offered.append(handle)
        self._wake_up.call()

    def accept(self) -> bool:
        """Take what was handed over; whether there was anything."""
        if self.handle is not None or not self._offered:
            return False
        self.handle = self._offered.popleft()
        self.moved_s = time.monotonic()
        self.ready = True
        return True

    def give_back(self, fault: Fault, reason: str) -> None:
        """The device is of no more use."""
        if self.handle is not None:
            self._device_thread.post(Returned(handle=self.handle, fault=fault, reason=reason))
            self.handle = None

    def fail(self, error: Exception) -> None:
        """Pyalsaaudio raised ``error``."""
        gone = self.handle is not None and self.handle.pcm.state() == DISCONNECTED
        self.give_back(Fault.UNPLUGGED if gone else Fault.FAILED, str(error))

    def check_stall(self) -> None:
        """Give a device back that had not moved for too long when the last poll began.

        Not until now: if it is this process that stood still, the poll after it finds sound.
        """
        if self.handle is None:
            return
        still_s = self.polled_s - self.moved_s
        if still_s > max(STALL_S, STALL_PERIODS * self.handle.period_ms / 1000):
            self.give_back(Fault.STALLED, f"nothing moved for {still_s:.1f} s")

    def close(self) -> None:
        """See ``ports``: main closes what is still here, when both threads have ended."""
        for handle in filter(None, (self.handle, *self._offered)):
            handle.close()
        self.handle = None
        self._offered.clear()

    def descriptors(self) -> list[tuple[int, int]]:
        """What to poll; none without a device."""
        return [] if self.handle is None else self.handle.pcm.polldescriptors()

    def look(self, events: list[tuple[int, int]]) -> None:
        """Take note of what the poll said; only the library knows what it means for a plugin."""
        if events and self.handle is not None:
            self.ready = self.handle.pcm.polldescriptors_revents(events) != 0


class _Adapter:
    """From mono float32 at one rate to the bytes that a card takes, a period at a time."""

    def __init__(self, rate_hz: int, stream: StreamFormat) -> None:
        self._stream = stream
        self._waiting = b""
        self._resampler = (
            None
            if rate_hz == stream.rate_hz
            else soxr.ResampleStream(rate_hz, stream.rate_hz, 1, dtype="float32", quality="MQ")
        )

    @property
    def waiting_frames(self) -> int:
        """How many frames have been added and not dropped."""
        return len(self._waiting) // self._stream.frame_bytes

    def add(self, samples: PcmFloat) -> None:
        """Append float32 [n]."""
        if self._resampler is not None:
            samples = self._resampler.resample_chunk(samples)
        self._waiting += encode(samples, self._stream)

    def first(self, frames: int) -> bytes:
        """The oldest frames."""
        return self._waiting[: frames * self._stream.frame_bytes]

    def drop(self, frames: int) -> None:
        """They were taken."""
        self._waiting = self._waiting[frames * self._stream.frame_bytes :]


class CardPlayback(_End):
    """The speaker; implements ``ports.Playback`` for sound at ``rate_hz``."""

    audible = True
    written = False

    def __init__(self, device_thread: Mailbox[object], wake_up: WakeUp, rate_hz: int) -> None:
        super().__init__(device_thread, wake_up)
        self.rate_hz = rate_hz
        self.underruns = 0
        """How often the card had nothing to play. Written here alone, read by anybody."""
        self._adapter: _Adapter | None = None

    @property
    def description(self) -> str:
        """See ``ports.Playback``."""
        return str(self.handle) if self.handle is not None else "none yet"

    @property
    def latency_ms(self) -> float:
        """See ``ports.Playback``: the buffer is kept full."""
        if self.handle is None:
            return 0.0
        return self.handle.buffer_frames * 1000 / self.handle.stream.rate_hz

    def wanted_frames(self, heard_s: float) -> int:
        """See ``ports.Playback``."""
        if self.accept() and self.handle is not None:
            self._adapter = _Adapter(self.rate_hz, self.handle.stream)
        if self.handle is None or self._adapter is None:
            # An answer that nobody can hear passes at the pace at which the stream goes on.
            return round(heard_s * self.rate_hz)
        if not self.ready:
            return 0
        missing = self.handle.period_frames - self._adapter.waiting_frames
        # One more than the ratio says: a resampler gives a little less now and then.
        return max(1, 1 + missing * self.rate_hz // self.handle.stream.rate_hz)

    def write(self, samples: PcmFloat, spoken_frames: int) -> None:  # noqa: ARG002 - silence too
        """See ``ports.Playback``."""
        handle, adapter = self.handle, self._adapter
        if handle is None or adapter is None:
            return
        adapter.add(samples)
        if adapter.waiting_frames < handle.period_frames:
            return
        try:
            taken = handle.pcm.write(adapter.first(handle.period_frames))
        except Exception as error:  # noqa: BLE001 - pyalsaaudio's own, which rt must not import
            self.fail(error)
            return
        if taken == XRUN:
            self.underruns += 1
            return  # the next write starts the stream again
        self.ready = False  # until the poll says that there is room for one more period
        if taken > 0:
            adapter.drop(taken)
            self.moved_s = time.monotonic()
        else:
            self.check_stall()


class CardCapture(_End):
    """The microphone; implements ``ports.Capture``, and waits for the speaker as well."""

    def __init__(
        self, device_thread: Mailbox[object], wake_up: WakeUp, playback: CardPlayback | None
    ) -> None:
        super().__init__(device_thread, wake_up)
        self._playback = playback
        self._heard_s = time.monotonic()
        self._slept = False
        self._interrupted = False
        self._reopened = False
        self._rests_until_s = 0.0

    @property
    def stream(self) -> StreamFormat:
        """See ``ports.Capture``; without a device, what the silence in its place is taken for."""
        return self.handle.stream if self.handle is not None else NO_STREAM

    @property
    def period_frames(self) -> int:
        """See ``ports.Capture``."""
        return self.handle.period_frames if self.handle is not None else round(STEP_S * RATE_HZ)

    @property
    def description(self) -> str:
        """See ``ports.Capture``."""
        return str(self.handle) if self.handle is not None else "none yet"

    def read(self) -> Period:
        """See ``ports.Capture``; an empty period says that the speaker wants something."""
        if self.accept():
            self._interrupted = self._reopened = True
        self._wait()
        if self.handle is None:
            return self._passed()
        if time.monotonic() < self._rests_until_s:
            return NOTHING
        if not self.ready:
            self.check_stall()
            return NOTHING
        return self._fetched(self.handle)

    def _fetched(self, handle: Handle) -> Period:
        try:
            length, raw = handle.pcm.read()
        except Exception as error:  # noqa: BLE001 - pyalsaaudio's own, which rt must not import
            self.fail(error)
            return NOTHING
        if length == XRUN:
            return self._overrun()
        self.ready = False  # until the poll says that there is one more period
        if length > 0:
            return self._heard(length, raw)
        self.check_stall()
        return NOTHING

    def _overrun(self) -> Period:
        """Sound was lost; the next read starts the stream again."""
        now_s = time.monotonic()
        if self._interrupted:
            # One more before anything was heard: not at full speed, and not for ever.
            self._rests_until_s = now_s + REST_S
            self.check_stall()
        self._interrupted = True
        return self._passed()._replace(overrun=True)

    def _heard(self, length: int, raw: bytes) -> Period:
        """A period of ``length`` frames, and what was lost before it after an interruption."""
        now_s = self.moved_s = time.monotonic()
        length_s = length / self.stream.rate_hz
        lost_s = 0.0
        if self._interrupted:
            self._interrupted = False
            lost_s = max(0.0, now_s - length_s - self._heard_s)
            self._heard_s = now_s
        elif self._slept:
            # Nothing was waiting before this period: it is the newest, if the card did not stand.
            lost_s = self._stood_s(now_s - length_s - self._heard_s)
            self._heard_s = now_s
        else:
            self._heard_s = min(now_s, self._heard_s + length_s)
        reopened, self._reopened = self._reopened, False
        return Period(raw, overrun=False, lost_s=lost_s, reopened=reopened)

    def _stood_s(self, late_s: float) -> float:
        """For how long the card stood still without a word, for a period that is so late."""
        if late_s < LATE_S or self.handle is None:
            return 0.0
        # If it was this process that stood, the card has more.
        waiting_s = max(0, self.handle.pcm.avail()) / self.stream.rate_hz
        return late_s - waiting_s if late_s - waiting_s >= LATE_S else 0.0

    def _passed(self) -> Period:
        """Time without a microphone."""
        now_s = time.monotonic()
        lost_s = max(0.0, now_s - self._heard_s)
        if lost_s < STEP_S:
            return NOTHING
        self._heard_s = now_s
        return Period(b"", overrun=False, lost_s=lost_s)

    def _wait(self) -> None:
        """Sleep until either card has something to do, a device is offered, or a step is over."""
        rests_s = max(0.0, self._rests_until_s - time.monotonic())
        ends: list[_End] = [] if rests_s else [self]
        if self._playback is not None:
            ends.append(self._playback)
        self._slept = False
        if any(end.ready and end.handle is not None for end in ends):
            return
        poll = select.poll()
        poll.register(self._wake_up.descriptor, select.POLLIN)
        owners: dict[int, _End] = {}
        for end in ends:
            for descriptor, events in end.descriptors():
                poll.register(descriptor, events)
                owners[descriptor] = end
        found: dict[_End, list[tuple[int, int]]] = {end: [] for end in ends}
        timeout_s = rests_s or (STALL_S / 4 if self.handle is not None else STEP_S)
        before_s = time.monotonic()
        for end in ends:
            end.polled_s = before_s
        happened = poll.poll(timeout_s * 1000)
        self._slept = time.monotonic() - before_s > SLEPT_S
        for descriptor, events in happened:
            if descriptor in owners:
                found[owners[descriptor]].append((descriptor, events))
            else:
                self._wake_up.wait(0)
        for end in ends:
            end.look(found[end])
        if self._playback is not None and not self._playback.ready:
            self._playback.check_stall()
