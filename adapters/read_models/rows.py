"""Rows of one batch: added and changed in memory, and written together by sqlite-utils."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from sqlite_utils import Database

from ...projections.read_models.said import whole

ORDER = (
    "lineages",
    "compaction_requests",
    "compactions",
    "model_calls",
    "context_overflows",
    "digest_entries",
)
"""Who refers to whom comes after it."""


class Rows:
    """What a batch comes to. Changes are made after all rows were added, in their own order."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._added: dict[str, list[dict[str, Any]]] = {table: [] for table in ORDER}
        self._changes: list[tuple[str, Sequence[Any]]] = []

    def add(self, table: str, **row: Any) -> None:
        self._added[table].append(_written(row))

    def change(self, statement: str, parameters: Sequence[Any]) -> None:
        self._changes.append((statement, parameters))

    def complete(self, table: str, columns: dict[str, Any], **of: Any) -> None:
        """Fill columns of the one row that `of` names."""
        sets = ", ".join(f"{name} = ?" for name in columns)
        which = " AND ".join(f"{name} = ?" for name in of)
        values = (*_written(columns).values(), *of.values())
        self.change(f"UPDATE {table} SET {sets} WHERE {which}", values)  # noqa: S608 - our names

    def write(self, sessions: Iterable[dict[str, Any]]) -> None:
        # Sessions refer to each other, whichever comes first.
        self._db.conn.execute("PRAGMA defer_foreign_keys = ON")
        self._db.table("sessions").upsert_all(map(_written, sessions), pk="id")
        for table in ORDER:
            if rows := self._added[table]:
                self._db.table(table).insert_all(rows)
        for statement, parameters in self._changes:
            self._db.conn.execute(statement, parameters)

    # What earlier batches left

    def one(self, query: str, parameters: Sequence[Any]) -> tuple[Any, ...] | None:
        found: tuple[Any, ...] | None = self._db.conn.execute(query, parameters).fetchone()
        return found

    def mapping(self, query: str, parameters: Sequence[Any]) -> dict[str, Any] | None:
        cursor = self._db.conn.execute(query, parameters)
        found = cursor.fetchone()
        if found is None:
            return None
        names = [column[0] for column in cursor.description]
        return dict(zip(names, found, strict=True))


def _written(row: dict[str, Any]) -> dict[str, Any]:
    """What SQLite can hold: text without halves of characters, and trees as JSON."""
    return {name: _value(value) for name, value in row.items()}


def _value(value: Any) -> Any:
    if isinstance(value, str):
        return whole(value)
    if isinstance(value, list | dict):
        return whole(json.dumps(value, ensure_ascii=False))
    return value
