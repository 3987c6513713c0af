"""Changing a few values in a person's YAML file, and nothing else in it.

PyYAML tells where each value begins and ends; only these letters are replaced, or a line put in.
So comments, order, quotes, indentation and line ends stay. The result is loaded before it takes
the old file's place: where an edit would change anything but the keys that it is for, the file is
left alone and the person is told the lines to write.

Main's thread only.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import stat
import tempfile
from typing import TYPE_CHECKING, Any

import yaml

from oyez.config import ROOT, load, parse
from oyez.config_sections import plain
from oyez.errors import ConfigError, InputError, OutputError
from oyez.yaml_writer import flow

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from oyez.config import Settings
    from oyez.yaml_writer import Value

INDENT = "  "
_LINE_END = re.compile(r"\r\n|\r|\n")
_COMMENT = re.compile(r"[ \t]#[^\r\n]*")
_NEW_FILE_MODE = 0o644


def lines(values: Mapping[str, Value]) -> list[str]:
    """The YAML of some dotted keys, by sections: what a person may paste into an empty file."""
    written: list[str] = []
    before: list[str] = []
    for dotted, value in sorted(values.items()):
        *sections, name = dotted.split(".")
        for depth, section in enumerate(sections):
            if before[: depth + 1] != sections[: depth + 1]:
                written.append(f"{INDENT * depth}{section}:")
        written.append(f"{INDENT * len(sections)}{name}: {flow(value)}")
        before = sections
    return written


def write_values(path: Path, values: Mapping[str, Value]) -> None:
    """Set dotted keys in a configuration file, which need not be there yet.

    The file is whole at any time: the new one takes the old one's place, with its mode and, where
    that is allowed, its owner. A symbolic link stays one.

    Raises:
        ConfigError, NotFoundError: the file is no sound configuration as it is.
        InputError: it is written in a way that cannot be edited with safety.
        OutputError: it cannot be written.
    """
    path = path.resolve()
    text = ""
    if path.exists():
        load(path)  # a file that is wrong already is not made any better
        text = path.read_bytes().decode()
    _replace(path, edited(text, values))


def check_writable(path: Path) -> None:
    """See beforehand that ``write_values`` will not fail for want of permission.

    Raises:
        OutputError: it would.
    """
    path = path.resolve()
    if path.is_dir() or not os.access(path.parent, os.W_OK | os.X_OK):
        raise OutputError(
            f"{path} cannot be written", remedy="name a file in a folder that you may write to"
        )


def edited(text: str, values: Mapping[str, Value]) -> str:
    """A configuration's text with other values for some dotted keys.

    Raises:
        ConfigError: the text is no sound configuration.
        InputError: it is written in a way that cannot be edited with safety.
    """
    wanted = parse(text, "").settings
    for dotted, value in values.items():
        wanted = _with(wanted, dotted.split("."), value)
    new = text
    for dotted, value in values.items():
        new = _with_key(new, dotted.split("."), value)
    try:
        sound = parse(new, "").settings == wanted
    except ConfigError:
        sound = False
    if not sound:
        raise InputError(
            "the file is written in a way that cannot be edited with safety, and is left as it is",
            remedy="write these lines yourself:\n" + "\n".join(lines(values)),
        )
    return new


def _with(settings: Any, path: Sequence[str], value: Value) -> Settings:
    name, *more = path
    inner = _with(getattr(settings, name), more, value) if more else value
    changed: Settings = dataclasses.replace(settings, **{name: inner})
    return changed


def current(settings: Settings, dotted: str) -> Value:
    """The value of a dotted key, as YAML has it."""
    return next(plain(value) for name, _, value in ROOT.walk(settings) if name == dotted)


# -- the text -------------------------------------------------------------------------------------


def _with_key(text: str, path: Sequence[str], value: Value) -> str:
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    text = text.removeprefix(mark)
    edit = _Edit(text)
    node = yaml.compose(text, yaml.SafeLoader)
    return mark + edit.document(node, path, value)


class _Edit:
    """One change in a text whose line ends stay as they are."""

    def __init__(self, text: str) -> None:
        self._text = text
        found = _LINE_END.search(text)
        self._end = found[0] if found else "\n"

    def document(self, root: yaml.Node | None, path: Sequence[str], value: Value) -> str:
        """The text with the key below its root."""
        if root is None:
            return self._appended(path, value)
        if root.start_mark.index == root.end_mark.index:
            return self._begun(root.start_mark.index, path, value)
        in_flow = False
        node, rest = root, list(path)
        while isinstance(node, yaml.MappingNode):
            in_flow = in_flow or bool(node.flow_style)
            entry = next(((k, v) for k, v in node.value if k.value == rest[0]), None)
            if entry is None:
                return self._added(node, rest, value, in_flow=in_flow)
            name, node = entry
            rest.pop(0)
            if not rest:
                return self._replaced(node, flow(value))
            if _is_null(node):
                return self._filled(name, node, rest, value, in_flow=in_flow)
        return self._filled(None, node, rest, value, in_flow=in_flow)

    def _replaced(self, node: yaml.Node, written: str) -> str:
        """Another value in a value's place; a comment in the head of a text block stays."""
        begin, end = node.start_mark.index, _content_end(self._text, node)
        if getattr(node, "style", None) in ("|", ">"):
            head = _LINE_END.split(self._text[begin:end], maxsplit=1)[0]
            comment = _COMMENT.search(head)
            written += comment[0] if comment else ""
        return self._spliced(begin, end, written)

    def _added(
        self, section: yaml.MappingNode, path: Sequence[str], value: Value, *, in_flow: bool
    ) -> str:
        """One more key in a section: behind its last one, or, between braces, before the first."""
        if in_flow:
            entries = section.value
            at = entries[0][0].start_mark.index if entries else section.start_mark.index + 1
            comma = ", " if entries else ""
            return self._spliced(at, at, _nested(path, value) + comma)
        indent = " " * section.start_mark.column
        return self._below(_content_end(self._text, section), indent, path, value)

    def _filled(
        self,
        name: yaml.Node | None,
        node: yaml.Node,
        path: Sequence[str],
        value: Value,
        *,
        in_flow: bool,
    ) -> str:
        """The first key of a section that has none, or of a document; ``name`` is its key."""
        begin, end = node.start_mark.index, node.end_mark.index
        if begin == end and not in_flow:
            indent = "" if name is None else " " * name.start_mark.column + INDENT
            return self._below(begin, indent, path, value)
        between = self._text[name.end_mark.index : begin] if name is not None else ":"
        colon = "" if ":" in _COMMENT.sub("", between) else ":"
        space = "" if begin < end else " "
        return self._spliced(begin, end, f"{colon}{space}{{{_nested(path, value)}}}")

    def _below(self, index: int, indent: str, path: Sequence[str], value: Value) -> str:
        """Lines of their own below the line in which ``index`` is."""
        found = _LINE_END.search(self._text, index)
        at = found.start() if found else len(self._text)
        new = "".join(f"{self._end}{indent}{line}" for line in _block(path, value))
        return self._spliced(at, at, new)

    def _appended(self, path: Sequence[str], value: Value) -> str:
        new = self._end.join(_block(path, value)) + self._end
        begins = not self._text or self._text[-1] in "\r\n"
        return self._text + ("" if begins else self._end) + new

    def _begun(self, index: int, path: Sequence[str], value: Value) -> str:
        """The first lines of a document between its marks; ``index`` is at what follows it."""
        for token in yaml.scan(self._text, yaml.SafeLoader):
            if isinstance(token, yaml.DocumentStartToken):
                return self._below(token.end_mark.index, "", path, value)
        return self._spliced(index, index, self._end.join([*_block(path, value), ""]))

    def _spliced(self, begin: int, end: int, new: str) -> str:
        return self._text[:begin] + new + self._text[end:]


