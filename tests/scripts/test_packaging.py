"""What is built from the project: the package with the configuration that it ships."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING

import pytest

from scripts.checkout import PROJECT

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built package."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder],
        cwd=PROJECT,
        check=True,
        capture_output=True,
    )
    [built] = folder.glob("oyez-*.whl")
    return built


def test_an_installed_package_finds_every_file_of_the_shipped_configuration(
    wheel: Path, tmp_path: Path
) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    names = sorted(path.name for path in (PROJECT / "config").iterdir())
    assert "oyez.yaml" in names
    script = (
        "import sys; from oyez.places import shipped; print(*map(shipped, sys.argv[1:]), sep='\\n')"
    )
    found = subprocess.run(
        [sys.executable, "-c", script, *names],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path)},
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    assert [path.rpartition("/")[2] for path in found] == names
    assert all(path.startswith(f"{tmp_path}/oyez/") for path in found)


def test_the_wheel_holds_nothing_but_the_package(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        folders = {name.partition("/")[0] for name in archive.namelist()}
    assert {folder.partition("-")[0] for folder in folders} == {"oyez"}


def test_the_wheel_brings_the_command_and_the_licence(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        [metadata] = [name for name in archive.namelist() if name.endswith("/METADATA")]
        folder = metadata.rpartition("/")[0]
        commands = archive.read(f"{folder}/entry_points.txt").decode()
        assert "oyez = oyez.cli:main" in commands
        assert f"{folder}/licenses/LICENSE" in archive.namelist()
