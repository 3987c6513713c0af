"""Recordings in the microphone's place, a WAV in the speaker's, and what paces them.

Opened and closed by main, used by the audio thread in between. Reading goes through libsndfile,
which knows every WAV in the field (8 to 32 bits, float, extensible headers, truncated files) and
FLAC, Ogg and MP3 besides.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
import wave
from typing import TYPE_CHECKING, Protocol

import numpy as np

from oyez.audio.pcm import SampleFormat, StreamFormat, to_pcm16
from oyez.audio.ports import Period
from oyez.errors import InputError, MissingLibraryError, NotFoundError, OutputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from oyez.messages import Pcm16, PcmFloat

MAX_CHANNELS = 64
"""More than any recorder has; a header that claims more is damaged."""
RATES_HZ = range(1_000, 768_001)
"""Sampling rates that a recording may have; outside of them the header is damaged."""
ANSWER_GAP_S = 0.5
"""The silence that stands between two answers in the speaker's WAV."""


class Source(Protocol):
    """Something finite to be heard: a file or an array."""

    stream: StreamFormat
    description: str

    def read(self, frames: int) -> bytes:
        """The next ``frames`` frames, interleaved; fewer at the end, then none."""
        ...

    def close(self) -> None:
        """Free what it holds; safe to call twice."""
        ...


class Recording:
    """A sound file, read piece by piece in the format in which it was recorded.

    Raises:
        NotFoundError: there is no such file, or it may not be read.
        InputError: it is no sound file, or has no sound in it.
    """

    def __init__(self, path: Path) -> None:
        try:
            import soundfile  # noqa: PLC0415 - optional: only recordings need it
        except (ImportError, OSError) as error:
            raise MissingLibraryError(
                "soundfile", "reading recordings", remedy="install the package soundfile"
            ) from error
        _check_readable(path)
        self._path = path
        self._broken = soundfile.LibsndfileError
        try:
            # As bytes, since a name need not be UTF-8. TypeError is what a file that is named
            # .raw gets: it has no header, and nobody knows its rate.
            self._file = soundfile.SoundFile(os.fsencode(path))
        except (self._broken, TypeError) as error:
            reason = getattr(error, "error_string", error)
            raise InputError(
                f"{path} is not a recording that can be read: {reason}",
                remedy="give a WAV, FLAC, Ogg or MP3 file",
            ) from error
        # Else soundfile seeks after each read, to where it is already: an MP3 is then spoilt at
        # each piece, since its decoder loses what it carries from frame to frame.
        self._file.seekable = lambda: False
        self._dtype, sample_format = _DELIVERED.get(
            self._file.subtype, ("float32", SampleFormat.FLOAT)
        )
        self.stream = StreamFormat(
            rate_hz=self._file.samplerate,
            channels=self._file.channels,
            sample_format=sample_format,
        )
        self.description = path.name
        problem = ""
        if self._file.frames == 0:
            problem = "has no sound in it"
        elif self.stream.channels > MAX_CHANNELS or self.stream.rate_hz not in RATES_HZ:
            problem = f"claims {self.stream}, which no recording has"
        if problem:
            self._file.close()
            raise InputError(f"{path} {problem}", remedy="is the file whole?")

    def read(self, frames: int) -> bytes:
        """The next frames, see ``Source``.

        Raises:
            InputError: the file is damaged from here on.
        """
        try:
            samples = self._file.read(frames, dtype=self._dtype)
        except self._broken as error:
            raise InputError(
                f"{self._path} is damaged at {self._file.tell() / self.stream.rate_hz:.1f} s: "
                f"{error}",
                remedy="is the file whole?",
            ) from error
        if self.stream.sample_format is SampleFormat.U8:
            # libsndfile widens 8 bits to the upper half of 16; back, so that clipping is seen.
            samples = ((samples >> 8) + 128).astype(np.uint8)
        raw: bytes = samples.tobytes()
        return raw

    def close(self) -> None:
        """Close the file."""
        self._file.close()


# libsndfile's name of how it is stored -> what to read it as, so that no bit is lost.
_DELIVERED = {
    "PCM_U8": ("int16", SampleFormat.U8),
    "PCM_S8": ("int16", SampleFormat.U8),
    "PCM_16": ("int16", SampleFormat.S16),
    "PCM_24": ("int32", SampleFormat.S32),
    "PCM_32": ("int32", SampleFormat.S32),
    "ULAW": ("int16", SampleFormat.S16),
    "ALAW": ("int16", SampleFormat.S16),
}


def _check_readable(path: Path) -> None:
    try:
        is_file = stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError as error:
        raise NotFoundError(f"there is no file {path}", remedy="check the name") from error
    except OSError as error:
        raise NotFoundError(
            f"{path} cannot be read: {error.strerror}", remedy="check the name and the permissions"
        ) from error
    if not is_file:
        raise InputError(f"{path} is not a file", remedy="give a recording, for example a WAV")
    if not os.access(path, os.R_OK):
        raise NotFoundError(f"{path} may not be read", remedy="check its permissions")


class ArraySource:
    """int16 mono [frames] at ``rate_hz`` in the place of a recording."""

    def __init__(self, samples: Pcm16, rate_hz: int, description: str) -> None:
        self._samples = samples
        self._position = 0
        self.stream = StreamFormat(rate_hz=rate_hz, channels=1, sample_format=SampleFormat.S16)
        self.description = description

    def read(self, frames: int) -> bytes:
        """The next frames, see ``Source``."""
        piece = self._samples[self._position : self._position + frames]
        self._position += len(piece)
        return piece.tobytes()

    def close(self) -> None:
        """Nothing to free."""


