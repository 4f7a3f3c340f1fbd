"""Maps topics and subjects to the numbers that rows use, with a cache."""

import secrets
from collections.abc import Sequence
from typing import Any, Protocol

from eventsourcing.persistence import OperationalError

MAX_CACHED_SUBJECTS = 10_000
"""Each session may have its own subject; beyond this many, the cache is cleared."""


class LogDatastore(Protocol):
    """The connections to one database; in its statements, `?` marks a parameter."""

    def read(self, query: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]: ...

    def add(self, statement: str, parameters: Sequence[Any]) -> None:
        """Run and commit a statement that adds a row unless it is there."""
        ...

    def close(self) -> None: ...


class LogNames:
    """Looks names up in both directions; other processes may add the same names."""

    def __init__(self, datastore: LogDatastore) -> None:
        self._datastore = datastore
        self._topics: dict[str, int] = {}
        self._topic_names: dict[int, str] = {}
        self._subjects: dict[str, tuple[int, bytes]] = {}
        self._subject_names: dict[int, str] = {}

    def topic(self, topic: str) -> int:
        """Return a topic's number, adding the topic if it is new."""
        if (number := self._topics.get(topic)) is None:
            query = "SELECT id FROM topics WHERE topic = ?"
            found = self._find(query, topic)
            if found is None:
                self._datastore.add(
                    "INSERT INTO topics (topic) VALUES (?) ON CONFLICT DO NOTHING RETURNING id",
                    (topic,),
                )
                found = self._find(query, topic)
            assert found is not None, "it was just added"
            number = self._topics[topic] = int(found[0])
        return number

    def topic_name(self, number: int) -> str:
        if (name := self._topic_names.get(number)) is None:
            name = self._topic_names[number] = self._find_name("topic", "topic", number)
        return name

    def subject(self, name: str) -> tuple[int, bytes]:
        """Return a subject's number and secret, adding the subject if it is new."""
        if (known := self._subjects.get(name)) is None:
            known = self._find_subject(name)
            if known is None:
                self._add_subject(name, secrets.token_bytes(32))
                known = self._find_subject(name)
            assert known is not None, "it was just added"
            if len(self._subjects) >= MAX_CACHED_SUBJECTS:
                self._subjects.clear()
            self._subjects[name] = known
        return known

    def secret_of(self, name: str) -> bytes | None:
        """Return a subject's secret; None if there is no such subject."""
        known = self._subjects.get(name) or self._find_subject(name)
        return known[1] if known else None

    def adopt(self, name: str, secret: bytes) -> bytes:
        """Add a subject with a given secret; return the secret that the subject has."""
        if self.secret_of(name) is None:
            self._add_subject(name, secret)
        return self.subject(name)[1]

    def subject_name(self, number: int) -> str:
        if (name := self._subject_names.get(number)) is None:
            if len(self._subject_names) >= MAX_CACHED_SUBJECTS:
                self._subject_names.clear()
            name = self._subject_names[number] = self._find_name("subject", "name", number)
        return name

    def _find_subject(self, name: str) -> Any:
        return self._find("SELECT id, secret FROM subjects WHERE name = ?", name)

    def _add_subject(self, name: str, secret: bytes) -> None:
        self._datastore.add(
            "INSERT INTO subjects (name, secret) VALUES (?, ?) ON CONFLICT DO NOTHING RETURNING id",
            (name, secret),
        )

    def _find_name(self, kind: str, column: str, number: int) -> str:
        found = self._find(f"SELECT {column} FROM {kind}s WHERE id = ?", number)  # noqa: S608 - ours
        if found is None:
            raise OperationalError(f"{kind} {number} is missing from the database")
        return str(found[0])

    def _find(self, query: str, value: object) -> Any:
        return next(iter(self._datastore.read(query, (value,))), None)
