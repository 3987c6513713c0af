"""Reading the weights of a CTranslate2 model (``model.bin``, format version 6).

The reader keeps only the index of variables; each variable is read from the file when it is
asked for, so memory stays bounded by the largest one. Runs on the thread that rewrites a model.

Layout, little-endian: u32 format version; the name of the model's specification; u32 revision;
u32 number of variables; then for each variable its name, u8 rank, u32 per dimension, u8 type,
u32 number of bytes and the bytes. A name is a u16 length and that many bytes, the last one NUL.
Aliases follow; nothing here needs them.
"""

from __future__ import annotations

import math
import os
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, Self

import numpy as np

from oyez.errors import ModelError

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    import numpy.typing as npt

VERSION = 6
_TYPES = {0: "<f4", 1: "<i1", 2: "<i2", 3: "<i4", 4: "<f2"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """Where a variable lies in the file, and its shape and type."""

    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]
    offset: int


class Ct2Weights:
    """The variables of one ``model.bin``; a context manager that holds the file open.

    Raises:
        ModelError: the file is not such a model, is damaged, or lacks a variable.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("rb")
        try:
            self.variables = _read_index(self._file)
        except (struct.error, UnicodeDecodeError, ValueError, KeyError) as exc:
            self._file.close()
            raise ModelError(f"{path.name} is no CTranslate2 model that Oyez can read") from exc

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._file.close()

    def variable(self, name: str) -> Variable:
        """The index entry of a variable."""
        try:
            return self.variables[name]
        except KeyError as exc:
            raise ModelError(f"{self._path.name} has no variable {name}") from exc

    def read(self, name: str, first: int = 0, rows: int | None = None) -> npt.NDArray[np.generic]:
        """Read a variable, or ``rows`` rows of it from row ``first`` on."""
        variable = self.variable(name)
        if not variable.shape:
            shape: tuple[int, ...] = ()
        else:
            count = variable.shape[0] - first if rows is None else rows
            shape = (count, *variable.shape[1:])
        row_bytes = math.prod(variable.shape[1:]) * variable.dtype.itemsize
        self._file.seek(variable.offset + first * row_bytes)
        return np.fromfile(self._file, variable.dtype, math.prod(shape)).reshape(shape)


def _read_index(file: BinaryIO) -> dict[str, Variable]:
    size = os.fstat(file.fileno()).st_size
    (version,) = _unpack(file, "I")
    if version != VERSION:
        raise ValueError(version)
    _name(file)
    _revision, count = _unpack(file, "II")
    variables = {}
    for _ in range(count):
        name = _name(file)
        (rank,) = _unpack(file, "B")
        shape = _unpack(file, f"{rank}I")
        code, byte_count = _unpack(file, "BI")
        variable = Variable(shape=shape, dtype=np.dtype(_TYPES[code]), offset=file.tell())
        if math.prod(shape) * variable.dtype.itemsize != byte_count:
            raise ValueError(name)
        if file.seek(byte_count, os.SEEK_CUR) > size:
            raise ValueError(name)
        variables[name] = variable
    return variables


def _unpack(file: BinaryIO, form: str) -> tuple[int, ...]:
    form = "<" + form
    return struct.unpack(form, file.read(struct.calcsize(form)))


def _name(file: BinaryIO) -> str:
    (length,) = _unpack(file, "H")
    return file.read(length).rstrip(b"\0").decode()
