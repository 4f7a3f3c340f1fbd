"""Collects the rows of one batch and writes them together."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from sqlite_utils import Database

from ....domain.record import MAX_COUNT
from ....projections.read_models.searchable_text import replace_surrogates

TABLE_ORDER = (
    "lineages",
    "compaction_requests",
    "compactions",
    "model_calls",
    "context_overflows",
    "digest_entries",
)
"""Tables come before those that refer to them."""


class RowBatch:
    """The rows of a batch. Changes are applied in order, after all rows were inserted."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._added: dict[str, list[dict[str, Any]]] = {table: [] for table in TABLE_ORDER}
        self._changes: list[tuple[str, Sequence[Any]]] = []

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

    def complete_now(
        self, table: str, columns: dict[str, Any], which: str, of: Sequence[Any]
    ) -> None:
        """Set columns of rows that are already written."""
        sets = ", ".join(f"{name} = ?" for name in columns)
        statement = f"UPDATE {table} SET {sets} WHERE {which}"  # noqa: S608 - our names
        self._db.conn.execute(statement, (*columns.values(), *of))

    def write(self, sessions: Iterable[dict[str, Any]]) -> None:
        # Sessions refer to each other in any order.
        self._db.conn.execute("PRAGMA defer_foreign_keys = ON")
        self._insert("sessions", list(sessions), renewing=True)
        for table in TABLE_ORDER:
            self._insert(table, self._added[table])
        for statement, parameters in self._changes:
            self._db.conn.execute(statement, parameters)

    def _insert(self, table: str, rows: list[dict[str, Any]], *, renewing: bool = False) -> None:
        # One prepared statement: `insert_all` builds its SQL each time, five times as slowly.
        if not rows:
            return
        names, marks = ", ".join(rows[0]), ", ".join("?" * len(rows[0]))
        statement = f"INSERT INTO {table} ({names}) VALUES ({marks})"  # noqa: S608 - our names
        if renewing:
            # Not REPLACE, which would search for all rows that refer to this one.
            sets = ", ".join(f"{name} = excluded.{name}" for name in rows[0])
            statement += f" ON CONFLICT (id) DO UPDATE SET {sets}"
        self._db.conn.executemany(statement, (tuple(map(_to_sqlite, row.values())) for row in rows))

    def fetch_one(self, query: str, parameters: Sequence[Any]) -> tuple[Any, ...] | None:
        found: tuple[Any, ...] | None = self._db.conn.execute(query, parameters).fetchone()
        return found

    def fetch_all(self, query: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        return self._db.conn.execute(query, parameters).fetchall()

    def fetch_mapping(self, query: str, parameters: Sequence[Any]) -> dict[str, Any] | None:
        cursor = self._db.conn.execute(query, parameters)
        found = cursor.fetchone()
        if found is None:
            return None
        names = [column[0] for column in cursor.description]
        return dict(zip(names, found, strict=True))


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