def _is_null(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null"


def _content_end(text: str, node: yaml.Node) -> int:
    """Where the last letter of a node's contents is over.

    The end of a block, as PyYAML has it, is the next token's begin, behind comments and all.
    """
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _content_end(text, last[1] if isinstance(last, tuple) else last)
    begin, end = int(node.start_mark.index), int(node.end_mark.index)
    if getattr(node, "style", None) in ("|", ">"):
        return begin + len(text[begin:end].rstrip())
    return end


def _block(path: Sequence[str], value: Value) -> list[str]:
    return lines({".".join(path): value})


def _nested(path: Sequence[str], value: Value) -> str:
    """``audio: {capture: {gain_db: 3}}``."""
    *sections, name = path
    opened = "".join(f"{section}: {{" for section in sections)
    return f"{opened}{name}: {flow(value)}" + "}" * len(sections)


# -- the file -------------------------------------------------------------------------------------


def _replace(path: Path, text: str) -> None:
    try:
        before = path.stat() if path.exists() else None
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with open(handle, "wb") as file:  # noqa: PTH123 - a descriptor
                file.write(text.encode())
                os.fchmod(handle, stat.S_IMODE(before.st_mode) if before else _NEW_FILE_MODE)
                if before is not None:
                    with contextlib.suppress(PermissionError):
                        os.fchown(handle, before.st_uid, before.st_gid)
                file.flush()
                os.fsync(handle)
            os.replace(name, path)  # noqa: PTH105 - a name, not a Path
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(name)  # noqa: PTH108 - a name, not a Path
            raise
    except OSError as error:
        raise OutputError(
            f"{path} cannot be written: {error.strerror}",
            remedy="see to the folder's owner, mode and free space",
        ) from error
