"""Accepts what is there: a copy that was made in use lacks the newest events, and no more."""

import sqlite3

from ..event_log.plain_errors import speaking_plainly
from . import datastore, schema
from .address import path_of
from .home import move_in, refuse_damaged
from .journal import refuse_foreign_log


def adopt(name: str) -> None:
    """Let the database live in its new file, if its pages are sound; raises StorageError if not."""
    path = path_of(name)
    if path is None or not path.exists():
        return
    with speaking_plainly(name):
        refuse_foreign_log(path)
        connection = sqlite3.connect(path, isolation_level=None, timeout=datastore.LOCK_TIMEOUT)
        try:
            schema.is_current(connection, name)
            refuse_damaged(connection, path)
            move_in(connection, path)
        finally:
            connection.close()
