"""The rows of a cache of results, read and changed by SQL."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from tilewright.application.run.cache import FILE, SCHEMA


def entries(folder: Path) -> dict[str, str]:
    """Entries by their keys; none before the first one is written."""
    if not (folder / FILE).exists():
        return {}
    with closing(sqlite3.connect(folder / FILE, timeout=60)) as base:
        if not base.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            return {}
        return dict(base.execute("SELECT key, entry FROM results ORDER BY key"))


def alter(folder: Path, change: Callable[[str], str | bytes], *, checksum: bool = False) -> None:
    """Change every entry; with `checksum` its row says that it is sound."""
    table = SCHEMA.tables["results"]
    with closing(sqlite3.connect(folder / FILE, isolation_level=None)) as base:
        for key, entry in entries(folder).items():
            new = change(entry)
            base.execute("UPDATE results SET entry = ? WHERE key = ?", (new, key))
            if checksum:
                base.execute("UPDATE results SET checksum = ? WHERE key = ?", (table.checksum([key, new]), key))
