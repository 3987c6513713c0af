"""The two rings between the audio thread and everybody else; both preallocated, both lock-free.

``FrameRing`` carries what was heard: written by the audio thread alone, read by anybody.
``PlaybackRing`` carries what is to be spoken: written by the voice's thread alone, read by the
audio thread alone. An index is published only after the samples that it covers; CPython makes
the store of an int atomic, so a reader sees either the old or the new index, never a torn one.
"""

from __future__ import annotations

from collections import deque
from enum import IntFlag
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from oyez.messages import BLOCK_FRAMES, RATE_HZ, Pcm16, PcmFloat
from oyez.rt.wake import WakeUp


class Flag(IntFlag):
    """What the audio thread knows of a block."""

    SPEECH = 1
    """The VAD on the audio thread takes it for speech."""
    GATED = 2
    """The device itself was speaking: not to be listened to."""
    CLIPPED = 4
    """Samples were clipped as the card delivered them."""
    LOST = 8
    """Some of it was never heard; there is silence in its place."""


class BlockLevels(NamedTuple):
    """Levels of some blocks, as the card delivered them: in parts of full scale.

    ``rms`` is float64 [blocks], the RMS of each.
    """

    peak: float
    rms: npt.NDArray[np.float64]
    clipped_blocks: int


class FrameRing:
    """The last ``capacity_blocks`` blocks of the 16 kHz stream, with their flags and peaks.

    The reader is called once a block, which never makes the writer wait.
    """

    def __init__(self, capacity_blocks: int) -> None:
        self.capacity_blocks = capacity_blocks
        self._samples = np.zeros((capacity_blocks, BLOCK_FRAMES), np.int16)
        self._flags = np.zeros(capacity_blocks, np.uint8)
        self._peaks = np.zeros(capacity_blocks, np.float32)
        self._rms = np.zeros(capacity_blocks, np.float32)
        self._head = 0
        self._ended = False
        self._passed_s = 0.0
        self._wake_up = WakeUp()

    # -- the audio thread ---------------------------------------------------------------------

    def write(self, samples: Pcm16, flags: int, peak: float, rms: float) -> None:
        """Append one block: int16 [BLOCK_FRAMES], its ``Flag`` bits, its levels in [0, 1]."""
        slot = self._head % self.capacity_blocks
        self._samples[slot] = samples
        self._flags[slot] = flags
        self._peaks[slot] = peak
        self._rms[slot] = rms
        self._head += 1
        self._wake_up.call()

    def end(self) -> None:
        """Say that nothing more will come: the source was finite and is at its end."""
        self._ended = True
        self._wake_up.call()

    def pass_time(self, seconds: float) -> None:
        """After the end the clock goes on, for the answer that is still to come."""
        self._passed_s += seconds

    # -- any thread ---------------------------------------------------------------------------

    @property
    def now_frame(self) -> int:
        """``head_frame``, and after the end of a finite source what it would be by now."""
        return self.head_frame + round(self._passed_s * RATE_HZ)

    @property
    def head_block(self) -> int:
        """How many blocks were written: the index of the next one."""
        return self._head

    @property
    def head_frame(self) -> int:
        """How many frames were written: the index of the next one."""
        return self._head * BLOCK_FRAMES

    @property
    def ended(self) -> bool:
        """Whether the source is at its end. Read it before ``head_block``."""
        return self._ended

    @property
    def oldest_block(self) -> int:
        """The oldest block that can still be read with safety.

        One slot less than the capacity, because the writer may be filling that slot just now.
        """
        return max(0, self._head - self.capacity_blocks + 1)

    def flags(self, block: int) -> int | None:
        """The flags of a block; None when it was overwritten already."""
        flags = int(self._flags[block % self.capacity_blocks])
        return flags if block >= self.oldest_block else None

    def copy(self, begin_block: int, end_block: int) -> Pcm16 | None:
        """The samples of [begin_block, end_block), read-only; None when some were overwritten."""
        slots = np.arange(begin_block, end_block) % self.capacity_blocks
        samples = self._samples[slots].reshape(-1)
        if begin_block < self.oldest_block:  # checked after the copy: it may have been too slow
            return None
        samples.flags.writeable = False
        return samples

    def levels(self, begin_block: int, end_block: int) -> BlockLevels:
        """What was measured in [begin_block, end_block)."""
        slots = np.arange(begin_block, end_block) % self.capacity_blocks
        clipped = np.count_nonzero(self._flags[slots] & Flag.CLIPPED)
        return BlockLevels(
            peak=float(self._peaks[slots].max(initial=0.0)),
            rms=self._rms[slots].astype(np.float64),
            clipped_blocks=int(clipped),
        )

    # -- the reader's thread ------------------------------------------------------------------

    def wait(self, timeout_ms: int | None) -> None:
        """Sleep until something was written, the stream ended, or ``wake``."""
        self._wake_up.wait(timeout_ms)

    def wake(self) -> None:
        """Make ``wait`` return. Any thread."""
        self._wake_up.call()


