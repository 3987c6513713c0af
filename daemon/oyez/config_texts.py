"""What is written about the settings: `oyez config show`, the JSON Schema, and the shipped files.

All of it is made from the settings types, so that nothing is said twice.
``scripts/write_config_files.py`` writes ``config/oyez.yaml``, ``config/oyez.schema.json`` and the
table in ``docs/configuration.md``; a test fails when they are not current.

Pure; runs on any thread.
"""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING, Any, Final

from oyez.config import ROOT, Loaded, Settings
from oyez.config_sections import Key, Section, plain
from oyez.yaml_reader import printable
from oyez.yaml_writer import block, flow

if TYPE_CHECKING:
    from collections.abc import Iterator

SCHEMA_FILE: Final = "oyez.schema.json"
_WIDTH = 98
_ORIGIN_COLUMN = 40
_INTRODUCTION = (
    "The configuration of Oyez, with every key at its default. What is left out has its default "
    "too, so even an empty file is valid. `oyez check FILE` tells all mistakes at once, "
    "`oyez config show` what is in force and where it comes from. A number has the unit that its "
    "key's name ends with. Only true and false are booleans."
)


def show(loaded: Loaded, as_json: bool) -> str:
    """The settings in force, each with its origin.

    As JSON: an object of ``file`` (text or null), ``settings`` (as in the YAML) and ``origins``
    (by dotted key, ``default`` or ``file:line``). Else YAML with the origins as comments, which
    loads to the same settings.
    """
    file = None if loaded.path is None else printable(str(loaded.path))
    if as_json:
        content = {
            "file": file,
            "settings": plain(loaded.settings),
            "origins": dict(loaded.origins),
        }
        return json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    lines = [f"# {file or 'no file'}"]
    for indent, dotted, key, value in _walk(loaded.settings):
        if isinstance(key.kind, Section):
            lines.append(f"{indent}{key.name}:")
        else:
            first, *more = block(key.name, plain(value))
            lines.append(f"{indent}{first}".ljust(_ORIGIN_COLUMN) + f"  # {loaded.origins[dotted]}")
            lines.extend(f"{indent}{line}" for line in more)
    return "\n".join(lines) + "\n"


def schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of the YAML file.

    It uses only what draft 7 has too, because the editors' YAML server knows no more.
    """
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": Settings.__doc__,
        **ROOT.schema(),
    }


def schema_text() -> str:
    """The JSON Schema as the text of a file."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def example() -> str:
    """The text of ``config/oyez.yaml``: every key, commented, at its default."""
    # The first line is for editors: it names the schema that lies beside the file.
    lines = [f"# yaml-language-server: $schema={SCHEMA_FILE}", *_comment(_INTRODUCTION, "")]
    for indent, dotted, key, value in _walk(Settings()):
        if not indent:
            lines.append("")
        lines.extend(_comment(key.about, indent))
        if isinstance(key.kind, Section):
            lines.append(f"{indent}{key.name}:")
        else:
            default = "as here" if isinstance(value, tuple) else flow(plain(value))
            allowed = f"Allowed: {key.kind.allowed(dotted)}. Default: {default}."
            lines.extend(_comment(allowed, indent))
            lines.extend(f"{indent}{line}" for line in block(key.name, plain(value)))
    return "\n".join(lines) + "\n"


def table() -> str:
    """The table of all keys in Markdown."""
    lines = ["| key | default | allowed | what it is about |", "| --- | --- | --- | --- |"]
    for _, dotted, key, value in _walk(Settings()):
        if isinstance(key.kind, Section):
            cells = [f"**`{dotted}`**", "", "", key.about]
        else:
            cells = [f"`{dotted}`", f"`{flow(plain(value))}`", key.kind.allowed(dotted), key.about]
        lines.append(f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |")
    return "\n".join(lines) + "\n"


def _walk(settings: Settings) -> Iterator[tuple[str, str, Key, object]]:
    """Every key with the white space that stands before it in the YAML."""
    for dotted, key, value in ROOT.walk(settings):
        yield "  " * dotted.count("."), dotted, key, value


def _comment(text: str, indent: str) -> list[str]:
    start = f"{indent}# "
    return textwrap.wrap(text, _WIDTH, initial_indent=start, subsequent_indent=start)
