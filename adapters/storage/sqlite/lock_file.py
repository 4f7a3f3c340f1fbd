"""Locks out other processes with SQLite's lock on an empty file, which ends with its holder."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from ..private_files import make_file


@contextmanager
def try_lock_file(file: Path) -> Iterator[bool]:
    """Try to lock the file within this context; yield whether that succeeded."""
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
