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


def test_the_wheel_holds_the_code_and_every_file_of_the_shipped_configuration(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert "oyez/errors.py" in names
    shipped = {f"oyez/config/{path.name}" for path in (PROJECT / "config").iterdir()}
    assert "oyez/config/oyez.yaml" in shipped
    assert shipped <= names
    assert not [name for name in names if name.startswith(("tests/", "scripts/", "daemon/"))]


def test_the_wheel_brings_the_command_and_the_licence(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        [metadata] = [name for name in archive.namelist() if name.endswith("/METADATA")]
        folder = metadata.rpartition("/")[0]
        commands = archive.read(f"{folder}/entry_points.txt").decode()
        assert "oyez = oyez.cli:main" in commands
        assert f"{folder}/licenses/LICENSE" in archive.namelist()
