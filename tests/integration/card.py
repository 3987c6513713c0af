"""A sound card for tests: alsa-lib's plugin beside this file, and the clock that drives it.

Whatever opens ALSA's default device reaches it: libasound, PortAudio and the product are real, and
only the hardware is not. Its clock is a thread of the test, so that a test can say something, see
what is played meanwhile, stop the clock, or pull the plug.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import threading
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import soxr

from oyez.audio.pcm import to_pcm16
from oyez.messages import RATE_HZ

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Self

    from oyez.messages import Pcm16, PcmFloat

PERIOD_MS = 20
SOURCE = Path(__file__).with_name("pcm_testcard.c")
PATIENCE_S = 60
"""A failing bound: nothing that is waited for takes so long."""


def build(folder: Path) -> Path:
    """Compile the plugin; skips where that cannot be done, or where there is no PortAudio."""
    try:
        import sounddevice  # noqa: F401, PLC0415 - it looks for PortAudio
    except OSError:
        pytest.skip("PortAudio is not installed (libportaudio2)")
    compiler = os.environ.get("CC", "gcc")
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no C compiler ({compiler}) to build the card's plugin with")
    if not Path("/usr/include/alsa/asoundlib.h").is_file():
        pytest.skip("ALSA's headers are not installed (libasound2-dev)")
    library = folder / "libasound_module_pcm_testcard.so"
    flags = ["-O1", "-Wall", "-Wextra", "-fPIC", "-DPIC", "-shared"]
    subprocess.run([compiler, *flags, "-o", library, SOURCE, "-lasound"], check=True)
    return library


class Card:
    """A card that runs from ``with`` on; a microphone in a silent room, and a speaker."""

    def __init__(
        self, folder: Path, library: Path, *, rate_hz: int = RATE_HZ, channels: int = 1
    ) -> None:
        self._fifo = folder / "microphone"
        self._speaker = folder / "speaker"
        self.rate_hz = rate_hz
        self._channels = channels
        os.mkfifo(self._fifo)
        self._speaker.touch()
        configuration = folder / "asound.conf"
        configuration.write_text(
            f'pcm_type.testcard {{ lib "{library}" }}\n'
            f'pcm.default {{ type testcard microphone "{self._fifo}" speaker "{self._speaker}"'
            f" rate {rate_hz} channels {channels} }}\n",
            encoding="utf-8",
        )
        self.environment = {"ALSA_CONFIG_PATH": str(configuration)}
        # The clock's thread alone writes these, and tells of it.
        self._ticked = threading.Condition()
        self.silent_periods = 0
        """Periods since the speaker was last heard."""
        self._looked = 0
        # Any thread: what is to be said, in periods.
        self._to_be_said: deque[bytes] = deque()
        self._stalled = False
        self._ended = threading.Event()
        self._clock = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._microphone = os.open(self._fifo, os.O_RDWR | os.O_NONBLOCK)
        self._clock.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._clock.join()
        os.close(self._microphone)

    def say(self, speech: PcmFloat) -> None:
        """Somebody speaks from now on: float32 [n] at 16 kHz, into the last of the channels."""
        mono = to_pcm16(np.asarray(soxr.resample(speech, RATE_HZ, self.rate_hz), np.float32))
        period = self.rate_hz * PERIOD_MS // 1000
        frames = np.zeros((-(-len(mono) // period) * period, self._channels), np.int16)
        frames[: len(mono), -1] = mono
        self._to_be_said.extend(
            part.tobytes() for part in frames.reshape(-1, period, self._channels)
        )

    def stall(self) -> None:
        """The clock stands still."""
        self._stalled = True

    def unplug(self) -> None:
        """The card is gone, and so is its clock."""
        self._stalled = True
        self._fifo.unlink()

    @property
    def left_to_say(self) -> int:
        """Frames of 16 kHz that were given to ``say`` and not recorded yet."""
        return len(self._to_be_said) * RATE_HZ * PERIOD_MS // 1000

    @property
    def speaking(self) -> bool:
        """Whether something could be heard from the speaker in the last period."""
        return self.silent_periods == 0 and self._looked > 0

    def wait_until(self, happened: Callable[[], bool]) -> None:
        """Wait for something that changes with the card's clock."""
        with self._ticked:
            assert self._ticked.wait_for(happened, PATIENCE_S), "it did not happen"

    def played(self) -> Pcm16:
        """All that was played so far: int16 [n], the first channel."""
        return np.fromfile(self._speaker, "<i2").reshape(-1, self._channels)[:, 0]

    def _run(self) -> None:
        silence = bytes(self.rate_hz * PERIOD_MS // 1000 * self._channels * 2)
        next_s = time.monotonic()
        while not self._ended.wait(max(0.0, next_s - time.monotonic())):
            next_s += PERIOD_MS / 1000
            if not self._stalled:
                period = self._to_be_said.popleft() if self._to_be_said else silence
                with contextlib.suppress(BlockingIOError):  # nobody listens: it is lost
                    os.write(self._microphone, period)
            with self._ticked:
                self._look()
                self._ticked.notify_all()

    def _look(self) -> None:
        with self._speaker.open("rb") as speaker:
            speaker.seek(self._looked)
            new = speaker.read()
        self._looked += len(new)
        self.silent_periods = 0 if any(new) else self.silent_periods + 1
