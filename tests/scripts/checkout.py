"""A scratch checkout with the real scripts, and fake tools where a real failure cannot be made."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]


@dataclass
class Checkout:
    """A copy of the scripts in a path that has a space and an umlaut."""

    root: Path
    tools: Path
    env: dict[str, str] = field(default_factory=dict)

    @property
    def state(self) -> Path:
        """The folder in which set-up keeps its log and stamps."""
        return self.root / ".venv" / "oyez-set-up"

    def fake(self, name: str, script: str, *, folder: Path | None = None) -> Path:
        """Put a shell script in front of the real tool of that name."""
        tool = (folder or self.tools) / name
        tool.parent.mkdir(parents=True, exist_ok=True)
        tool.unlink(missing_ok=True)
        tool.write_text(f"#!/bin/bash\n{script}\n", encoding="utf-8")
        tool.chmod(0o755)
        return tool

    def without(self, *names: str) -> None:
        """Let the machine have every tool but these."""
        everything = self.root.parent / "everything else"
        everything.mkdir()
        for folder in ("/usr/sbin", "/sbin", "/usr/bin", "/bin"):
            for tool in Path(folder).iterdir():
                link = everything / tool.name
                if tool.name not in names and not link.is_symlink():
                    link.symlink_to(tool)
        self.env["PATH"] = f"{self.tools}:{everything}"

    def run(
        self, *command: str | Path, cwd: Path | None = None, env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a script of the checkout without a terminal and return what it said."""
        return subprocess.run(
            [self.root / command[0], *command[1:]],
            cwd=cwd or self.root.parent,
            env=self.env | (env or {}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def bash(self, script: str, **env: str) -> subprocess.CompletedProcess[str]:
        """Run lines of shell with the functions of set-up at hand."""
        return subprocess.run(
            self.bash_command(script),
            env=self.env | env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def bash_command(self, script: str) -> list[str]:
        """The command that ``bash`` runs."""
        prelude = (
            'set -euo pipefail; program=scripts/run; source "$1/scripts/lib/set-up.bash"; '
            'prepare_shell; find_places "$1"\n'
        )
        return ["bash", "-c", prelude + script, "bash", str(self.root)]

    def finish(self, *kinds: str) -> None:
        """Make the checkout look set up: the environment is this one's Python and a fake oyez."""
        self.state.mkdir(parents=True)
        self.fake(
            "python",
            f'[[ "$*" != *"-m pytest"* ]] || exec {self.tools}/pytest "$@"\n'
            f'exec "{os.path.realpath(sys.executable)}" "$@"',
            folder=self.root / ".venv" / "bin",
        )
        self.fake(
            "oyez",
            'printf "%s\\n" "$PWD" "$@"; exit "${OYEZ_EXIT-0}"',
            folder=self.root / ".venv" / "bin",
        )
        for kind in kinds:
            stamped = self.bash(
                f'base=$(venv_base); stamp_text {kind} "$base" >"$state/{kind}.stamp"'
            )
            assert stamped.returncode == 0, stamped.stderr
