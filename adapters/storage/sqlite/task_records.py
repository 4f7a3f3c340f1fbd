"""Stores when each maintenance task ran, in a table that is created on demand.

The table is not part of the format: other versions ignore it, and without it all tasks run again.
"""

import sqlite3

TASK_TABLE = """
CREATE TABLE IF NOT EXISTS chores (
    name TEXT PRIMARY KEY,
    record TEXT NOT NULL
) STRICT, WITHOUT ROWID
"""


def read_task_records(connection: sqlite3.Connection) -> dict[str, str]:
    """Return the newest record of each task; changes nothing."""
    try:
        return dict(connection.execute("SELECT name, record FROM chores").fetchall())
    except sqlite3.OperationalError as error:
        if "no such table" not in str(error):
            raise
        return {}


def save_task_record(connection: sqlite3.Connection, chore: str, record: str) -> None:
    """Save a task's record, in the open transaction."""
    connection.execute(TASK_TABLE)
    connection.execute("INSERT OR REPLACE INTO chores VALUES (?, ?)", (chore, record))
