"""What may stand behind a key of the configuration: one class for each kind of single value.

A kind is the one home of what is allowed: the loader's checks, the words of its messages, the
JSON Schema and the documentation all come from it. Lists and sections are in config_sections.

Pure; runs on any thread.
"""

from __future__ import annotations

import difflib
import math
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from oyez.yaml_reader import Entry, Node, Problem, Scalar, Sequence, Unusable, shown
from oyez.yaml_writer import flow

if TYPE_CHECKING:
    from collections.abc import Iterable

REFUSED: Final = object()
"""What ``Kind.read`` returns for a value that it refused (the problem is in the reading)."""

UNITS: Final = {"ms": "ms", "s": "s", "db": "dB"}
"""The unit of a number is the last part of its key's name; absent from this table: no unit."""

_NUMBER = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?", re.ASCII)
_WITH_UNIT = re.compile(rf"({_NUMBER.pattern})\s*(?P<unit>ms|s|db)", re.ASCII | re.IGNORECASE)
_LEADING_ZERO = re.compile(r"[-+]?0\d", re.ASCII)
_NOT_FINITE = re.compile(r"[-+]?\.?(nan|inf|infinity)", re.IGNORECASE)
_BOOLEANS: Final = {"true": True, "false": False}
_MEANT_AS_BOOLEAN: Final = {
    "yes": "true", "on": "true", "y": "true", "1": "true", "true": "true",
    "no": "false", "off": "false", "n": "false", "0": "false", "false": "false",
}  # fmt: skip

# Text is one line that a terminal, the journal and a voice can take, and that YAML can hold.
_NOT_TEXT = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
# What a YAML reader takes for something else than text when it stands there without quotes.
_TYPED = re.compile(rf"true|false|{_NUMBER.pattern}|[-+]?\.(nan|inf)", re.ASCII | re.IGNORECASE)


class Refusal(Exception):  # noqa: N818  (it says "no" to one value, it is none of the tree of errors)
    """A value is not allowed: ``wrong`` says why, ``hint`` what may have been meant."""

    def __init__(self, wrong: str, hint: str = "") -> None:
        super().__init__(wrong)
        self.wrong = wrong
        self.hint = hint


@dataclass(slots=True)
class Reading:
    """What gathers while one file is read."""

    known: tuple[str, ...]
    """Every dotted key that exists."""
    problems: list[Problem]
    entries: dict[str, Entry] = field(default_factory=dict)
    """The dotted keys that the file sets."""
    refused: set[str] = field(default_factory=set)
    """Those of them whose value could not be used."""


class Kind(ABC):
    """What may stand behind a key."""

    @abstractmethod
    def read(self, node: Node, key: str, reading: Reading) -> object:
        """The value of ``node``, or ``REFUSED`` with a problem added to the reading."""

    @abstractmethod
    def allowed(self, key: str) -> str:
        """What is allowed, in words that follow "allowed is"; the key tells the unit."""

    @abstractmethod
    def schema(self) -> dict[str, Any]:
        """The same as JSON Schema."""


class ScalarKind(Kind):
    """A kind of single value."""

    @abstractmethod
    def value(self, scalar: Scalar, key: str) -> object:
        """The value.

        Raises:
            Refusal: it is not allowed.
        """

    def read(self, node: Node, key: str, reading: Reading) -> object:
        """The value of ``node``, or ``REFUSED`` with a problem added to the reading."""
        if isinstance(node, Unusable):
            return REFUSED
        try:
            return self.value(_single(node), key)
        except Refusal as refusal:
            text = f"{refusal.wrong}, allowed is {self.allowed(key)}"
            text += f"; {refusal.hint}" if refusal.hint else ""
            reading.problems.append(Problem(node.mark, key, text))
            return REFUSED


def _single(node: Node) -> Scalar:
    if not isinstance(node, Scalar):
        found = "a list stands" if isinstance(node, Sequence) else "keys stand"
        raise Refusal(f"{found} where one value is wanted")
    if node.is_null:
        raise Refusal("no value is given")
    return node


