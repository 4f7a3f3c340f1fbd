"""Accepts a copy that was made in use and so lacks the newest events."""

import sqlite3

from ..event_log.storage_errors import translate_storage_errors
from . import sqlite_datastore, sqlite_schema
from .database_file import find_database_path
from .file_identity import check_and_save_identity, refuse_damaged
from .wal_mode import refuse_foreign_wal


def adopt_copy(name: str) -> None:
    """Accept the database in its new file. Raises StorageError if its pages are damaged."""
    path = find_database_path(name)
    if path is None or not path.exists():
        return
    with translate_storage_errors(name):
        refuse_foreign_wal(path)
        connection = sqlite3.connect(
            path, isolation_level=None, timeout=sqlite_datastore.LOCK_TIMEOUT_SECONDS
        )
        try:
            sqlite_schema.is_current_schema(connection, name)
            refuse_damaged(connection, path)
            check_and_save_identity(connection, path)
        finally:
            connection.close()
