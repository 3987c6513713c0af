"""Values as YAML text that every YAML reader, old and new, takes for the same values.

Pure; runs on any thread.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

Value: TypeAlias = "bool | int | float | str | list[Value] | dict[str, Value]"

# Plain text must look like nothing else, to YAML 1.1 either: there `no`, `on` and `y` are not text.
_PLAIN = re.compile(r"[A-Za-z_./][A-Za-z0-9_./+-]*")
_NOT_PLAIN = re.compile(
    r"(y|n|yes|no|on|off|true|false|null|\.nan|\.inf|\.[0-9].*|\.+)", re.IGNORECASE
)


def flow(value: Value) -> str:
    """A value on one line: ``500``, ``auto``, ``"You said: {text}"``, ``[a, b]``."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            plain = _PLAIN.fullmatch(value) and not _NOT_PLAIN.fullmatch(value)
            return value if plain else json.dumps(value, ensure_ascii=False)
        case list():
            return "[" + ", ".join(flow(item) for item in value) + "]"
        case dict():
            return "{" + ", ".join(f"{key}: {flow(item)}" for key, item in value.items()) + "}"
        case _:
            return repr(value)


def block(key: str, value: Value) -> Iterator[str]:
    """The lines of a key with its value; a list that is not empty has a line for each item."""
    if not isinstance(value, list) or not value:
        yield f"{key}: {flow(value)}"
        return
    yield f"{key}:"
    for item in value:
        text = flow(item)
        # One key alone reads better as `- echo: ...` than in braces.
        yield f"  - {text[1:-1] if isinstance(item, dict) and len(item) == 1 else text}"