@dataclass(frozen=True)
class Number(ScalarKind):
    """A finite number from ``low`` to ``high``, in the unit that the key's name ends with."""

    low: float
    high: float
    json_type: ClassVar[str] = "number"
    words: ClassVar[str] = "a number"

    def allowed(self, key: str) -> str:
        """The range in words."""
        unit = UNITS.get(_unit(key), "")
        return f"{self.words} from {self.low:g} to {self.high:.12g} {unit}".rstrip()

    def schema(self) -> dict[str, Any]:
        """The range as JSON Schema."""
        return {"type": self.json_type, "minimum": self.low, "maximum": self.high}

    def value(self, scalar: Scalar, key: str) -> float:
        """The number as typed: decimal digits, not quoted, and no unit."""
        text = scalar.text
        if not scalar.plain:
            hint = f"remove the quotes: {shown(text)}" if _NUMBER.fullmatch(text) else ""
            raise Refusal(f"{scalar.shown} is text", hint)
        if match := _WITH_UNIT.fullmatch(text):
            raise Refusal(f"{scalar.shown} has a unit", self._without_unit(match, key))
        if _NOT_FINITE.fullmatch(text) or (_NUMBER.fullmatch(text) and math.isinf(float(text))):
            raise Refusal(f"{scalar.shown} is not finite")
        if not _NUMBER.fullmatch(text):
            raise Refusal(f"{scalar.shown} is not a number")
        number = float(text) + 0.0  # turns -0.0 into 0.0
        if _LEADING_ZERO.match(text):
            # Some read 0100 as 64.
            raise Refusal(f"{scalar.shown} begins with a zero", f"did you mean {_written(number)}?")
        if not self._fits(number):
            raise Refusal(f"{scalar.shown} is {self._fault(number)}", self._guess(number, key))
        return number

    def _fits(self, number: float) -> bool:
        return self.low <= number <= self.high

    def _fault(self, number: float) -> str:
        return "too small" if number < self.low else "too large"

    def _guess(self, number: float, key: str) -> str:
        """Seconds given for milliseconds and the other way round are the common mistake."""
        factor = {"ms": 1000.0, "s": 0.001}.get(_unit(key), math.nan)
        meant = round(number * factor, 9)
        return f"did you mean {_written(meant)}?" if self._fits(meant) else ""

    def _without_unit(self, match: re.Match[str], key: str) -> str:
        unit, given = _unit(key), match["unit"].lower()
        factor = {("ms", "s"): 1000.0, ("s", "ms"): 0.001}.get((unit, given), 1.0)
        meant = round(float(match[1]) * factor, 9)
        if unit not in UNITS or (unit == "db") != (given == "db") or not self._fits(meant):
            return "write a number alone"
        return f"the key's name says {UNITS[unit]} already, write {_written(meant)}"


@dataclass(frozen=True)
class Whole(Number):
    """A whole number; ``20.0`` is one, as in JSON Schema."""

    json_type: ClassVar[str] = "integer"
    words: ClassVar[str] = "a whole number"

    def value(self, scalar: Scalar, key: str) -> int:
        """The number as an int."""
        return int(super().value(scalar, key))

    def _fits(self, number: float) -> bool:
        return number.is_integer() and super()._fits(number)

    def _fault(self, number: float) -> str:
        return super()._fault(number) if not super()._fits(number) else "not whole"


@dataclass(frozen=True)
class Flag(ScalarKind):
    """``true`` or ``false``, and no other word for them."""

    def allowed(self, key: str) -> str:  # noqa: ARG002  (the same for every key)
        """Both, in words."""
        return "true or false"

    def schema(self) -> dict[str, Any]:
        """Both, as JSON Schema."""
        return {"type": "boolean"}

    def value(self, scalar: Scalar, key: str) -> bool:  # noqa: ARG002
        """The boolean."""
        if scalar.plain and scalar.text in _BOOLEANS:
            return _BOOLEANS[scalar.text]
        meant = _MEANT_AS_BOOLEAN.get(scalar.text.lower(), "")
        if not scalar.plain:
            raise Refusal(f"{scalar.shown} is text", meant and f"remove the quotes: {meant}")
        raise Refusal(f"{scalar.shown} is no boolean", meant and f"did you mean {meant}?")


@dataclass(frozen=True)
class Text(ScalarKind):
    """One line of text that is not empty."""

    words: str = "text that is not empty"

    def allowed(self, key: str) -> str:  # noqa: ARG002
        """What the text is."""
        return self.words

    def schema(self) -> dict[str, Any]:
        """Any line of text, as JSON Schema."""
        return {"type": "string", "pattern": r"\S"}

    def value(self, scalar: Scalar, key: str) -> object:  # noqa: ARG002
        """The text; the line end that a text block brings along is taken off."""
        text = scalar.text.rstrip("\n")
        if scalar.plain and _TYPED.fullmatch(text):
            sort = "a boolean" if text.lower() in _BOOLEANS else "a number"
            raise Refusal(f"{scalar.shown} is {sort}", f"as text it needs quotes: {_quoted(text)}")
        if not text.strip():
            raise Refusal("an empty text")
        if _NOT_TEXT.search(text):
            raise Refusal(f"{scalar.shown} holds a line break or another control character")
        return self.checked(text)

    def checked(self, text: str) -> object:
        """The value that a sound line of text stands for; subclasses ask for more."""
        return text


