"""Every error that Oyez raises on purpose.

The tree::

    OyezError                    1  internal        something that should not happen
    ├── UsageError               2  usage           the command line makes no sense
    ├── InputError              65  input           a file is there but cannot be used
    ├── NotFoundError           66  not-found       a file is not there
    ├── UnavailableError        69  unavailable     a device, library or engine is missing
    │   ├── MissingLibraryError 69  missing-library an optional Python or system library
    │   ├── AudioDeviceError    69  audio-device    the sound card
    │   └── EngineError         69  engine          a model loaded but does not answer
    ├── ModelError              69  model           a model is missing or damaged
    ├── OutputError             74  output          a file cannot be written
    ├── FetchError              74  fetch           a download failed
    └── ConfigError             78  config          the configuration is wrong

The number is the exit code (from sysexits.h where one fits), the word is the stable code that
logs, JSON and protocols carry. Each error says what is wrong and, in ``remedy``, what to do.
"""

from __future__ import annotations

from typing import ClassVar


class OyezError(Exception):
    """An error with a stable ``code``, an ``exit_code`` and a ``remedy`` for the person."""

    code: ClassVar[str] = "internal"
    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message} ({self.remedy})" if self.remedy else self.message


class UsageError(OyezError):
    """The command line makes no sense."""

    code = "usage"
    exit_code = 2


class InputError(OyezError):
    """A file was found but cannot be used: not a WAV, truncated, empty."""

    code = "input"
    exit_code = 65


class NotFoundError(OyezError):
    """A file that was named is not there or may not be read."""

    code = "not-found"
    exit_code = 66


class UnavailableError(OyezError):
    """Something that the work needs is missing on this machine."""

    code = "unavailable"
    exit_code = 69


class MissingLibraryError(UnavailableError):
    """An optional library is not installed; the message names the feature that is lost."""

    code = "missing-library"

    def __init__(self, library: str, feature: str, *, remedy: str = "") -> None:
        super().__init__(f"{feature} needs {library}, which is not installed", remedy=remedy)
        self.library = library
        self.feature = feature


class AudioDeviceError(UnavailableError):
    """The sound card cannot be opened, or failed while in use."""

    code = "audio-device"


class EngineError(UnavailableError):
    """An engine (recognizer, voice, detector) was loaded but does not do its work."""

    code = "engine"


class ModelError(OyezError):
    """A model is missing, damaged, or not the one that its name says."""

    code = "model"
    exit_code = 69


class OutputError(OyezError):
    """A file cannot be written: no space, no permission."""

    code = "output"
    exit_code = 74


class FetchError(OyezError):
    """A download failed from every source."""

    code = "fetch"
    exit_code = 74


class ConfigError(OyezError):
    """The configuration is wrong; ``problems`` holds one line for each mistake."""

    code = "config"
    exit_code = 78

    def __init__(self, problems: list[str], *, remedy: str = "") -> None:
        super().__init__("\n".join(problems), remedy=remedy)
        self.problems = problems
