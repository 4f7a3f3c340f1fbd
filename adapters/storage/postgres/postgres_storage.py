"""Keeps a log on PostgreSQL in order; the server's own housekeeping is left to the server.

There is no VACUUM here. Autovacuum does that by rules that whoever runs the server has set, at a
pace that its disks bear. Events are never changed, so the log has nothing to vacuum; where bodies
were recompressed the old ones are gone with its next round.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256

from ..event_log.log_names import LogNames
from ..event_log.storage_tasks import DatabaseTaskResult, RecompressedBody, StoredBody
from .postgres_datastore import PostgresLogDatastore, connect

_ANALYZED_TABLES = (
    "stored_events",
    "bodies",
    "streams",
    "append_keys",
    "imports",
    "topics",
    "subjects",
)
MAKE_RECORDS = (
    'CREATE TABLE IF NOT EXISTS chores (name text COLLATE "C" PRIMARY KEY, record text NOT NULL)'
)
"""No part of the format, as on SQLite; in the log, so that all machines know it."""
SELECT_RECORDS = "SELECT name, record FROM chores"
SAVE_RECORD = (
    "INSERT INTO chores VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET record = excluded.record"
)
_REPLACE_BODY = (
    "UPDATE bodies SET content = %b WHERE id = %s AND key_id IS NULL AND sha256(content) = %b"
)


class PostgresStorage:
    """One machine at a time, by a lock of the server's; what a backup copies has no records."""

    task_name = "statistics"

    def __init__(self, datastore: PostgresLogDatastore, names: LogNames) -> None:
        self.datastore = datastore
        self.names = names

    @contextmanager
    def try_lock(self) -> Iterator[bool]:
        """Whether nobody else does chores here.

        The lock is a session's of its own. Should that session be lost in the middle, somebody else
        may begin: each step is right whoever else is at it, and only done twice.
        """
        with connect(self.datastore.address) as session:
            found = session.execute(
                "SELECT pg_try_advisory_lock(hashtextextended('cutbank chores ' || %s, 0))",
                (self.datastore.address.schema,),
            ).fetchone()
            yield bool(found and found[0])

    def read_records(self) -> Mapping[str, str]:
        if not self._has_records():
            return {}
        return dict(self.datastore.read(SELECT_RECORDS))

    def save_record(self, chore: str, record: str) -> None:
        self.replace_bodies((), chore, record)

    def select_body(self, subject: str, digest: bytes) -> StoredBody | None:
        """A subject's body; None where there is none, or where it is in cipher."""
        found = self.datastore.read(
            "SELECT id, content, pg_column_size(content) FROM bodies"
            " WHERE subject = %s AND hash = %s AND key_id IS NULL",
            (self.names.subject(subject)[0], digest),
        )
        return StoredBody(*found[0]) if found else None

    def replace_bodies(self, smaller: Sequence[RecompressedBody], chore: str, record: str) -> int:
        """Store what is smaller, and the record, in one short transaction."""
        saved = 0
        self._make_records()
        with self.datastore.get_connection() as connection, connection.transaction():
            for body, content in smaller:
                known = sha256(body.content).digest()
                done = connection.execute(_REPLACE_BODY, (content, body.id, known))
                saved += done.rowcount * (body.size - len(content))
            connection.execute(SAVE_RECORD, (chore, record))
        return saved

    def run_database_task(self) -> DatabaseTaskResult:
        """Let the planner know what the tables hold; nobody waits for it."""
        with self.datastore.get_connection() as connection:
            for table in _ANALYZED_TABLES:
                connection.execute(f"ANALYZE {table}".encode())
        return DatabaseTaskResult()

    def _has_records(self) -> bool:
        return bool(self.datastore.read("SELECT to_regclass('chores') IS NOT NULL")[0][0])

    def _make_records(self) -> None:
        if self._has_records():
            return
        with self.datastore.get_connection() as connection, connection.transaction():
            # Two that make the same table at once would fail, even where it is there then.
            connection.execute(
                "SELECT pg_advisory_xact_lock(hashtextextended('cutbank migrates ' || %s, 0))",
                (self.datastore.address.schema,),
            )
            connection.execute(MAKE_RECORDS)
