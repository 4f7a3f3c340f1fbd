"""Collects the rows of one batch, and the sessions and lineages that it changes."""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from ....domain.record import MAX_COUNT
from ....projections.read_models.searchable_text import replace_surrogates
from ....projections.read_models.session_row import SessionRow
from ..event_log.stored_row import LogNotification
from .read_model_file import fetch_mappings

TABLE_ORDER = (
    "lineages",
    "compaction_requests",
    "compactions",
    "model_calls",
    "context_overflows",
    "digest_entries",
)
"""Tables come before those that refer to them."""
_LINEAGE_QUERY = (
    "SELECT lineages.id, lineages.name, sessions.stream FROM lineages"
    " JOIN sessions ON sessions.id = session_id WHERE lineages.stream = ?"
)


@dataclass(slots=True)
class TouchedSession:
    row: SessionRow
    newest: LogNotification | None = None
    last_said_at: str | None = None
    """The time of the newest block in the batch, as written."""
    first: int = 0
    """The first position in the batch."""
    growth: list[tuple[int, int]] = field(default_factory=list)
    """The view's growth, in tokens, by each block of the batch with its position."""
    entries: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    """The digest entries of the batch, by position."""


@dataclass(slots=True)
class TouchedLineage:
    id: int
    session: TouchedSession
    name: str


class RowBatch:
    """The rows of a batch. Changes are applied in order, after all rows were inserted.

    Sessions and lineages are read once per batch; sessions are written as they are in the end.
    """

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._added: dict[str, list[dict[str, Any]]] = {table: [] for table in TABLE_ORDER}
        self._changes: list[tuple[str, Sequence[Any]]] = []
        self._sessions: dict[UUID, TouchedSession | None] = {}
        self._lineages: dict[UUID, TouchedLineage | None] = {}

    @property
    def sessions(self) -> list[TouchedSession]:
        return [session for session in self._sessions.values() if session is not None]

    def open_session(self, stream: UUID, row: SessionRow) -> TouchedSession:
        touched = self._sessions[stream] = TouchedSession(row)
        return touched

    def open_lineage(self, stream: UUID, lineage: TouchedLineage) -> None:
        self._lineages[stream] = lineage

    def find_session(self, stream: UUID) -> TouchedSession | None:
        if stream not in self._sessions:
            query = "SELECT * FROM sessions WHERE stream = ?"
            found = fetch_mappings(self._db, query, (str(stream),))
            self._sessions[stream] = TouchedSession(SessionRow(**found[0])) if found else None
        return self._sessions[stream]

    def find_lineage(self, stream: UUID) -> TouchedLineage | None:
        if stream not in self._lineages:
            found = self.fetch_one(_LINEAGE_QUERY, (str(stream),))
            session = self.find_session(UUID(found[2])) if found else None
            lineage = TouchedLineage(found[0], session, found[1]) if found and session else None
            self._lineages[stream] = lineage
        return self._lineages[stream]

    def add(self, table: str, **row: Any) -> dict[str, Any]:
        self._added[table].append(row)
        return row

    def change(self, statement: str, parameters: Sequence[Any]) -> None:
        self._changes.append((statement, parameters))

    def complete(self, table: str, columns: dict[str, Any], **of: Any) -> None:
        """Set columns of the single row that `of` identifies."""
        sets = ", ".join(f"{name} = ?" for name in columns)
        which = " AND ".join(f"{name} = ?" for name in of)
        values = (*map(_to_sqlite, columns.values()), *of.values())
        self.change(f"UPDATE {table} SET {sets} WHERE {which}", values)  # noqa: S608 - our names

    def write(self) -> None:
        # Sessions refer to each other in any order.
        self._db.execute("PRAGMA defer_foreign_keys = ON")
        sessions = [touched.row.columns for touched in self.sessions]
        if sessions:
            # Not REPLACE, which would search for all rows that refer to this one.
            sets = ", ".join(f"{name} = excluded.{name}" for name in sessions[0])
            self._insert("sessions", sessions, f" ON CONFLICT (id) DO UPDATE SET {sets}")
        for table in TABLE_ORDER:
            self._insert(table, self._added[table])
        for statement, parameters in self._changes:
            self._db.execute(statement, parameters)
        self._changes.clear()

    def _insert(self, table: str, rows: list[dict[str, Any]], ending: str = "") -> None:
        if not rows:
            return
        names, marks = ", ".join(rows[0]), ", ".join("?" * len(rows[0]))
        statement = f"INSERT INTO {table} ({names}) VALUES ({marks}){ending}"  # noqa: S608 - ours
        self._db.executemany(statement, (tuple(map(_to_sqlite, row.values())) for row in rows))

    def fetch_one(self, query: str, parameters: Sequence[Any]) -> tuple[Any, ...] | None:
        found: tuple[Any, ...] | None = self._db.execute(query, parameters).fetchone()
        return found

    def fetch_all(self, query: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        return self._db.execute(query, parameters).fetchall()

    def execute(self, statement: str, parameters: Sequence[Any]) -> None:
        """Change rows that are already written."""
        self._db.execute(statement, parameters)


def _to_sqlite(value: Any) -> Any:
    """Return a value for SQLite: text without lone surrogates, and trees as JSON."""
    if isinstance(value, str):
        return replace_surrogates(value)
    if isinstance(value, int):
        # The log may hold any number; one that SQLite cannot store would stop all reading.
        return max(-MAX_COUNT, min(value, MAX_COUNT))
    if isinstance(value, list | dict):
        return replace_surrogates(json.dumps(value, ensure_ascii=False))
    return value
