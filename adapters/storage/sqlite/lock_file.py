"""A lock among processes that goes when its holder goes: SQLite's own, on an empty file."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from ..private_files import make_file


@contextmanager
def try_lock_file(file: Path) -> Iterator[bool]:
    """Whether nobody else holds the lock on this file; it is held until the block is left."""
    make_file(file)
    with closing(sqlite3.connect(file, timeout=0, isolation_level=None)) as held:
        try:
            held.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
            yield False
        else:
            yield True
