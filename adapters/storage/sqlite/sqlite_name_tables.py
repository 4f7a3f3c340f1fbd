from typing import Any

from .sqlite_datastore import SQLiteLogDatastore


class SQLiteNameTables:
    def __init__(self, datastore: SQLiteLogDatastore) -> None:
        self.datastore = datastore

    def find_topic(self, topic: str) -> int | None:
        found: tuple[int] | None = self._fetch_one("SELECT id FROM topics WHERE topic = ?", topic)
        return found[0] if found else None

    def add_topic(self, topic: str) -> None:
        self._add("INSERT OR IGNORE INTO topics (topic) VALUES (?)", topic)

    def topic_name(self, number: int) -> str | None:
        found: tuple[str] | None = self._fetch_one("SELECT topic FROM topics WHERE id = ?", number)
        return found[0] if found else None

    def find_subject(self, name: str) -> tuple[int, bytes] | None:
        found: tuple[int, bytes] | None = self._fetch_one(
            "SELECT id, secret FROM subjects WHERE name = ?", name
        )
        return found

    def add_subject(self, name: str, secret: bytes) -> None:
        self._add("INSERT OR IGNORE INTO subjects (name, secret) VALUES (?, ?)", name, secret)

    def subject_name(self, number: int) -> str | None:
        found: tuple[str] | None = self._fetch_one("SELECT name FROM subjects WHERE id = ?", number)
        return found[0] if found else None

    def _fetch_one(self, query: str, value: object) -> Any:
        return self.datastore.read_one(query, (value,))

    def _add(self, statement: str, *values: object) -> None:
        with self.datastore.writing:
            self.datastore.writer.execute(statement, values)
