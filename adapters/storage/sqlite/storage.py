"""Keeps an SQLite log's file in order, in short transactions among those of its writers."""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from ..event_log.log_names import LogNames
from ..event_log.storage import Routine, Smaller, StoredBody
from .chore_records import keep_in, records_in
from .datastore import Datastore
from .journal import is_in_use
from .lock_file import alone_by

REPLACE_BODY = "UPDATE bodies SET content = ? WHERE id = ? AND key_id IS NULL AND content = ?"


class SQLiteStorage:
    """The records are a table of the log itself: a backup that is restored has its own."""

    routine = "checkpoint"

    def __init__(self, datastore: Datastore, path: Path, names: LogNames) -> None:
        self.datastore = datastore
        self.path = path
        self.names = names

    def alone(self) -> AbstractContextManager[bool]:
        return alone_by(Path(f"{self.path}-chores"))

    def records(self) -> Mapping[str, str]:
        return records_in(self.datastore.reader)

    def keep(self, chore: str, record: str) -> None:
        with self.datastore.writing_transaction() as writer:
            keep_in(writer, chore, record)

    def select_body(self, subject: str, digest: bytes) -> StoredBody | None:
        """A subject's body; None where there is none, or where it is in cipher."""
        found = self.datastore.read_one(
            "SELECT id, content, length(content) FROM bodies"
            " WHERE subject = ? AND hash = ? AND key_id IS NULL",
            (self.names.subject(subject)[0], digest),
        )
        return StoredBody(*found) if found else None

    def replace_bodies(self, smaller: Sequence[Smaller], chore: str, record: str) -> int:
        """Store what is smaller, and the record, in one short transaction."""
        saved = 0
        with self.datastore.writing_transaction() as writer:
            for body, content in smaller:
                done = writer.execute(REPLACE_BODY, (content, body.id, body.content))
                saved += done.rowcount * (body.size - len(content))
            keep_in(writer, chore, record)
        return saved

    def run_routine(self) -> Routine:
        """Write the log that stands beside the file into it, and cut it off if nobody reads there.

        A file at rest has none. Whoever cuts it off has to write a little afterwards: a file in use
        with nothing beside it is taken for one that has lost its newest events, once it is copied.
        """
        connection = self.datastore.reader
        if not is_in_use(connection):
            return Routine(note="nobody writes to it")
        return cut_off_log(connection, self.path)


def cut_off_log(connection: sqlite3.Connection, path: Path) -> Routine:
    """Nobody waits for the first part; the second is not done where anybody is in the way."""
    before = _size_of_log(path)
    _, pages, written = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    if written < pages:
        return Routine(note=f"a reader holds on to {pages - written} of its {pages} pages")
    with _waiting_for_nobody(connection):
        (is_busy, *_) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return Routine(
        max(0, before - _size_of_log(path)), "somebody reads or writes" if is_busy else None
    )


@contextmanager
def _waiting_for_nobody(connection: sqlite3.Connection) -> Iterator[None]:
    (patience,) = connection.execute("PRAGMA busy_timeout").fetchone()
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        yield
    finally:
        connection.execute(f"PRAGMA busy_timeout = {patience}")


def _size_of_log(path: Path) -> int:
    try:
        return Path(f"{path}-wal").stat().st_size
    except OSError:
        return 0
