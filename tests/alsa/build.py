"""Compiles the test card once for each version of its sources."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

FOLDER = Path(__file__).parent
SOURCES = sorted(FOLDER.glob("*.c"))
FLAGS = [
    "-std=gnu11",
    "-O2",
    "-g",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-fPIC",
    "-DPIC",
    "-shared",
    "-Wl,-Bsymbolic",
]


def missing_tools() -> str:
    """Why the card cannot be built on this machine; empty when it can."""
    if shutil.which("gcc") is None:
        return "gcc is not installed (apt install gcc libc6-dev)"
    if not Path("/usr/include/alsa/pcm_external.h").exists():
        return "ALSA's headers are not installed (apt install libasound2-dev)"
    return ""


def cache_folder() -> Path:
    """Where compiled cards are kept: one folder a user, which nobody else may write."""
    folder = Path(tempfile.gettempdir()) / f"oyez-test-card-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise PermissionError(f"{folder} belongs to somebody else")
    return folder


def build() -> Path:
    """The compiled library, which holds both plugins.

    Raises:
        subprocess.CalledProcessError: the compiler refused; it has told why.
    """
    digest = hashlib.sha256(" ".join(FLAGS).encode())
    for source in [*SOURCES, *sorted(FOLDER.glob("*.h"))]:
        digest.update(source.read_bytes())
    library = cache_folder() / f"card-{digest.hexdigest()[:16]}.so"
    if not library.exists():
        # Two runs may compile at the same time: each renames its own result into place.
        unfinished = library.with_suffix(f".{os.getpid()}")
        subprocess.run(
            ["gcc", *FLAGS, "-o", str(unfinished), *map(str, SOURCES), "-lasound", "-lm"],
            check=True,
        )
        unfinished.replace(library)
    return library
