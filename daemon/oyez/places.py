"""Where Oyez finds and keeps things: the one home for every path that is not in the YAML.

Pure look-ups on the environment; runs on any thread, creates nothing.
"""

from __future__ import annotations

import os
from pathlib import Path

from oyez.errors import NotFoundError

SYSTEM_CONFIG = Path("/etc/oyez/oyez.yaml")


def models_folder() -> Path:
    """The folder that models live in when the configuration says ``auto``.

    ``$OYEZ_MODELS_DIR``, else ``models`` in systemd's ``$STATE_DIRECTORY``, else
    ``oyez/models`` in ``$XDG_DATA_HOME`` (``~/.local/share`` by default).
    """
    if given := os.environ.get("OYEZ_MODELS_DIR"):
        return Path(given).expanduser().absolute()
    if state := os.environ.get("STATE_DIRECTORY"):
        return Path(state.split(":")[0]) / "models"
    data_home = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(data_home).expanduser() / "oyez" / "models"


def state_folder() -> Path:
    """The folder for what is remembered across restarts.

    systemd's ``$STATE_DIRECTORY``, else ``oyez`` in ``$XDG_STATE_HOME`` (``~/.local/state``).
    """
    if state := os.environ.get("STATE_DIRECTORY"):
        return Path(state.split(":")[0])
    state_home = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(state_home).expanduser() / "oyez"


def proc_asound() -> Path:
    """The kernel's folder of sound cards; ``$OYEZ_PROC_ASOUND`` for a machine made up of files."""
    return Path(os.environ.get("OYEZ_PROC_ASOUND") or "/proc/asound")


def shipped(name: str) -> Path:
    """The path of a file that is shipped in ``config/`` (``oyez.yaml``, ``models.yaml``).

    In an installed package these files lie in ``oyez/shipped``; in a checkout in the top-level
    folder ``config``, two folders above.

    Raises:
        NotFoundError: the installation is damaged.
    """
    package = Path(__file__).resolve().parent
    for folder in (package / "shipped", package.parent.parent / "config"):
        if (folder / name).is_file():
            return folder / name
    raise NotFoundError(f"the shipped file {name} is missing", remedy="install Oyez again")
