"""Strict YAML: text goes in, a tree with lines and columns comes out, and every fault is told.

Owns the grammar of our configuration files. It takes from YAML what settings need (mappings,
lists, scalars, comments) and refuses the rest by name: anchors and aliases, tags, merge keys,
several documents, a key set twice. Scalars stay the text that was typed: nothing turns into a
number, a boolean or a date before a settings key asks for one, so `no` and `12:30` are text.

Pure; runs on any thread.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_BYTES = 64 * 1024
"""A settings file is a few kilobytes; more is another file, and slow to read on a small board."""

TOO_LARGE = f"larger than {MAX_BYTES // 1024} KiB, so no configuration of Oyez"

_MAX_DEPTH = 16
_SHOWN_CHARACTERS = 40

# What YAML forbids, and three that PyYAML counts as line ends where editors do not (U+0085,
# U+2028, U+2029): with them the line numbers in our messages would be wrong.
_FORBIDDEN = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]"
)
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_ANCHORS = "anchors (&name) and aliases (*name) are not supported, write the value out"


@dataclass(frozen=True, slots=True, order=True)
class Mark:
    """A place in the file; both count from 1, columns in characters."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Scalar:
    """One value as typed; ``plain`` if it stands in neither quotes nor a text block."""

    mark: Mark
    text: str
    plain: bool

    @property
    def is_null(self) -> bool:
        """Whether YAML reads this as nothing at all."""
        return self.plain and self.text in _NULLS

    @property
    def shown(self) -> str:
        """The value as messages show it: on one line, short, with its quotes."""
        return shown(self.text) if self.plain else f'"{shown(self.text)}"'


@dataclass(frozen=True, slots=True)
class Sequence:
    """A list."""

    mark: Mark
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """One key of a mapping: where the key stands, and its value."""

    mark: Mark
    value: Node


@dataclass(frozen=True, slots=True)
class Tree:
    """A mapping of keys to entries, in the file's order."""

    mark: Mark
    entries: Mapping[str, Entry]


@dataclass(frozen=True, slots=True)
class Unusable:
    """A value that was refused already: nobody needs to complain about it again."""

    mark: Mark


Node = Scalar | Sequence | Tree | Unusable


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in the file: where, at which dotted key (may be empty), and what."""

    mark: Mark
    key: str
    text: str

    def line(self, name: str) -> str:
        """The line for the person: ``file:line:column: section.key: what is wrong``."""
        place = f"{name}:{self.mark.line}:{self.mark.column}"
        return ": ".join(part for part in (place, self.key, self.text) if part)


class _Unreadable(Exception):  # noqa: N818  (inside this module only; callers get the problem)
    """The text is no YAML from here on: ``problem`` says where and why."""

    def __init__(self, mark: Mark, text: str) -> None:
        super().__init__(text)
        self.problem = Problem(mark, "", text)


def printable(text: str) -> str:
    """The same text on one line: what does not print becomes an escape."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def shown(text: str) -> str:
    """A text as messages show it: printable, and cut when long."""
    cut = text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 1] + "…"
    return printable(cut)


def join(path: str, name: str) -> str:
    """The dotted name of a key below ``path`` (empty at the top), fit for a message."""
    return f"{path}.{shown(name)}" if path else shown(name)


