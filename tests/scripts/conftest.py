"""The scratch checkout that every test of the scripts works in."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING

import pytest

from scripts.checkout import PROJECT, Checkout

if TYPE_CHECKING:
    from pathlib import Path

# What a checkout needs so that the scripts can look at it.
SCRIPTS = ("run", "test", "lock", "lib", "locks")


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """A checkout in which nothing has been set up."""
    root = tmp_path / "a path" / "öyez"
    (root / "scripts").mkdir(parents=True)
    for name in SCRIPTS:
        source = PROJECT / "scripts" / name
        if source.is_dir():
            shutil.copytree(source, root / "scripts" / name)
        else:
            shutil.copy(source, root / "scripts" / name)
    shutil.copytree(PROJECT / ".ci", root / ".ci")
    shutil.copy(PROJECT / "pyproject.toml", root)
    tools = tmp_path / "tools"
    tools.mkdir()
    home = tmp_path / "home"
    home.mkdir()
    return Checkout(
        root=root,
        tools=tools,
        env={
            "PATH": f"{tools}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(home),
            "OYEZ_PYTHON": sys.executable,
        },
    )
