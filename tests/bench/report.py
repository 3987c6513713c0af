"""What every result of the bench carries: where it was measured, of what, and its percentiles."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

TOP = Path(__file__).resolve().parents[2]
"""The checkout."""

_PACKAGES = ("numpy", "onnxruntime", "piper-tts", "pywhispercpp", "webrtcvad-wheels")


class Spread(TypedDict):
    """Percentiles of ``n`` values (linear between neighbours); all None when there are none."""

    n: int
    p50: float | None
    p95: float | None
    p99: float | None
    max: float | None


def spread(values: Sequence[float]) -> Spread:
    """How values are distributed, rounded to a tenth."""
    if not values:
        return Spread(n=0, p50=None, p95=None, p99=None, max=None)
    p50, p95, p99, most = (round(float(p), 1) for p in np.percentile(values, [50, 95, 99, 100]))
    return Spread(n=len(values), p50=p50, p95=p95, p99=p99, max=most)


def circumstances() -> dict[str, object]:
    """The machine, how busy it is, the revision of the checkout, the versions of the engines."""
    return {"machine": _machine(), "revision": _revision(), "versions": _versions()}


def _machine() -> dict[str, object]:
    memory_kb = _field("/proc/meminfo", "MemTotal").split()[0]
    return {
        "cpu": _field("/proc/cpuinfo", "model name") or _field("/proc/cpuinfo", "Model"),
        "arch": platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_mb": int(memory_kb) // 1024,
        "kernel": platform.release(),
        "load_before": round(os.getloadavg()[0], 2),
    }


def _field(path: str, name: str) -> str:
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return ""


def _revision() -> dict[str, object]:
    def git(*arguments: str) -> str | None:
        done = subprocess.run(
            ["git", "-C", str(TOP), *arguments], capture_output=True, text=True, check=False
        )
        return done.stdout.strip() if done.returncode == 0 else None

    changes = git("status", "--porcelain")
    return {"commit": git("rev-parse", "HEAD"), "dirty": None if changes is None else bool(changes)}


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = "not installed"
    return versions
