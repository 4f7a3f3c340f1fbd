"""Reads a saved row without loading the code that keeps read models up to date."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

LOCK_TIMEOUT_S = 1.0
"""How long to wait for a rebuild; a saved row can also be computed from the log."""


def read_saved_row(name: str, query: str, parameters: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Return the first row that a query finds in the read models of that name.

    Returns None also if there are none or they are unreadable; the next save rebuilds them.
    """
    address = name if name.startswith("file:") else f"{Path(name).absolute().as_uri()}?mode=ro"
    try:
        with closing(sqlite3.connect(address, uri=True, timeout=LOCK_TIMEOUT_S)) as connection:
            row: tuple[Any, ...] | None = connection.execute(query, parameters).fetchone()
    except sqlite3.Error:
        # Missing, of another version, damaged or in use: treated as if nothing were saved.
        return None
    return row