@dataclass(frozen=True)
class Template(Text):
    """Text with fields in braces, for ``str.format``; ``{{`` and ``}}`` are braces themselves."""

    fields: tuple[str, ...] = ()

    def allowed(self, key: str) -> str:  # noqa: ARG002
        """What may stand in braces."""
        return f"text in which only {' or '.join(self._fields())} is in braces"

    def schema(self) -> dict[str, Any]:
        """The grammar of braces as JSON Schema."""
        return {"type": "string", "pattern": rf"^(?=.*\S)([^{{}}]|{self._sound()})+$"}

    def checked(self, text: str) -> str:
        """The template, with no fields but its own and no brace that has no partner."""
        rest = re.sub(self._sound(), "", text)
        if unknown := re.search(r"\{([^{}]*)\}", rest):
            raise Refusal(
                f"the field {shown(unknown[0])} is unknown", ask(unknown[0], self._fields())
            )
        if brace := re.search(r"[{}]", rest):
            twice = brace[0] * 2
            raise Refusal(
                f"a {brace[0]} has no partner", f"the character itself is written {twice}"
            )
        return text

    def _fields(self) -> list[str]:
        return [f"{{{name}}}" for name in self.fields]

    def _sound(self) -> str:
        return r"\{\{|\}\}|" + "|".join(map(re.escape, self._fields()))


@dataclass(frozen=True)
class FilePath(Text):
    """The path of a file or folder; ``~`` is the home folder."""

    words: str = "a path"

    def checked(self, text: str) -> Path:
        """The path, with the home folder spelled out."""
        if not text.startswith("~"):
            return Path(text)  # as it is: Path takes the "./" of "./~x" away before it expands
        try:
            return Path(text).expanduser()
        except RuntimeError as error:
            raise Refusal(f"{shown(text)} needs a home folder that is not known here") from error


@dataclass(frozen=True)
class Choice(ScalarKind):
    """One of a few words; ``words`` stands for them where they are too many to list."""

    choices: tuple[str, ...]
    words: str = ""

    def allowed(self, key: str) -> str:  # noqa: ARG002
        """The choices in words."""
        *others, last = self.choices
        return self.words or (f"{', '.join(others)} or {last}" if others else last)

    def schema(self) -> dict[str, Any]:
        """The choices as JSON Schema."""
        return {"enum": list(self.choices)}

    def value(self, scalar: Scalar, key: str) -> str:  # noqa: ARG002
        """The choice."""
        if scalar.text in self.choices:
            return scalar.text
        raise Refusal(f"{scalar.shown} is not among the choices", ask(scalar.text, self.choices))


@dataclass(frozen=True)
class WordOr(ScalarKind):
    """A word such as ``auto``, or a value of another kind."""

    other: ScalarKind
    words: tuple[str, ...] = ("auto",)

    def allowed(self, key: str) -> str:
        """All of them, in words."""
        return f"{', '.join(self.words)}, or {self.other.allowed(key)}"

    def schema(self) -> dict[str, Any]:
        """All of them, as JSON Schema."""
        return {"anyOf": [*({"const": word} for word in self.words), self.other.schema()]}

    def value(self, scalar: Scalar, key: str) -> object:
        """The word, or the other kind's value."""
        if scalar.text in self.words:
            return scalar.text
        if (meant := scalar.text.strip().lower()) in self.words:
            raise Refusal(f"{scalar.shown} is misspelled", f"did you mean {meant}?")
        return self.other.value(scalar, key)


def nearest(word: str, words: Iterable[str]) -> str:
    """The one of the words that was probably meant, or nothing; case does not count."""
    candidates = {candidate.lower(): candidate for candidate in words}
    plain = word.strip().lower()
    near = difflib.get_close_matches(plain[:80], candidates, n=1)
    # A code with a region, such as en-US, begins with the language's.
    return candidates.get(plain) or candidates.get(
        near[0] if near else re.split(r"[-_]", plain)[0], ""
    )


def ask(word: str, words: Iterable[str]) -> str:
    """The question whether the nearest of the words was meant, or nothing if none is near."""
    meant = nearest(word, words)
    return meant and f"did you mean {meant}?"


def _unit(key: str) -> str:
    return key.rpartition("_")[2]


def _written(number: float) -> str:
    return flow(int(number) if number.is_integer() else number)


def _quoted(text: str) -> str:
    return f'"{shown(text)}"'
