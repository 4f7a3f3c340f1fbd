"""Looks up topics and subjects on PostgreSQL."""

from typing import Any

from .postgres_datastore import PostgresLogDatastore


class PostgresNameTables:
    def __init__(self, datastore: PostgresLogDatastore) -> None:
        self.datastore = datastore

    def find_topic(self, topic: str) -> int | None:
        found: tuple[int] | None = self._fetch_one(b"SELECT id FROM topics WHERE topic = %s", topic)
        return found[0] if found else None

    def add_topic(self, topic: str) -> None:
        self._fetch_one(
            b"INSERT INTO topics (topic) VALUES (%s) ON CONFLICT DO NOTHING RETURNING id", topic
        )

    def topic_name(self, number: int) -> str | None:
        found: tuple[str] | None = self._fetch_one(
            b"SELECT topic FROM topics WHERE id = %s", number
        )
        return found[0] if found else None

    def find_subject(self, name: str) -> tuple[int, bytes] | None:
        found: tuple[int, bytes] | None = self._fetch_one(
            b"SELECT id, secret FROM subjects WHERE name = %s", name
        )
        return found

    def add_subject(self, name: str, secret: bytes) -> None:
        self._fetch_one(
            b"INSERT INTO subjects (name, secret) VALUES (%s, %s)"
            b" ON CONFLICT DO NOTHING RETURNING id",
            name,
            secret,
        )

    def subject_name(self, number: int) -> str | None:
        found: tuple[str] | None = self._fetch_one(
            b"SELECT name FROM subjects WHERE id = %s", number
        )
        return found[0] if found else None

    def _fetch_one(self, query: bytes, *values: object) -> Any:
        found = self.datastore.read(query, values)
        return found[0] if found else None
