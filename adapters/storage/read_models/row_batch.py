"""Writes the rows of one batch, and holds the sessions and lineages that it changes."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from sqlite_utils import Database

from ....domain.context_limit import ContextLimit, LoggedContext
from ....domain.event import MAX_COUNT
from ....projections.rendering.sendable import replace_half_characters
from ....projections.session_row import SessionRow
from ..event_log.event_store import EventStore
from ..event_log.log_tables import StoredRow

ResolveLimit = Callable[[LoggedContext], ContextLimit]
"""Returns how many tokens a prompt may have."""
_LINEAGE_QUERY = (
    "SELECT lineages.id, lineages.name, sessions.stream FROM lineages"
    " JOIN sessions ON sessions.id = session_id WHERE lineages.stream = ?"
)
_UNREPORTED_QUERY = (
    "SELECT lineages.stream, max(compactions.version) FROM compactions"
    " JOIN lineages ON lineages.id = compactions.lineage_id"
    " WHERE compactions.session_id = ? AND compactions.activated_at IS NOT NULL"
    " GROUP BY lineages.id HAVING compactions.tokens_basis = 'estimated'"
)


@dataclass(slots=True)
class TouchedSession:
    row: SessionRow
    unreported: list[tuple[str, int]] = field(default_factory=list)
    """The newest boundary of each lineage, if its first call may still be in this batch."""
    newest: StoredRow | None = None
    blocks: list[StoredRow] = field(default_factory=list)
    """The events of the batch that have a block."""


@dataclass(slots=True)
class TouchedLineage:
    id: int
    session: TouchedSession
    name: str


class RowBatch:
    """One batch of rows, in an open transaction.

    Sessions and lineages are read once; sessions are written as they are in the end.
    """

    def __init__(self, store: EventStore, db: Database) -> None:
        self.store = store
        self.activated: list[tuple[UUID, int]] = []
        """The boundaries that were activated, by lineage."""
        self.copied_calls: list[int] = []
        """The calls that were copies of deleted ones, oldest first."""
        self._db = db
        self._sessions: dict[UUID, TouchedSession | None] = {}
        self.lineages: dict[UUID, TouchedLineage | None] = {}
        # Rows may refer to sessions that are written later.
        db.execute("PRAGMA defer_foreign_keys = ON")

    @property
    def sessions(self) -> list[TouchedSession]:
        return [session for session in self._sessions.values() if session is not None]

    def open_session(self, stream: UUID, row: SessionRow) -> TouchedSession:
        touched = self._sessions[stream] = TouchedSession(row)
        return touched

    def drop_session(self, stream: UUID) -> None:
        """Forget a session that is being removed, and its lineages."""
        dropped, self._sessions[stream] = self._sessions.get(stream), None
        for id, lineage in self.lineages.items():
            if lineage and lineage.session is dropped:
                self.lineages[id] = None
                self.activated = [one for one in self.activated if one[0] != id]
        number = dropped.row.id if dropped else None
        for touched in self.sessions:
            if touched.row.parent_id == number:
                touched.row.parent_id = None
            if touched.row.forked_from_id == number:
                touched.row.forked_from_id = None

    def find_named_session(self, namespace: str, key: str) -> TouchedSession | None:
        """Return the session of that name, as of this place in the log."""
        for touched in self.sessions:
            if (touched.row.namespace, touched.row.key) == (namespace, key):
                return touched
        query = "SELECT stream FROM sessions WHERE namespace = ? AND key = ?"
        found = self.execute(query, namespace, key)
        return self.find_session(UUID(found[0][0])) if found else None

    def list_forks(self) -> list[TouchedSession]:
        query = "SELECT stream FROM sessions WHERE forked_at IS NOT NULL"
        for (stream,) in self.execute(query):
            self.find_session(UUID(stream))
        return [touched for touched in self.sessions if touched.row.forked_at is not None]

    def find_session(self, stream: UUID) -> TouchedSession | None:
        if stream not in self._sessions:
            query = "SELECT * FROM sessions WHERE stream = ?"
            found = list(self._db.query(query, (str(stream),)))
            touched = TouchedSession(SessionRow(**found[0])) if found else None
            if touched:
                touched.unreported = self.execute(_UNREPORTED_QUERY, touched.row.id)
            self._sessions[stream] = touched
        return self._sessions[stream]

    def find_lineage(self, stream: UUID) -> TouchedLineage | None:
        if stream not in self.lineages:
            lineage = None
            for id, name, of in self.execute(_LINEAGE_QUERY, str(stream)):
                session = self.find_session(UUID(of))
                lineage = TouchedLineage(id, session, name) if session else None
            self.lineages[stream] = lineage
        return self.lineages[stream]

    def execute(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        return self._db.execute(statement, values).fetchall()

    def execute_many(self, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
        self._db.conn.executemany(statement, rows)

    def complete(self, table: str, columns: dict[str, Any], **of: Any) -> None:
        """Set columns of the single row that `of` identifies."""
        sets = ", ".join(f"{name} = ?" for name in columns)
        which = " AND ".join(f"{name} = ?" for name in of)
        values = (*map(_to_sqlite, columns.values()), *of.values())
        self.execute(f"UPDATE {table} SET {sets} WHERE {which}", *values)  # noqa: S608 - our names

    def write_sessions(self) -> None:
        for touched in self.sessions:
            row = touched.row.columns
            # Not REPLACE, which would search for all rows that refer to this one.
            sets = ", ".join(f"{name} = excluded.{name}" for name in row)
            self.add("sessions", f" ON CONFLICT (id) DO UPDATE SET {sets}", **row)

    def add(self, table: str, ending: str = "", /, **row: Any) -> None:
        names, marks = ", ".join(row), ", ".join("?" * len(row))
        statement = f"INSERT INTO {table} ({names}) VALUES ({marks}){ending}"  # noqa: S608 - ours
        self._db.execute(statement, tuple(map(_to_sqlite, row.values())))


def copy_fields(source: object, names: str) -> dict[str, Any]:
    """Return the named attributes, for columns of the same names."""
    return {name: getattr(source, name) for name in names.split()}


def _to_sqlite(value: Any) -> Any:
    """Return a value for SQLite: text without lone surrogates, and trees as JSON."""
    if isinstance(value, list | dict):
        value = json.dumps(value, ensure_ascii=False)
    if isinstance(value, str):
        return replace_half_characters(value)
    if isinstance(value, int):
        # The log may hold any number; one that SQLite cannot store would stop all reading.
        return max(-MAX_COUNT, min(value, MAX_COUNT))
    return value
