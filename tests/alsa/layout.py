"""The layout of a test card's state, read from the C header, so that it is written down once."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path
from typing import Any

HEADER = Path(__file__).with_name("card_state.h")

_NUMBERS: dict[str, Any] = {
    "char": ctypes.c_char,
    "double": ctypes.c_double,
    "int32_t": ctypes.c_int32,
    "int64_t": ctypes.c_int64,
    "uint32_t": ctypes.c_uint32,
}
_DEFINE = re.compile(r"^#define (\w+) (0x[0-9a-f]+|\d+)$", re.MULTILINE)
_STRUCT = re.compile(r"^struct (\w+) \{\n(.*?)^\};", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"^ +(?:struct )?(\w+) (\w+)((?:\[\w+\])*);", re.MULTILINE)


def read_header(
    path: Path = HEADER,
) -> tuple[dict[str, int], dict[str, type[ctypes.Structure]]]:
    """The header's numbers and structures, by name, with the compiler's own alignment."""
    text = path.read_text(encoding="utf-8")
    numbers = {name: int(value, 0) for name, value in _DEFINE.findall(text)}
    types = dict(_NUMBERS)
    structures: dict[str, type[ctypes.Structure]] = {}
    for name, body in _STRUCT.findall(text):
        fields = []
        for kind, field, dimensions in _FIELD.findall(body):
            field_type = types[kind]
            # C's a[2][3] is two of three, so the innermost dimension comes first.
            for dimension in reversed(re.findall(r"\w+", dimensions)):
                count = numbers[dimension] if dimension in numbers else int(dimension)
                field_type *= count
            fields.append((field, field_type))
        structures[name] = type(name, (ctypes.Structure,), {"_fields_": fields})
        types[name] = structures[name]
    return numbers, structures


NUMBERS, STRUCTURES = read_header()
