"""Defines the tables of a cutbank database, and migrates older ones."""

import sqlite3
from collections.abc import Callable

from ....domain.errors import StorageError
from ..event_log.log_tables import (
    DELETED_SCHEMA,
    EVENT_COLUMNS,
    LOG_SCHEMA,
    RECORDS_SCHEMA,
    SEGMENTS_SCHEMA,
)
from .database_file import IDENTITY_TABLE, immediate_transaction

LOG_APPLICATION_ID = 0x63757462
"""`cutb`, in the file's header, distinguishes it from other programs' databases."""

OLDEST_SQLITE = (3, 38)
"""STRICT tables came with 3.37; JSON is always included since 3.38."""

_TYPES = {
    "serial": "INTEGER PRIMARY KEY",
    "integer": "INTEGER",
    "boolean": "INTEGER",
    "text": "TEXT",
    "bytes": "BLOB",
    "no_bytes": "x''",
    "uuid": "BLOB",
    "of_topics": " REFERENCES topics (id)",
    "of_subjects": " REFERENCES subjects (id)",
    "strict": " STRICT",
    "without_rowid": " STRICT, WITHOUT ROWID",
}
_KEPT_TRIGGER = """
CREATE TRIGGER stored_events_are_kept BEFORE DELETE ON stored_events
BEGIN SELECT RAISE(ABORT, 'the log is immutable: an event is never deleted'); END;
"""
_EVENT_TRIGGERS = f"""
CREATE TRIGGER stored_events_are_immutable BEFORE UPDATE ON stored_events
BEGIN SELECT RAISE(ABORT, 'the log is immutable: an event is never changed'); END;
{_KEPT_TRIGGER}"""
_ERASURE_TRIGGERS = """
CREATE TRIGGER stored_events_are_immutable BEFORE UPDATE ON stored_events
WHEN NOT EXISTS (
    SELECT 1 FROM deleted_streams WHERE originator_id = OLD.originator_id AND NOT erased
) OR (
    NEW.notification_id, NEW.originator_id, NEW.originator_version, NEW.topic, NEW.subject,
    NEW.key_id, NEW.tokens, NEW.digest
) IS NOT (
    OLD.notification_id, OLD.originator_id, OLD.originator_version, OLD.topic, OLD.subject,
    OLD.key_id, OLD.tokens, OLD.digest
)
BEGIN SELECT RAISE(ABORT, 'the log is immutable: an event is never changed'); END;
CREATE TRIGGER streams_of_deleted_sessions BEFORE INSERT ON streams
WHEN EXISTS (SELECT 1 FROM deleted_streams WHERE originator_id = NEW.parent)
BEGIN SELECT RAISE(ABORT, 'its session was deleted'); END;
"""
"""Only the content of a session that is being erased may change, and only to nothing."""
SQLITE_SCHEMA = LOG_SCHEMA.format_map(_TYPES) + _KEPT_TRIGGER + _ERASURE_TRIGGERS + IDENTITY_TABLE

WITHOUT_AUTOINCREMENT = f"""
CREATE TABLE log {EVENT_COLUMNS.format_map(_TYPES)};
INSERT INTO log SELECT * FROM stored_events ORDER BY notification_id;
DROP TRIGGER stored_events_are_kept;
DROP TABLE stored_events;
ALTER TABLE log RENAME TO stored_events;
CREATE UNIQUE INDEX stored_events_position ON stored_events (originator_id, originator_version);
{_EVENT_TRIGGERS}"""  # noqa: S608 - our names
"""AUTOINCREMENT would write one more page in every commit.

As no event is ever deleted, no notification id is reused without it either.
"""

STAMPED_IMPORTS = "ALTER TABLE imports ADD COLUMN stamp TEXT;"
"""The stamp of an imported file, for the next import to detect changes."""

KEPT_SOURCES = f"""
ALTER TABLE imports ADD COLUMN segments BLOB NOT NULL DEFAULT x'';
{SEGMENTS_SCHEMA.format_map(_TYPES)}"""
"""The bytes of imported files."""

DELETED_SESSIONS = f"""
ALTER TABLE streams ADD COLUMN generation INTEGER NOT NULL DEFAULT 0;
ALTER TABLE streams ADD COLUMN parent BLOB;
{DELETED_SCHEMA.format_map(_TYPES)}
DROP TRIGGER stored_events_are_immutable;
{_ERASURE_TRIGGERS}"""
"""Sessions whose streams are at an end, and maybe without their content."""


SQLITE_MIGRATIONS = (
    WITHOUT_AUTOINCREMENT,
    IDENTITY_TABLE,
    STAMPED_IMPORTS,
    KEPT_SOURCES,
    RECORDS_SCHEMA.format_map(_TYPES),
    DELETED_SESSIONS,
)
"""Script i migrates from version i + 1 to i + 2; a released script never changes."""

SCHEMA_VERSION = len(SQLITE_MIGRATIONS) + 1


def refuse_old_sqlite() -> None:
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        needed = ".".join(map(str, OLDEST_SQLITE))
        raise StorageError(
            f"Python's SQLite is {sqlite3.sqlite_version}, and cutbank needs {needed} or later: "
            f"use a newer Python"
        )


def migrate_database(
    connection: sqlite3.Connection,
    name: str,
    remember: Callable[[sqlite3.Connection], None] = lambda _: None,
) -> None:
    """Migrate the database in one transaction; any number of processes may try at the same time.

    `remember` stores the file's identity in the same transaction.
    """
    if is_current_schema(connection, name):
        return
    with immediate_transaction(connection):
        # Another process may have been faster.
        if not is_current_schema(connection, name):
            version = read_version(connection)
            for script in SQLITE_MIGRATIONS[version - 1 :] if version else (SQLITE_SCHEMA,):
                run_script(connection, script)
            remember(connection)
            connection.execute(f"PRAGMA application_id = {LOG_APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def is_current_schema(connection: sqlite3.Connection, name: str) -> bool:
    """Return whether the database has the current version; changes nothing.

    Raises StorageError for a newer version, or for another program's database.
    """
    # A single query, as another process may be creating the tables right now.
    seen: tuple[int, int, int] = connection.execute(
        "SELECT user_version, application_id, (SELECT count(*) FROM sqlite_master)"
        " FROM pragma_user_version, pragma_application_id"
    ).fetchone()
    version, application, tables = seen
    if application != LOG_APPLICATION_ID and (version or application or tables):
        raise StorageError(
            f"{name} is a database of another application: give cutbank a file of its own"
        )
    if version > SCHEMA_VERSION:
        raise StorageError(
            f"{name} was written by a newer cutbank (format {version}, this one reads up to "
            f"{SCHEMA_VERSION}): upgrade cutbank to open it"
        )
    return version == SCHEMA_VERSION


def read_version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def run_script(connection: sqlite3.Connection, script: str) -> None:
    """Run a script in the open transaction, which `executescript` would commit."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            connection.execute(statement)
            statement = ""