def read(text: str) -> tuple[Node | None, list[Problem]]:
    """The tree of a text, and what is wrong with it.

    The tree is None when there is nothing in the text but comments, and when the text cannot be
    read to its end. Line ends may be LF, CRLF or CR, and a byte order mark may come first.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if len(text) > MAX_BYTES:
        return None, [Problem(Mark(1, 1), "", TOO_LARGE)]
    if stray := _FORBIDDEN.search(text):
        said = f"the character U+{ord(stray[0]):04X} may not stand here"
        return None, [Problem(place(text, stray.start()), "", said)]
    loader = yaml.SafeLoader(text)
    builder = _Builder(loader)
    try:
        return builder.document(), builder.problems
    except _Unreadable as error:
        problem = error.problem
    except yaml.MarkedYAMLError as error:
        problem = _explained(error, text)
    except (ValueError, OverflowError) as error:
        # PyYAML passes the number of an escape such as "\UFFFFFFFF" to chr() unchecked.
        problem = Problem(_mark(loader.get_mark()), "", f"not valid YAML, {shown(str(error))}")
    finally:
        loader.dispose()
    return None, [*builder.problems, problem]


def place(text: str, index: int) -> Mark:
    """The place of a character whose index in the text is known."""
    before = text[:index]
    return Mark(before.count("\n") + 1, index - (before.rfind("\n") + 1) + 1)


class _Builder:
    """Makes the tree from PyYAML's events.

    Events rather than PyYAML's own nodes, because those follow aliases and recurse without end.
    """

    def __init__(self, loader: Any) -> None:
        self._loader = loader
        self._told_of_anchors = False
        self.problems: list[Problem] = []

    def document(self) -> Node | None:
        self._next()  # the stream's start
        if isinstance(self._next(), yaml.StreamEndEvent):
            return None
        root = self._node(self._next(), "", 0)
        self._next()  # the document's end
        after = self._next()
        if isinstance(after, yaml.DocumentStartEvent):
            self._refuse(_mark(after.start_mark), "", "a second document begins, remove the ---")
        return root

    def _next(self) -> Any:
        return self._loader.get_event()

    def _refuse(self, mark: Mark, key: str, text: str) -> None:
        self.problems.append(Problem(mark, key, text))

    def _refuse_anchor(self, mark: Mark, path: str) -> None:
        # Once is enough: a file that uses them uses them often.
        if not self._told_of_anchors:
            self._refuse(mark, path, _ANCHORS)
        self._told_of_anchors = True

    def _node(self, event: Any, path: str, depth: int) -> Node:
        mark = _mark(event.start_mark)
        if depth > _MAX_DEPTH:
            raise _Unreadable(mark, f"nested more than {_MAX_DEPTH} levels deep")
        if isinstance(event, yaml.AliasEvent):
            self._refuse_anchor(mark, path)
            return Unusable(mark)
        if event.anchor is not None:
            self._refuse_anchor(mark, path)
        if event.tag is not None:
            self._refuse(mark, path, f"tags are not supported, remove {_typed_tag(event.tag)}")
        node = self._untagged(event, mark, path, depth)
        return node if event.tag is None else Unusable(mark)

    def _untagged(self, event: Any, mark: Mark, path: str, depth: int) -> Node:
        if isinstance(event, yaml.ScalarEvent):
            return Scalar(mark, event.value, plain=event.style is None)
        if isinstance(event, yaml.SequenceStartEvent):
            items = []
            while not isinstance(event := self._next(), yaml.SequenceEndEvent):
                items.append(self._node(event, path, depth + 1))
            return Sequence(mark, tuple(items))
        return Tree(mark, self._entries(path, depth))

    def _entries(self, path: str, depth: int) -> dict[str, Entry]:
        entries: dict[str, Entry] = {}
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            key = self._node(event, path, depth + 1)
            name = self._name(key, path)
            value = self._node(self._next(), path if name is None else join(path, name), depth + 1)
            if name is None:
                continue
            if name in entries:
                first = entries[name].mark.line
                text = f"set twice, first on line {first}, remove one of the two"
                self._refuse(key.mark, join(path, name), text)
            else:
                entries[name] = Entry(key.mark, value)
        return entries

    def _name(self, key: Node, path: str) -> str | None:
        if isinstance(key, Unusable):
            return None
        if not isinstance(key, Scalar):
            self._refuse(key.mark, path, "a list or a mapping cannot be a key, write a word")
        elif key.is_null:
            self._refuse(key.mark, path, "a key is missing before the colon")
        elif key.plain and key.text == "<<":
            self._refuse(key.mark, path, "merge keys (<<) are not supported, write the keys out")
        else:
            return key.text
        return None


def _mark(mark: Any) -> Mark:
    return Mark(mark.line + 1, mark.column + 1)


def _typed_tag(tag: str) -> str:
    """A tag as it was typed: PyYAML spells the two exclamation marks out."""
    return shown(tag.replace("tag:yaml.org,2002:", "!!", 1))


# What PyYAML says of a syntax error, and what a person makes of it. The last column tells
# whether the place where the thing began is more use than the place where reading stopped.
_EXPLANATIONS = (
    (
        "mapping values are not allowed",
        (
            "a colon in a place where no key can stand: indent the line like its neighbours, "
            'or put a text that holds ": " in quotes'
        ),
        False,
    ),
    ("could not find expected ':'", "a key without a colon, write key: value", True),
    ("expected <block end>", "indented differently from the lines before it", False),
    ("unindent does not match", "indented differently from the lines before it", False),
    ("unexpected end of stream", "a quote that is opened here is never closed", True),
    ("unexpected document separator", "a quote that is opened here is never closed", True),
    ("but got '?'", "a text with a question mark needs quotes between brackets or braces", False),
    ("expected ',' or '}'", "a brace { that is opened here is not closed as it should be", True),
    ("expected ',' or ']'", "a bracket [ that is opened here is not closed as it should be", True),
    (
        "unknown escape character",
        "a backslash in double quotes begins an escape: write it twice, or use single quotes",
        False,
    ),
    ("expected the node content", "a value is missing here", False),
    ("cannot start any token", "a text that begins with this character needs quotes", False),
)


def _explained(error: yaml.MarkedYAMLError, text: str) -> Problem:
    stopped: Any = error.problem_mark or error.context_mark
    began: Any = error.context_mark or stopped
    line = text.split("\n")[stopped.line]
    indent = line[: len(line) - len(line.lstrip())]
    if "\t" in indent or line[stopped.column : stopped.column + 1] == "\t":
        column = line.index("\t", 0 if "\t" in indent else stopped.column) + 1
        said = "a tab, but YAML takes spaces alone, put two spaces in its place"
        return Problem(Mark(stopped.line + 1, column), "", said)
    problem = error.problem or error.context or ""
    for said, meant, at_start in _EXPLANATIONS:
        if said in problem:
            return Problem(_mark(began if at_start else stopped), "", f"not valid YAML, {meant}")
    return Problem(_mark(stopped), "", f"not valid YAML, {shown(problem)}")
