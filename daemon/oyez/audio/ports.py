"""What a sound source and a sound sink are: the Protocols that every backend satisfies.

Both are opened and closed by main, and used by the audio thread alone in between. A contract test
in tests/contracts runs over every implementation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from oyez.audio.pcm import StreamFormat
    from oyez.messages import PcmFloat


class Period(NamedTuple):
    """What one ``read`` gave: interleaved bytes in the capture's ``stream``, any number of them.

    ``overrun`` says that the driver reported lost sound; ``lost_s`` how much time before these
    bytes was not heard, as far as the port can tell; ``reopened`` that they are the first of a
    device that was opened just now, where nothing holds that was learned before.
    """

    raw: bytes | memoryview
    overrun: bool
    lost_s: float = 0.0
    reopened: bool = False


class Capture(Protocol):
    """A microphone, or what stands in its place."""

    @property
    def stream(self) -> StreamFormat:
        """What is really delivered (not what was asked for); may change from read to read."""
        ...

    @property
    def period_frames(self) -> int:
        """How many frames one ``read`` gives, at ``stream.rate_hz``."""
        ...

    @property
    def description(self) -> str:
        """What it is, for a person: ``USB PnP Sound Device`` or a file's name."""
        ...

    def read(self) -> Period | None:
        """Wait for the next period and return it.

        None once a finite source is at its end: it still waits a period's time at each call, so
        that the loop that plays the answer keeps its pace.

        Raises:
            AudioDeviceError: the device failed; the port is of no more use.
        """
        ...

    def close(self) -> None:
        """Give the device or file back; safe to call twice."""
        ...


class Playback(Protocol):
    """A speaker, or what stands in its place. It takes mono float32 and adapts it itself."""

    @property
    def rate_hz(self) -> int:
        """The rate at which ``write`` takes samples."""
        ...

    @property
    def audible(self) -> bool:
        """Whether the microphone can hear what is played: a file in its place cannot."""
        ...

    @property
    def underruns(self) -> int:
        """How often the device had nothing to play, so far."""
        ...

    @property
    def written(self) -> bool:
        """Whether ``close`` left a file, which ``description`` then names."""
        ...

    @property
    def latency_ms(self) -> float:
        """From ``write`` to the air, as far as the driver tells."""
        ...

    @property
    def description(self) -> str:
        """What it is, for a person."""
        ...

    def wanted_frames(self, heard_s: float) -> int:
        """How many frames ``write`` should be given now, after ``heard_s`` more were heard.

        Asked again after each ``write`` with 0, until it wants none.
        """
        ...

    def write(self, samples: PcmFloat, spoken_frames: int) -> None:
        """Play so much: float32 [n]; its first ``spoken_frames`` are speech, the rest silence.

        Raises:
            AudioDeviceError: the device failed.
            OutputError: a file cannot be written.
        """
        ...

    def close(self) -> None:
        """Finish what was written and give the device or file back; safe to call twice."""
        ...
