"""``bench card``: kinds of devices and faults, the whole product over the test card's plugin."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from alsa.build import build
from card import product
from e2e.product import Product

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

KIND_COLUMNS = ("kind", "granted", "text", "word_errors", "outcome", "overruns")
FAULT_COLUMNS = (
    "fault",
    "hears_again_ms",
    "lost_ms_true",
    "lost_ms_reported",
    "log_lines",
    "word_errors",
    "outcome",
)


def measure(*, threads: int, say: Callable[[str], None]) -> dict[str, Any]:
    """Run every row of both tables, one process each."""
    with tempfile.TemporaryDirectory() as folder:
        bench = product.Bench(Product(Path(folder), threads=threads), Path(folder), build())
        kinds = [_row(bench.kind, kind, say) for kind in product.KINDS]
        faults = [_row(bench.fault, fault, say) for fault in product.BREAKS]
    return {
        "kinds": kinds,
        "faults": faults,
        "markdown": f"{table(kinds, KIND_COLUMNS)}\n{table(faults, FAULT_COLUMNS)}",
    }


def table(rows: Sequence[dict[str, Any]], columns: Sequence[str]) -> str:
    """Rows as a table in Markdown."""
    lines = ["| " + " | ".join(column.replace("_", " ") for column in columns) + " |"]
    lines.append("|" + " --- |" * len(columns))
    lines += ["| " + " | ".join(str(row[column]) for column in columns) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _row(run: Callable[[Any], dict[str, Any]], row: Any, say: Callable[[str], None]) -> Any:
    say(row.name)
    return run(row)