class Passed(NamedTuple):
    """The sample at a mark went to the speaker."""

    number: int
    last: bool


class PlaybackRing:
    """Sound on its way to the speaker: mono float32 at the speaker's rate.

    ``write`` waits for room (that is the voice's thread, which may wait); ``read`` never does.
    Marks tell the audio thread at which sample an answer begins and ends.
    """

    def __init__(self, capacity_frames: int) -> None:
        self._capacity = capacity_frames
        self._samples = np.zeros(capacity_frames, np.float32)
        self._written = 0
        self._read = 0
        self._marks: deque[tuple[int, Passed]] = deque()
        self._wanted = 0
        self._closed = False
        self._room = WakeUp()

    # -- the voice's thread -------------------------------------------------------------------

    def mark(self, number: int, *, last: bool) -> None:
        """Mark the next sample to be written: utterance ``number``'s answer begins or ended."""
        self._marks.append((self._written, Passed(number, last)))

    def write(self, samples: PcmFloat) -> bool:
        """Append float32 [n], waiting for room; False when the ring was closed meanwhile."""
        done = 0
        while done < len(samples):
            room = self._capacity - (self._written - self._read)
            if room == 0:
                if not self._wanted:
                    # Said before it is looked at once more: a read in between would wake nobody.
                    self._wanted = self._written + 1
                elif self._closed:
                    return False
                else:
                    self._room.wait(None)
                continue
            self._wanted = 0
            begin = self._written % self._capacity
            count = min(room, len(samples) - done, self._capacity - begin)
            self._samples[begin : begin + count] = samples[done : done + count]
            self._written += count
            done += count
        return not self._closed

    @property
    def blocked(self) -> bool:
        """Whether the writer waits for room that the reader has not made yet."""
        return self._wanted > 0 and self._wanted > self._read + self._capacity

    # -- the audio thread ---------------------------------------------------------------------

    def read(self, out: PcmFloat) -> int:
        """Fill ``out`` (float32 [n]) with what there is; returns how many frames; rest is zeros."""
        count = min(len(out), self._written - self._read)
        begin = self._read % self._capacity
        first = min(count, self._capacity - begin)
        out[:first] = self._samples[begin : begin + first]
        out[first:count] = self._samples[: count - first]
        out[count:] = 0
        self._read += count
        if self._wanted:
            self._room.call()
        return count

    def passed(self) -> Passed | None:
        """The next mark that the sound read so far has reached, each once."""
        if self._marks and self._marks[0][0] <= self._read:
            mark = self._marks[0]
            # A begin mark counts once its first sample was taken, an end mark at once.
            if mark[1].last or mark[0] < self._read:
                return self._marks.popleft()[1]
        return None

    # -- any thread ---------------------------------------------------------------------------

    def close(self) -> None:
        """Refuse further sound and free a waiting writer."""
        self._closed = True
        self._room.call()
