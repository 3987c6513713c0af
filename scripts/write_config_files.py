#!/usr/bin/env python3
"""Write what is made from the settings: the shipped YAML, its JSON Schema, the table in the docs.

Run it after a change in daemon/oyez/config.py, in an environment where Oyez is installed.
"""

from __future__ import annotations

from pathlib import Path

from oyez.config_texts import SCHEMA_FILE, example, schema_text, table

ROOT = Path(__file__).resolve().parent.parent
BEGIN = "<!-- settings: written by scripts/write_config_files.py -->\n"
END = "<!-- end of settings -->\n"


def with_table(page: str) -> str:
    """The page with the table between its two marks made anew."""
    before, _, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise ValueError(f"the page lacks one of the marks {BEGIN.strip()} and {END.strip()}")
    return before + BEGIN + "\n" + table() + "\n" + END + after


def main() -> None:
    """Write all three files."""
    page = ROOT / "docs" / "configuration.md"
    (ROOT / "config" / "oyez.yaml").write_text(example(), encoding="utf-8")
    (ROOT / "config" / SCHEMA_FILE).write_text(schema_text(), encoding="utf-8")
    page.write_text(with_table(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
