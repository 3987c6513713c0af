"""Whether a file is the model that its name says: what is wrong with it, in words for a person.

Reads files, writes only the small records that let a start skip the full checksum; runs on any
thread. The checks go from cheap to dear, so that a web page saved as a model is called a web
page and not a wrong checksum.
"""

from __future__ import annotations

import hashlib
import json
import stat
import struct
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from oyez.models.ggml import MAGIC

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from oyez.models.catalogue import ModelFile

_HEAD_BYTES = 256
_GGML_HEAD = struct.pack("<i", MAGIC)
_ONNX_HEAD = b"\x08"
"""An ONNX file begins with its IR version: protobuf field 1, a varint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """What is wrong with a file: ``why`` completes a sentence that begins with its name.

    ``keep`` is true for a file that may be worth something to its owner, such as another model
    under this name; false for one that is worth nothing to anybody.
    """

    why: str
    missing: bool = False
    keep: bool = False


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def damage_in(path: Path, file: ModelFile, *, deep: bool) -> Damage | None:
    """Compare a file with the catalogue's entry: a glance, or with ``deep`` the checksum too."""
    return _unless_unreadable(lambda: _known_damage(path, file, deep=deep))


def foreign_damage(path: Path) -> Damage | None:
    """Look at a model that is in no catalogue; only its form can be checked."""
    return _unless_unreadable(lambda: _foreign_damage(path))


def _unless_unreadable(check: Callable[[], Damage | None]) -> Damage | None:
    """The result of a check; a file that cannot be read, as on a dying card, is damaged too."""
    try:
        return check()
    except FileNotFoundError:
        return Damage(why="is missing", missing=True)
    except OSError as exc:
        return Damage(why=f"cannot be read: {exc.strerror}", keep=True)


def _known_damage(path: Path, file: ModelFile, *, deep: bool) -> Damage | None:
    if damage := _glance(path, file.size_bytes):
        return damage
    if file.name.endswith(".json") and (damage := _voice_config_damage(path)):
        return damage
    if deep and (found := sha256_of(path)) != file.sha256:
        return Damage(
            why=f"is damaged or another file: its sha256 is {found}, not {file.sha256}", keep=True
        )
    return None


def _foreign_damage(path: Path) -> Damage | None:
    if damage := _glance(path, None):
        return damage
    head = _head(path)
    if path.suffix == ".onnx":
        if not head.startswith(_ONNX_HEAD):
            return Damage(why="is not an ONNX file")
        config = path.with_name(path.name + ".json")
        damage = _unless_unreadable(lambda: _glance(config, None) or _voice_config_damage(config))
        return Damage(why=f"cannot be used: {config.name} {damage.why}") if damage else None
    if not head.startswith(_GGML_HEAD):
        return Damage(why="is not a ggml model of Whisper (GGUF and other formats are not read)")
    return None


def record_verified(path: Path, file: ModelFile) -> None:
    """Note beside the file that it has been verified as it is now.

    A folder that may not be written costs a full checksum at each start, and nothing else.
    """
    with suppress(OSError):
        _record_path(path).write_text(json.dumps(_identity(path, file)), encoding="utf-8")


def forget_verified(path: Path) -> None:
    """Remove the note of :func:`record_verified`."""
    with suppress(OSError):
        _record_path(path).unlink()


def is_recorded(path: Path, file: ModelFile) -> bool:
    """Whether this very file was verified before and has not been touched since."""
    try:
        record = json.loads(_record_path(path).read_text(encoding="utf-8"))
        return bool(record == _identity(path, file))
    except (OSError, ValueError):
        return False


def _record_path(path: Path) -> Path:
    return path.with_name(f".{path.name}.verified")


def _identity(path: Path, file: ModelFile) -> dict[str, Any]:
    status = path.stat()
    return {
        "sha256": file.sha256,
        "bytes": status.st_size,
        "mtime_ns": status.st_mtime_ns,
        "inode": status.st_ino,
    }


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_HEAD_BYTES)


def _glance(path: Path, size_bytes: int | None) -> Damage | None:
    """What a look at the first bytes and at the size tells."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        return Damage(why="is not a file", keep=True)
    if damage := _impostor(_head(path)):
        return damage
    return None if size_bytes is None else _size_damage(status.st_size, size_bytes)


def _impostor(head: bytes) -> Damage | None:
    """What often comes in a model's place, by its first bytes."""
    if not head:
        return Damage(why="is empty")
    if head.lstrip().startswith(b"<"):
        return Damage(why="is a web page, not a model: the download was answered with one")
    if head.startswith(b"version https://git-lfs"):
        return Damage(why="is a git-lfs pointer, not the model that it points to")
    return None


def _size_damage(found_bytes: int, wanted_bytes: int) -> Damage | None:
    if found_bytes < wanted_bytes:
        return Damage(why=f"is truncated: it has {found_bytes:,} of {wanted_bytes:,} bytes")
    if found_bytes > wanted_bytes:
        return Damage(
            why=f"is another file: it has {found_bytes:,} bytes, not {wanted_bytes:,}", keep=True
        )
    return None


def _voice_config_damage(path: Path) -> Damage | None:
    """What is wrong with a ``.onnx.json``: Piper needs a sample rate and a phoneme table."""
    try:
        config = json.loads(path.read_bytes())
    except ValueError:
        return Damage(why="is not JSON", keep=True)
    audio = config.get("audio") if isinstance(config, dict) else None
    rate = audio.get("sample_rate") if isinstance(audio, dict) else None
    if type(rate) is not int or rate < 1 or not isinstance(config.get("phoneme_id_map"), dict):
        return Damage(why="does not describe a Piper voice", keep=True)
    return None
