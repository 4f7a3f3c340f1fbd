"""Maps topics and subjects to the numbers that rows use, with a cache, and makes the rows."""

import secrets
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar
from uuid import UUID

from eventsourcing.persistence import OperationalError

from .log_tables import (
    BODIES,
    DELETED,
    EVENTS,
    IMPORTS,
    KEYS,
    RECORDS,
    SEGMENTS,
    STREAMS,
    Batch,
    TableRows,
)

_K = TypeVar("_K")
_V = TypeVar("_V")
MAX_CACHED_VALUES = 10_000


def remember(cache: dict[_K, _V], key: _K, value: _V) -> None:
    """Cache a value that never changes; clear the whole cache if it grows too large.

    Each session may have its own subject, and each fork many states.
    """
    if len(cache) >= MAX_CACHED_VALUES:
        cache.clear()
    cache[key] = value


class LogDatastore(Protocol):
    """The connections to one database; in its statements, `?` marks a parameter."""

    def read(self, query: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]: ...

    def add(self, statement: str, parameters: Sequence[Any]) -> None:
        """Run and commit a statement that adds a row unless it is there."""
        ...

    @property
    def is_batching(self) -> bool:
        """Whether this thread is in a batch."""
        ...

    def batch(self) -> AbstractContextManager[None]:
        """Run all that this thread writes and reads in one transaction.

        A batch in another one is a part of it that is stored whole or not at all.
        """
        ...

    def close(self) -> None: ...


_FIND_TOPIC = "SELECT id FROM topics WHERE topic = ?"
_ADD_TOPIC = "INSERT INTO topics (topic) VALUES (?) ON CONFLICT DO NOTHING RETURNING id"
_FIND_SUBJECT = "SELECT id, secret FROM subjects WHERE name = ?"
_ADD_SUBJECT = (
    "INSERT INTO subjects (name, secret) VALUES (?, ?) ON CONFLICT DO NOTHING RETURNING id"
)


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
            number = int(self._find_or_add(_FIND_TOPIC, _ADD_TOPIC, topic)[0])
            self._remember(self._topics, topic, number)
            self._remember(self._topic_names, number, topic)
        return number

    def topic_name(self, number: int) -> str:
        if (name := self._topic_names.get(number)) is None:
            # All at once: they are few, and a view needs many of them.
            found = dict(self._datastore.read("SELECT id, topic FROM topics"))
            for known in found.items():
                self._remember(self._topic_names, *known)
            name = _require(found.get(number), "topic", number)
        return name

    def subject(self, name: str) -> tuple[int, bytes]:
        """Return a subject's number and secret, adding the subject if it is new."""
        if (known := self._subjects.get(name)) is None:
            known = self._find_or_add(_FIND_SUBJECT, _ADD_SUBJECT, name, secrets.token_bytes(32))
            self._remember(self._subjects, name, known)
        return known

    def secret_of(self, name: str) -> bytes | None:
        """Return a subject's secret; None if there is no such subject."""
        known = self._subjects.get(name) or self._find(_FIND_SUBJECT, name)
        return known[1] if known else None

    def adopt(self, name: str, secret: bytes) -> bytes:
        """Add a subject with a given secret; return the secret that the subject has."""
        self._find_or_add(_FIND_SUBJECT, _ADD_SUBJECT, name, secret)
        return self.subject(name)[1]

    def subject_name(self, number: int) -> str:
        if (name := self._subject_names.get(number)) is None:
            found = self._find("SELECT name FROM subjects WHERE id = ?", number)
            name = _require(found and found[0], "subject", number)
            self._remember(self._subject_names, number, name)
        return name

    def _remember(self, cache: dict[_K, _V], key: _K, value: _V) -> None:
        """Cache a name, unless it may have been added by a batch, which may be undone."""
        if not self._datastore.is_batching:
            remember(cache, key, value)

    def _find_or_add(self, query: str, statement: str, *values: Any) -> Any:
        found = self._find(query, values[0])
        if found is None:
            self._datastore.add(statement, values)
            found = self._find(query, values[0])
        assert found is not None, "it was just added"
        return found

    def _find(self, query: str, value: object) -> Any:
        return next(iter(self._datastore.read(query, (value,))), None)


def _require(name: str | None, kind: str, number: int) -> str:
    if name is None:
        raise OperationalError(f"{kind} {number} is missing from the database")
    return name


def make_table_rows(batch: Batch, names: LogNames, encode_id: Callable[[UUID], Any]) -> TableRows:
    rows: TableRows = {}
    if batch.streams:
        rows[STREAMS] = [
            (encode_id(id), *name, parent and encode_id(parent))
            for id, *name, parent in batch.streams
        ]
    if batch.deleted:
        rows[DELETED] = [(encode_id(id), *rest) for id, *rest in batch.deleted]
    if batch.keys:
        rows[KEYS] = [(encode_id(id), *rest) for id, *rest in batch.keys]
    if batch.records:
        rows[RECORDS] = [(encode_id(id), *rest) for id, *rest in batch.records]
    events = []
    bodies: dict[tuple[int, bytes], bytes] = {}
    for id, version, topic, state, subject, key_id, tokens, digest, carried, large, _ in batch.rows:
        owner = names.subject(subject)[0]
        place = encode_id(id), version, names.topic(topic), owner
        events.append((*place, key_id, tokens, digest, carried.decode(), state))
        for body in large:
            bodies[owner, body.hash] = body.content
    if bodies:
        # Sorted, so that two appends with the same bodies do not deadlock.
        rows[BODIES] = [(*address, None, content) for address, content in sorted(bodies.items())]
    if batch.segments:
        rows[SEGMENTS] = sorted(dict(batch.segments).items())
    if batch.imports:
        rows[IMPORTS] = batch.imports
    if events:
        rows[EVENTS] = events
    return rows