class Pacer(Protocol):
    """Decides when the next period may be heard."""

    def wait_until(self, stream_s: float) -> None:
        """Return when ``stream_s`` seconds of sound may be known."""
        ...


class RealTime:
    """As a card would deliver it, on the monotonic clock that starts with the first period.

    When the machine was held up, periods follow each other at once until the lag is made good, as
    they do out of a card's buffer: the stream never drifts.
    """

    def __init__(self) -> None:
        self._start_s: float | None = None

    def wait_until(self, stream_s: float) -> None:
        """See ``Pacer``."""
        now_s = time.monotonic()
        if self._start_s is None:
            self._start_s = now_s
        time.sleep(max(0.0, self._start_s + stream_s - now_s))


class Lockstep:
    """As fast as the work allows: a period comes when all consequences of the last are done.

    So nobody can be late, and a run decides the same at any speed. For tests and replays.
    """

    POLL_S = 0.0002

    def __init__(self, settled: Callable[[], bool]) -> None:
        self._settled = settled

    def wait_until(self, stream_s: float) -> None:  # noqa: ARG002 - the work is the clock
        """See ``Pacer``."""
        while not self._settled():
            time.sleep(self.POLL_S)


class PacedCapture:
    """A source in the microphone's place; implements ``ports.Capture``.

    A period can be read only when its last frame would have been heard: nobody behind it sees
    frames beyond its index.
    """

    def __init__(self, source: Source, pacer: Pacer, period_ms: int) -> None:
        self._source = source
        self._pacer = pacer
        self._periods = 0
        self._ended = False
        self.stream = source.stream
        self.period_frames = max(1, round(source.stream.rate_hz * period_ms / 1000))
        self.description = source.description

    def read(self) -> Period | None:
        """See ``ports.Capture``."""
        self._periods += 1
        self._pacer.wait_until(self._periods * self.period_frames / self.stream.rate_hz)
        raw = b"" if self._ended else self._source.read(self.period_frames)
        self._ended = not raw
        return Period(raw, overrun=False) if raw else None

    def close(self) -> None:
        """See ``ports.Capture``."""
        self._source.close()


def check_writable(path: Path) -> None:
    """See that a file may be put there, as far as that can be told beforehand.

    Raises:
        OutputError: it cannot.
    """
    folder = path.parent
    try:
        if path.is_dir():
            problem, remedy = "is a folder", "name a file"
        elif path.exists() and not path.is_file():
            # A finished file takes the place of what is there, and a device is nobody's to replace.
            problem, remedy = "is not a file but a device or a pipe", "name a file"
        elif not folder.is_dir():
            problem, remedy = f"cannot be written: there is no folder {folder}", "make it first"
        elif not os.access(folder, os.W_OK | os.X_OK):
            problem = f"cannot be written: the folder {folder.absolute()} is not yours to write in"
            remedy = "choose another place with --output"
        else:
            return
    except OSError as error:  # a name that is too long
        problem, remedy = f"cannot be written: {error.strerror}", "choose another name"
    raise OutputError(f"{path} {problem}", remedy=remedy)


class WavPlayback:
    """A WAV in the speaker's place; implements ``ports.Playback``.

    Holds what was spoken, without the silence around it. The file appears under its name when it
    is whole, at ``close``, and only if anything was spoken: ``written`` tells.

    Raises:
        OutputError: it cannot be written there.
    """

    audible = False
    underruns = 0
    latency_ms = 0.0

    def __init__(self, path: Path, rate_hz: int) -> None:
        check_writable(path)
        self._path = path
        self.rate_hz = rate_hz
        self.description = str(path)
        self.written = False
        self._speaking = False
        self._any = False
        with self._errors_named():
            self._part = path.with_name(f".{path.name}.{os.getpid()}.part")
            self._file = self._part.open("wb")
            self._wave = wave.open(self._file, "wb")  # noqa: SIM115 - open until close()
            self._wave.setparams((1, 2, rate_hz, 0, "NONE", ""))

    def wanted_frames(self, heard_s: float) -> int:
        """See ``ports.Playback``: as much as was heard."""
        return round(heard_s * self.rate_hz)

    def write(self, samples: PcmFloat, spoken_frames: int) -> None:
        """See ``ports.Playback``."""
        if not spoken_frames:
            self._speaking = False
            return
        with self._errors_named():
            try:
                if self._any and not self._speaking:
                    self._wave.writeframesraw(bytes(2 * round(ANSWER_GAP_S * self.rate_hz)))
                self._wave.writeframesraw(to_pcm16(samples[:spoken_frames]).tobytes())
            except OSError:
                self.discard()  # it lacks something: it must not pass for whole at close
                raise
        self._speaking = self._any = True

    def close(self) -> None:
        """See ``ports.Playback``."""
        if self._file.closed:
            return
        try:
            with self._errors_named():
                self._wave.close()
                self._file.close()
                if self._any:
                    self._part.replace(self._path)
                    self.written = True
        finally:
            self.discard()

    def discard(self) -> None:
        """Leave no file, where ``close`` was not called before."""
        for opened in (self._wave, self._file):  # in this order: a wave writes when it is closed
            with contextlib.suppress(OSError):  # a full disk: what is still buffered may be lost
                opened.close()
        self._part.unlink(missing_ok=True)

    @contextlib.contextmanager
    def _errors_named(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise OutputError(
                f"{self._path} cannot be written: {error.strerror}",
                remedy="choose another place with --output, or make room there",
            ) from error
