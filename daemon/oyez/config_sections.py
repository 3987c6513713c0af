"""How the configuration is put together: sections of keys, lists, and one-key items.

A section is a settings type: a frozen dataclass whose docstring says what it is about, and whose
fields are annotated with what may stand there and what it means, as in
``Annotated[int, Whole(200, 3000), "The silence that ..."]``; a field whose type is a settings
type is a section in the section. Reading goes to the end whatever is wrong on the way, so that
all mistakes are told at once.

Pure; runs on any thread.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from oyez.config_kinds import REFUSED, Kind, Reading, ScalarKind, ask, nearest
from oyez.yaml_reader import Entry, Node, Problem, Scalar, Sequence, Tree, Unusable, join
from oyez.yaml_writer import Value, flow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclass(frozen=True)
class Key:
    """One key of a section: its name, its default, what is allowed and what it is about."""

    name: str
    default: object
    kind: Kind
    about: str


@dataclass(frozen=True)
class Section(Kind):
    """The keys of a settings type, each of which may be left out."""

    of: type[Any]

    @cached_property
    def keys(self) -> dict[str, Key]:
        """The keys by name, in the order of the fields."""
        defaults = self.of()
        keys = {}
        for name, hint in get_type_hints(self.of, include_extras=True).items():
            kind, about = getattr(hint, "__metadata__", (Section(hint), hint.__doc__))
            keys[name] = Key(name, getattr(defaults, name), kind, about)
        return keys

    def walk(self, settings: object, path: str = "") -> Iterator[tuple[str, Key, object]]:
        """Every key below this section: dotted name, key, and the value it has in ``settings``.

        A section comes before its own keys.
        """
        for name, key in self.keys.items():
            value = getattr(settings, name)
            yield join(path, name), key, value
            if isinstance(key.kind, Section):
                yield from key.kind.walk(value, join(path, name))

    def allowed(self, key: str) -> str:  # noqa: ARG002  (the same for every key)
        """The names of the keys."""
        return f"the keys {', '.join(self.keys)}"

    def schema(self) -> dict[str, Any]:
        """The section as JSON Schema; null is a section whose keys are all commented out."""
        properties = {}
        for name, key in self.keys.items():
            default = {} if isinstance(key.kind, Section) else {"default": plain(key.default)}
            properties[name] = {"description": key.about, **key.kind.schema(), **default}
        return {
            "type": ["object", "null"],
            "properties": properties,
            "additionalProperties": False,
        }

    def read(self, node: Node, key: str, reading: Reading) -> Any:
        """The settings, with defaults for what is not there or was refused."""
        values = {}
        match node:
            case Tree():
                for name, entry in node.entries.items():
                    value = self._read_entry(name, entry, join(key, name), reading)
                    if value is not REFUSED:
                        values[name] = value
            case Scalar() if node.is_null:
                pass
            case _:
                _complain(node, key, reading, self._shape_fault(node))
        return self.of(**values)

    def _shape_fault(self, node: Node) -> str:
        if isinstance(node, Sequence):
            found = "a list stands where keys are wanted, remove the dashes"
        else:
            found = "a value stands where keys are wanted, write key: value with a space between"
        return f"{found}, allowed are {self.allowed('')}"

    def _read_entry(self, name: str, entry: Entry, dotted: str, reading: Reading) -> object:
        key = self.keys.get(name)
        if key is None:
            text = f"unknown key, {self._suggestion(name, dotted, reading.known)}"
            reading.problems.append(Problem(entry.mark, dotted, text))
            return REFUSED
        if isinstance(key.kind, Section):
            return key.kind.read(entry.value, dotted, reading)
        reading.entries[dotted] = entry
        if isinstance(entry.value, Scalar) and entry.value.is_null:
            default = f"remove the line to have the default, {flow(plain(key.default))}"
            text = f"no value is given, {default}, or give {key.kind.allowed(dotted)}"
            value = _complain(entry.value, dotted, reading, text)
        else:
            value = key.kind.read(entry.value, dotted, reading)
        if value is REFUSED:
            reading.refused.add(dotted)
        return value

    def _suggestion(self, name: str, dotted: str, known: tuple[str, ...]) -> str:
        """What the person may have meant: a key of that name elsewhere, or one alike here."""
        if name in known and "." in name:
            return "write the section and the key on a line each"
        word = name.strip().lower().replace("-", "_")
        elsewhere = [other for other in known if _last(other) == word]
        if elsewhere and word not in self.keys:
            *others, last = elsewhere
            return f"is it {', '.join(others)} or {last}?" if others else f"is it {last}?"
        if here := ask(word, self.keys):
            return here
        if near := nearest(word, map(_last, known)):
            return f"is it {next(other for other in known if _last(other) == near)}?"
        return f"allowed are {self.allowed(dotted)}"


@dataclass(frozen=True)
class Items(Kind):
    """A list of values of one kind, kept as a tuple."""

    of: Kind
    least: int = 0
    most: int | None = None

    def allowed(self, key: str) -> str:
        """How many of what, in words."""
        count = f"{self.least} or more" if self.most is None else f"at most {self.most}"
        return f"a list of {count} ({self.of.allowed(key)})"

    def schema(self) -> dict[str, Any]:
        """The list as JSON Schema."""
        limits = {"minItems": self.least} | ({} if self.most is None else {"maxItems": self.most})
        return {"type": "array", "items": self.of.schema(), **limits}

    def read(self, node: Node, key: str, reading: Reading) -> object:
        """The tuple, or ``REFUSED`` with every bad item told."""
        if not isinstance(node, Sequence):
            dashes = "no list, write each item on a line of its own after a dash"
            text = f"{dashes}, allowed is {self.allowed(key)}"
            return _complain(node, key, reading, text)
        values = tuple(self.of.read(item, key, reading) for item in node.items)
        count = len(values)
        if count < self.least or (self.most is not None and count > self.most):
            text = f"a list of {count}, allowed is {self.allowed(key)}"
            return _complain(node, key, reading, text)
        return REFUSED if REFUSED in values else values


@dataclass(frozen=True)
class OneKey(Kind):
    """An item that is one key with its value, as in ``- echo: ...``; ``make`` takes the value."""

    name: str
    kind: ScalarKind
    make: Callable[..., object]

    def allowed(self, key: str) -> str:
        """The key and its value, in words."""
        return f"{self.name}: and {self.kind.allowed(key)}"

    def schema(self) -> dict[str, Any]:
        """The item as JSON Schema."""
        return {
            "type": "object",
            "properties": {self.name: self.kind.schema()},
            "required": [self.name],
            "additionalProperties": False,
        }

    def read(self, node: Node, key: str, reading: Reading) -> object:
        """What ``make`` makes of the value, or ``REFUSED`` with a problem added."""
        if not isinstance(node, Tree):
            text = f"an item without a key, allowed is {self.allowed(key)}"
            return _complain(node, key, reading, text)
        for name, entry in node.entries.items():
            if name != self.name:
                near = ask(name, [self.name]) or f"allowed is {self.allowed(key)}"
                text = f"unknown key, {near}"
                reading.problems.append(Problem(entry.mark, join(key, name), text))
        if self.name not in node.entries:
            if not node.entries:
                text = f"an item without a key, allowed is {self.allowed(key)}"
                return _complain(node, key, reading, text)
            return REFUSED
        value = self.kind.read(node.entries[self.name].value, join(key, self.name), reading)
        if value is REFUSED or len(node.entries) > 1:
            return REFUSED
        return self.make(**{self.name: value})


def plain(value: object) -> Value:
    """A setting as YAML and JSON hold it."""
    match value:
        case bool() | int() | str():
            return value
        case float():
            return int(value) if value.is_integer() else value
        case Path():
            text = str(value)
            # A relative path may look like a home folder or like the word auto.
            mistakable = text.startswith("~") or text.strip().lower() == "auto"
            return f"./{text}" if mistakable else text
        case tuple():
            return [plain(item) for item in value]
        case _ if dataclasses.is_dataclass(value):
            names = (field.name for field in dataclasses.fields(value))
            return {name: plain(getattr(value, name)) for name in names}
        case _:
            raise TypeError(type(value).__name__)


def _last(dotted: str) -> str:
    return dotted.rpartition(".")[2]


def _complain(node: Node, key: str, reading: Reading, text: str) -> object:
    if not isinstance(node, Unusable):
        reading.problems.append(Problem(node.mark, key, text))
    return REFUSED
