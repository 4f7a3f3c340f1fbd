"""Reads what was kept beside a log, without all that it takes to keep read models up to date."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

LOCK_TIMEOUT_S = 1.0
"""Seconds to wait for whoever makes the file anew: what was kept can be had from the log."""


def read_saved_row(name: str, query: str, parameters: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """The first row that a query finds in the read models of that name.

    None also where there are none, or none that can be read: whoever keeps something next makes
    them anew.
    """
    address = name if name.startswith("file:") else f"{Path(name).absolute().as_uri()}?mode=ro"
    try:
        with closing(sqlite3.connect(address, uri=True, timeout=LOCK_TIMEOUT_S)) as connection:
            row: tuple[Any, ...] | None = connection.execute(query, parameters).fetchone()
    except sqlite3.Error:
        # Not there, of another version, damaged or in use: in each case as if nothing were kept.
        return None
    return row
