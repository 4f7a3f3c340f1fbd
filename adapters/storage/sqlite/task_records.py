"""The table that says when each chore was done: made when the first one is, lost without harm.

It is no part of the format. Whoever does not know it is not hindered by it, and where it is not
there the chores are done again.
"""

import sqlite3

TASK_TABLE = """
CREATE TABLE IF NOT EXISTS chores (
    name TEXT PRIMARY KEY,
    record TEXT NOT NULL
) STRICT, WITHOUT ROWID
"""


def read_task_records(connection: sqlite3.Connection) -> dict[str, str]:
    """What was written down last of each chore; changes nothing."""
    try:
        return dict(connection.execute("SELECT name, record FROM chores").fetchall())
    except sqlite3.OperationalError as error:
        if "no such table" not in str(error):
            raise
        return {}


def save_task_record(connection: sqlite3.Connection, chore: str, record: str) -> None:
    """Write down what is known of a chore, in the transaction that is open."""
    connection.execute(TASK_TABLE)
    connection.execute("INSERT OR REPLACE INTO chores VALUES (?, ?)", (chore, record))
