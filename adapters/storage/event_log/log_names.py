"""Maps topics and subjects to the numbers that rows use, with a cache."""

import secrets
from typing import Protocol

from eventsourcing.persistence import OperationalError

MAX_CACHED_SUBJECTS = 10_000
"""Each session may have its own subject; beyond this many, the cache is cleared."""


class NameTables(Protocol):
    """The tables of topics and subjects in one database."""

    def find_topic(self, topic: str) -> int | None: ...

    def add_topic(self, topic: str) -> None:
        """Add a topic unless another process was faster."""
        ...

    def topic_name(self, number: int) -> str | None: ...

    def find_subject(self, name: str) -> tuple[int, bytes] | None: ...

    def add_subject(self, name: str, secret: bytes) -> None: ...

    def subject_name(self, number: int) -> str | None: ...


class LogNames:
    """Looks names up in both directions."""

    def __init__(self, tables: NameTables) -> None:
        self._tables = tables
        self._topics: dict[str, int] = {}
        self._topic_names: dict[int, str] = {}
        self._subjects: dict[str, tuple[int, bytes]] = {}
        self._subject_names: dict[int, str] = {}

    def topic(self, topic: str) -> int:
        """Return a topic's number, adding the topic if it is new."""
        if (number := self._topics.get(topic)) is None:
            number = self._tables.find_topic(topic)
            if number is None:
                self._tables.add_topic(topic)
                number = self._tables.find_topic(topic)
            assert number is not None, "it was just added"
            self._topics[topic] = number
        return number

    def topic_name(self, number: int) -> str:
        if (name := self._topic_names.get(number)) is None:
            name = self._tables.topic_name(number)
            if name is None:
                raise OperationalError(f"topic {number} is missing from the database")
            self._topic_names[number] = name
        return name

    def subject(self, name: str) -> tuple[int, bytes]:
        """Return a subject's number and secret, adding the subject if it is new."""
        if (known := self._subjects.get(name)) is None:
            known = self._tables.find_subject(name)
            if known is None:
                self._tables.add_subject(name, secrets.token_bytes(32))
                known = self._tables.find_subject(name)
            assert known is not None, "it was just added"
            if len(self._subjects) >= MAX_CACHED_SUBJECTS:
                self._subjects.clear()
            self._subjects[name] = known
        return known

    def secret_of(self, name: str) -> bytes | None:
        known = self._subjects.get(name) or self._tables.find_subject(name)
        return known[1] if known else None

    def adopt(self, name: str, secret: bytes) -> bytes:
        """Add a subject with a given secret; return the secret that the subject has."""
        if self.secret_of(name) is None:
            self._tables.add_subject(name, secret)
        return self.subject(name)[1]

    def subject_name(self, number: int) -> str:
        if (name := self._subject_names.get(number)) is None:
            name = self._tables.subject_name(number)
            if name is None:
                raise OperationalError(f"subject {number} is missing from the database")
            if len(self._subject_names) >= MAX_CACHED_SUBJECTS:
                self._subject_names.clear()
            self._subject_names[number] = name
        return name
