"""Writes and reads the log: the one place that knows its SQL."""

import json
import secrets
import sqlite3
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast
from uuid import UUID

from eventsourcing.persistence import (
    IntegrityError,
    OperationalError,
    Subscription,
)
from eventsourcing.sqlite import SQLiteApplicationRecorder

from ...domain.ranges import Run
from ..recorder import AppendKey, LogNotification, Stream
from ..stored_row import StoredRow
from .datastore import Datastore
from .subscription import SQLiteSubscription

KNOWN_SUBJECTS = 10_000

INSERT_EVENT = (
    "INSERT INTO stored_events (originator_id, originator_version, topic, subject, key_id,"
    " tokens, digest, carried, state) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
INSERT_BODY = "INSERT OR IGNORE INTO bodies (subject, hash, content) VALUES (?, ?, ?)"
INSERT_KEY = "INSERT INTO append_keys (originator_id, key, first, last) VALUES (?, ?, ?, ?)"
INSERT_STREAM = (
    "INSERT INTO streams (originator_id, namespace, session, lineage) VALUES (?, ?, ?, ?)"
)
SELECT_EVENTS = (
    "SELECT originator_version, topic, subject, key_id, tokens, digest, carried, state"
    " FROM stored_events WHERE originator_id = ?"
)
SELECT_RUNS = (
    "SELECT originator_version, topic, subject, key_id, tokens, digest, carried, state"
    " FROM json_each(?) AS run CROSS JOIN stored_events"
    " ON originator_id = ? AND originator_version"
    " BETWEEN json_extract(run.value, '$[0]') AND json_extract(run.value, '$[1]')"
    " ORDER BY originator_version"
)


class SQLiteRecorder(SQLiteApplicationRecorder):
    """eventsourcing's application recorder on cutbank's tables.

    Ids are 16 bytes, topics and subjects small numbers. Notification ids are never reused: they
    grow with the log, and no event is ever deleted.
    """

    datastore: Datastore

    def __init__(self, datastore: Datastore, events_table_name: str = "stored_events") -> None:
        super().__init__(datastore, events_table_name)
        self._topics: dict[str, int] = {}
        self._topic_names: dict[int, str] = {}
        self._subjects: dict[str, tuple[int, bytes]] = {}
        self._subject_names: dict[int, str] = {}
        self._waiting: deque[_Write] = deque()
        self.subscriptions: list[SQLiteSubscription] = []

    def create_table(self) -> None:
        """Nothing to do: the datastore has migrated the file when it opened it."""

    # Writing

    def insert_events(  # type: ignore[override]  # a row has all that a StoredEvent has
        self,
        stored_events: Sequence[StoredRow],
        *,
        keys: Sequence[AppendKey] = (),
        streams: Sequence[Stream] = (),
        imports: Sequence[tuple[Any, ...]] = (),
        **_: Any,
    ) -> Sequence[int]:
        """Store all of it in one transaction, or nothing.

        Raises IntegrityError where a position or key is taken.
        """
        write = _Write(
            stored_events, [self._parameters(row) for row in stored_events], keys, streams, imports
        )
        self._waiting.append(write)
        with self.datastore.writing:
            if not write.is_done:
                self._commit_waiting(write)
        if write.error is not None:
            raise write.error
        for subscription in tuple(self.subscriptions):
            subscription.wake()
        return write.ids

    def _commit_waiting(self, own: "_Write") -> None:
        """Store what all threads wait for that came while another one was committing.

        So a commit's wait for the disk is shared: by whoever holds `writing`, for all of them.
        """
        writes = []
        while self._waiting:
            writes.append(self._waiting.popleft())
        try:
            self._insert(writes)
        except Exception as error:  # noqa: BLE001 - raised again by the thread whose write it is
            if len(writes) == 1:
                writes[0].fail(error)
            else:
                self._insert_each(writes)
        except BaseException:
            # This thread is interrupted, and the others are not.
            others = [write for write in writes if write is not own]
            self._waiting.extend(write for write in others if not self._is_stored(write))
            raise
        for write in writes:
            write.is_done = True

    def _insert_each(self, writes: list["_Write"]) -> None:
        """At least one has to be refused, and the others with it only if nothing can be stored."""
        for write in writes:
            try:
                self._insert([write])
            except Exception as error:  # noqa: BLE001 - as above
                write.fail(error)

    def _is_stored(self, write: "_Write") -> bool:
        for row in write.rows[:1]:
            found = self.select_events(
                row.originator_id, gt=row.originator_version - 1, lte=row.originator_version
            )
            write.is_done = bool(found) and found[0].digest == row.digest
        return write.is_done

    def _insert(self, writes: list["_Write"]) -> None:
        """Store all of these in one transaction, or nothing."""
        first = writes[0]
        if len(writes) == 1 and first.is_one_row:
            # One statement commits by itself: no round trips for BEGIN and COMMIT.
            self.datastore.look_for_file()
            written = self.datastore.writer.execute(INSERT_EVENT, first.parameters[0])
            first.ids = (cast(int, written.lastrowid),)
            return
        with self.datastore.writing_transaction() as writer:
            for write in writes:
                self._insert_all(writer, write)

    def _insert_all(self, writer: sqlite3.Connection, write: "_Write") -> None:
        for stream in write.streams:
            id = stream.originator_id.bytes
            writer.execute(INSERT_STREAM, (id, stream.namespace, stream.session, stream.lineage))
        for row, values in zip(write.rows, write.parameters, strict=True):
            for body in row.bodies:
                writer.execute(INSERT_BODY, (values[3], body.hash, body.content))
        writer.executemany(INSERT_EVENT, write.parameters)
        # One transaction's ids follow each other: nobody else writes meanwhile.
        count = len(write.rows)
        newest = writer.execute("SELECT last_insert_rowid()").fetchone()[0] if count else 0
        write.ids = range(newest - count + 1, newest + 1)
        for key in write.keys:
            writer.execute(INSERT_KEY, (key.originator_id.bytes, key.key, key.first, key.last))
        for record in write.imports:
            writer.execute("INSERT OR REPLACE INTO imports VALUES (?, ?, ?, ?, ?, ?)", record)

    def _parameters(self, row: StoredRow) -> tuple[Any, ...]:
        id, version, topic, state, subject, key_id, tokens, digest, carried, _ = row
        return (
            id.bytes,
            version,
            self._topics.get(topic) or self._topic(topic),
            self.subject(subject)[0],
            key_id,
            tokens,
            digest,
            carried.decode(),
            state,
        )

    # Reading

    def select_events(  # type: ignore[override]  # a row has all that a StoredEvent has
        self,
        originator_id: UUID | str,
        *,
        gt: int | None = None,
        lte: int | None = None,
        desc: bool = False,
        limit: int | None = None,
    ) -> Sequence[StoredRow]:
        query = SELECT_EVENTS
        parameters: list[Any] = [cast(UUID, originator_id).bytes]
        if gt is not None:
            query += " AND originator_version > ?"
            parameters.append(gt)
        if lte is not None:
            query += " AND originator_version <= ?"
            parameters.append(lte)
        query += " ORDER BY originator_version" + (" DESC" if desc else "")
        if limit is not None:
            query += " LIMIT ?"
            parameters.append(limit)
        found = self.datastore.reader.execute(query, parameters)
        return [self._row(cast(UUID, originator_id), values) for values in found]

    def select_runs(self, originator_id: UUID, runs: Sequence[Run]) -> list[StoredRow]:
        """The events of a stream at these positions, in order: O(found), however scattered."""
        if len(runs) == 1:
            first, last = runs[0]
            return list(self.select_events(originator_id, gt=first - 1, lte=last))
        found = self.datastore.reader.execute(
            SELECT_RUNS,
            (json.dumps(runs), originator_id.bytes),
        )
        return [self._row(originator_id, values) for values in found]

    def select_head(
        self, originator_id: UUID, at: int | None = None
    ) -> tuple[int, dict[str, Any], str] | None:
        """The newest version up to `at`, the state carried there, and the subject."""
        found = self.datastore.reader.execute(
            "SELECT originator_version, carried, subject FROM stored_events"
            " WHERE originator_id = ? AND originator_version <= ?"
            " ORDER BY originator_version DESC LIMIT 1",
            (originator_id.bytes, 2**62 if at is None else at),
        ).fetchone()
        if found is None:
            return None
        version, carried, subject = found
        try:
            state = {**json.loads(carried)}
        except (TypeError, ValueError) as error:
            raise OperationalError(
                f"the state at #{version} of stream {originator_id} is damaged: {error}"
            ) from error
        return version, state, self._subject_name(subject)

    def select_key(self, originator_id: UUID, key: str) -> AppendKey | None:
        """What the append of that name was."""
        found = self.datastore.reader.execute(
            "SELECT first, last FROM append_keys WHERE originator_id = ? AND key = ?",
            (originator_id.bytes, key),
        ).fetchone()
        return AppendKey(originator_id, key, *found) if found else None

    def select_streams(
        self, namespace: str | None = None, session: str | None = None
    ) -> list[Stream]:
        """The catalog of streams, by name."""
        query, parameters = "SELECT * FROM streams", []
        if namespace is not None:
            query += " WHERE namespace = ?"
            parameters.append(namespace)
            if session is not None:
                query += " AND session = ?"
                parameters.append(session)
        query += " ORDER BY namespace, session, lineage"
        return [
            Stream(UUID(bytes=id), namespace, session, lineage)
            for id, namespace, session, lineage in self.datastore.reader.execute(query, parameters)
        ]

    def select_body(self, subject: str, digest: bytes) -> bytes:
        """A subject's stored body."""
        found = self.datastore.reader.execute(
            "SELECT content FROM bodies WHERE subject = ? AND hash = ?",
            (self.subject(subject)[0], digest),
        ).fetchone()
        if found is None:
            raise OperationalError(f"body {digest.hex()} is missing from the database")
        return cast(bytes, found[0])

    def select_incomplete_import(self, namespace: str, session: str) -> str | None:
        """The source of a session whose import did not reach the source's end."""
        found = self.datastore.reader.execute(
            "SELECT source FROM imports WHERE namespace = ? AND session = ? AND NOT complete",
            (namespace, session),
        ).fetchone()
        return found[0] if found else None

    def backup(self, target: Path) -> None:
        self.datastore.backup(target)

    def complaints(self) -> list[str]:
        """What SQLite itself finds wrong with the file."""
        found = self.datastore.reader.execute("PRAGMA quick_check").fetchall()
        return [" ".join(line.split()) for (line,) in found if line != "ok"]

    def unnamed_streams(self) -> int:
        """How many streams have events and no entry in the catalog."""
        found = self.datastore.reader.execute(
            "SELECT count(*) FROM (SELECT DISTINCT originator_id FROM stored_events"
            " EXCEPT SELECT originator_id FROM streams)"
        )
        return int(found.fetchone()[0])

    def select_notifications(
        self,
        start: int | None,
        limit: int,
        stop: int | None = None,
        topics: Sequence[str] = (),
        *,
        inclusive_of_start: bool = True,
    ) -> Sequence[LogNotification]:
        query = "SELECT notification_id, originator_id, originator_version, topic, subject, key_id,"
        query += " tokens, carried, state FROM stored_events WHERE notification_id "
        query += ">= ?" if inclusive_of_start else "> ?"
        parameters: list[Any] = [start or 0]
        if stop is not None:
            query += " AND notification_id <= ?"
            parameters.append(stop)
        if topics:
            query += f" AND topic IN ({','.join('?' * len(topics))})"
            parameters += [self._topic(topic) for topic in topics]
        query += " ORDER BY notification_id LIMIT ?"
        parameters.append(limit)
        return [
            LogNotification(
                id=number,
                originator_id=UUID(bytes=originator),
                originator_version=version,
                topic=self._topic_name(topic),
                state=state,
                subject=self._subject_name(subject),
                key_id=key_id,
                tokens=tokens,
                carried=carried.encode(),
            )
            for number, originator, version, topic, subject, key_id, tokens, carried, state in (
                self.datastore.reader.execute(query, parameters)
            )
        ]

    def max_notification_id(self) -> int:
        found = self.datastore.reader.execute("SELECT max(notification_id) FROM stored_events")
        return found.fetchone()[0] or 0

    def subscribe(
        self, gt: int | None = None, topics: Sequence[str] = ()
    ) -> Subscription["SQLiteRecorder"]:
        """Follow the log from `gt` on; works across threads and processes."""
        return SQLiteSubscription(self, gt, topics)

    def _row(self, originator_id: UUID, values: tuple[Any, ...]) -> StoredRow:
        version, topic, subject, key_id, tokens, digest, carried, state = values
        return StoredRow(
            originator_id,
            version,
            self._topic_name(topic),
            state,
            self._subject_name(subject),
            key_id,
            tokens,
            digest,
            carried.encode(),
        )

    # Names that rows refer to by number

    def subject(self, name: str) -> tuple[int, bytes]:
        """A subject's number and the secret of its hashes; made when first asked for."""
        if (known := self._subjects.get(name)) is None:
            query = "SELECT id, secret FROM subjects WHERE name = ?"
            known = self.datastore.reader.execute(query, (name,)).fetchone()
            if known is None:
                with self.datastore.writing:
                    self.datastore.writer.execute(
                        "INSERT OR IGNORE INTO subjects (name, secret) VALUES (?, ?)",
                        (name, secrets.token_bytes(32)),
                    )
                known = self.datastore.reader.execute(query, (name,)).fetchone()
            _bound(self._subjects)
            self._subjects[name] = known
        return known

    def _subject_name(self, number: int) -> str:
        if (name := self._subject_names.get(number)) is None:
            query = "SELECT name FROM subjects WHERE id = ?"
            found = self.datastore.reader.execute(query, (number,)).fetchone()
            if found is None:
                raise OperationalError(f"subject {number} is missing from the database")
            _bound(self._subject_names)
            name = self._subject_names[number] = cast(str, found[0])
        return name

    def _topic(self, topic: str) -> int:
        if (number := self._topics.get(topic)) is None:
            query = "SELECT id FROM topics WHERE topic = ?"
            found = self.datastore.reader.execute(query, (topic,)).fetchone()
            if found is None:
                with self.datastore.writing:
                    self.datastore.writer.execute(
                        "INSERT OR IGNORE INTO topics (topic) VALUES (?)", (topic,)
                    )
                found = self.datastore.reader.execute(query, (topic,)).fetchone()
            number = self._topics[topic] = cast(int, found[0])
        return number

    def _topic_name(self, number: int) -> str:
        if (name := self._topic_names.get(number)) is None:
            query = "SELECT topic FROM topics WHERE id = ?"
            found = self.datastore.reader.execute(query, (number,)).fetchone()
            if found is None:
                raise OperationalError(f"topic {number} is missing from the database")
            name = self._topic_names[number] = cast(str, found[0])
        return name


def _bound(names: dict[Any, Any]) -> None:
    """Forget all where there are very many: each session may have a subject of its own."""
    if len(names) >= KNOWN_SUBJECTS:
        names.clear()


class _Write:
    """What one call wants stored, all or nothing, and what became of it."""

    __slots__ = ("error", "ids", "imports", "is_done", "keys", "parameters", "rows", "streams")

    def __init__(
        self,
        rows: Sequence[StoredRow],
        parameters: list[tuple[Any, ...]],
        keys: Sequence[AppendKey],
        streams: Sequence[Stream],
        imports: Sequence[tuple[Any, ...]],
    ) -> None:
        self.rows = rows
        self.parameters = parameters
        self.keys = keys
        self.streams = streams
        self.imports = imports
        self.ids: Sequence[int] = ()
        self.error: Exception | None = None
        self.is_done = False

    def fail(self, error: Exception) -> None:
        if isinstance(error, sqlite3.IntegrityError):
            self.error = IntegrityError(error)
        elif isinstance(error, sqlite3.OperationalError):
            self.error = OperationalError(error)
        else:
            self.error = error

    @property
    def is_one_row(self) -> bool:
        others = self.keys or self.streams or self.imports
        return len(self.rows) == 1 and not (others or self.rows[0].bodies)
