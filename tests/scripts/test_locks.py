"""The locks: they cover what pyproject.toml asks for, agree, and name no place to fetch from."""

from __future__ import annotations

import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from scripts.checkout import PROJECT

LOCKS = ("build", "run", "dev")


def entries(name: str) -> list[list[str]]:
    """The lines of each package in a lock, the continuation lines with it."""
    text = (PROJECT / "scripts" / "locks" / f"{name}.lock").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = "\n".join(lines).replace("\\\n", "\t")
    return [entry.split("\t") for entry in joined.splitlines() if entry]


def pins(name: str) -> dict[str, Requirement]:
    found = [Requirement(entry[0].strip()) for entry in entries(name)]
    return {canonicalize_name(requirement.name): requirement for requirement in found}


def version(requirement: Requirement) -> str:
    [specifier] = requirement.specifier
    assert specifier.operator == "=="
    return specifier.version


def wanted(name: str) -> list[str]:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    base: list[str] = project["project"]["dependencies"]
    extra: list[str] = project["project"]["optional-dependencies"]["dev"]
    build: list[str] = project["dependency-groups"]["build"] + project["build-system"]["requires"]
    return {"build": build, "run": base, "dev": base + extra}[name]


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_pins_all_that_the_project_asks_for(name: str) -> None:
    """A dependency was added or raised without scripts/lock, if this fails."""
    pinned = pins(name)
    for requirement in map(Requirement, wanted(name)):
        key = canonicalize_name(requirement.name)
        assert key in pinned, f"{key} is not in {name}.lock: run scripts/lock"
        assert requirement.specifier.contains(version(pinned[key])), f"{key}: run scripts/lock"


@pytest.mark.parametrize("name", LOCKS)
def test_every_pin_has_hashes(name: str) -> None:
    for requirement, *rest in entries(name):
        assert rest, requirement
        assert all(line.strip().startswith("--hash=sha256:") for line in rest), requirement


@pytest.mark.parametrize("name", LOCKS)
def test_no_lock_names_a_place_to_fetch_from(name: str) -> None:
    text = (PROJECT / "scripts" / "locks" / f"{name}.lock").read_text(encoding="utf-8")
    for word in ("://", "--index", "--extra-index", "--find-links", " @ "):
        assert word not in text


def test_one_environment_can_hold_all_locks() -> None:
    run, dev, build = pins("run"), pins("dev"), pins("build")
    assert run.keys() <= dev.keys()
    for name, requirement in [*run.items(), *build.items()]:
        if name in dev:
            assert version(dev[name]) == version(requirement), name
