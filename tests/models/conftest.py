"""Fixtures of the model tests: a hub, and a pip that sees one folder of wheels alone."""

from __future__ import annotations

import importlib.util
import os

import pytest

from models import makers


@pytest.fixture
def hub():
    with makers.running_hub() as running:
        yield running


@pytest.fixture
def wheels(tmp_path, monkeypatch):
    """A folder of wheels: the only place where pip looks, by the owner's own settings."""
    if importlib.util.find_spec("pip") is None:
        pytest.skip("this interpreter has no pip")
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    folder = tmp_path / "wheels"
    folder.mkdir()
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder
