"""Writes and reads the log on PostgreSQL."""

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, cast
from uuid import UUID

from eventsourcing.persistence import (
    IntegrityError,
    OperationalError,
)
from eventsourcing.postgres import PostgresApplicationRecorder

from ....domain.ranges import Run
from ..event_log.log_names import LogNames
from ..event_log.recorder import AppendKey, Batch, ImportRow, LogNotification, Stream
from ..event_log.stored_row import StoredRow
from .copy_to_file import copy_to_file
from .error_translation import RETRYABLE_STATES
from .insert_statement import make_event_values, make_insertion
from .log_tail import LogTail
from .postgres_datastore import ConnectionLostError, PostgresLogDatastore
from .postgres_name_tables import PostgresNameTables
from .postgres_storage import PostgresStorage
from .postgres_subscription import PostgresSubscription

MAX_ATTEMPTS = 10
"""How often an append is retried after the server rolled it back for others."""

_SELECT_EVENTS = (
    "SELECT originator_version, topic, subject, key_id, tokens, digest, carried, state"
    " FROM stored_events WHERE originator_id = %s"
)
_SELECT_RUNS = (
    "SELECT originator_version, topic, subject, key_id, tokens, digest, carried, state"
    " FROM unnest(%s::bigint[], %s::bigint[]) AS run (first, last) CROSS JOIN stored_events"
    " WHERE originator_id = %s AND originator_version BETWEEN run.first AND run.last"
    " ORDER BY originator_version"
)
SELECT_HEAD = (
    "SELECT originator_version, carried, subject FROM stored_events"
    " WHERE originator_id = %s AND originator_version <= %s"
    " ORDER BY originator_version DESC LIMIT 1"
)
SELECT_OWN = (
    "SELECT notification_id, topic, subject, key_id, tokens, digest, carried, state"
    " FROM stored_events WHERE originator_id = %s AND originator_version = %s"
)
SELECT_LOG = (
    "SELECT notification_id, originator_id, originator_version, topic, subject, key_id, tokens,"
    " carried, state FROM stored_events WHERE notification_id > %s AND notification_id <= %s"
)


class PostgresRecorder(PostgresApplicationRecorder):
    """eventsourcing's application recorder on cutbank's tables.

    Topics and subjects are small numbers. Appends take no lock on the table: ids come from a
    sequence, and `tail` says up to which id none is still missing.
    """

    datastore: PostgresLogDatastore

    def __init__(self, datastore: PostgresLogDatastore) -> None:
        super().__init__(datastore)
        self.names = LogNames(PostgresNameTables(datastore))
        self.tail = LogTail(datastore)
        self.subscriptions: list[PostgresSubscription] = []

    def reopen_in_child(self) -> None:
        """Drop the state of the parent's threads, which do not exist in this process."""
        self.tail = LogTail(self.datastore)
        self.subscriptions.clear()

    def create_table(self) -> None:
        """Do nothing: the datastore migrated the schema when it connected."""

    def insert_events(  # type: ignore[override] # a row has all that a StoredEvent has
        self,
        stored_events: Sequence[StoredRow],
        *,
        keys: Sequence[AppendKey] = (),
        streams: Sequence[Stream] = (),
        imports: Sequence[ImportRow] = (),
        **_: Any,
    ) -> Sequence[int]:
        """Store everything in one transaction, or nothing.

        Raises IntegrityError if a position or key is taken. After a lost connection it checks
        whether the append was stored, and repeats it if not.
        """
        query, parameters, events = self._make_insertion(stored_events, keys, streams, imports)
        ids = self._insert(query, parameters, events)
        for subscription in tuple(self.subscriptions):
            subscription.wake()
        return ids

    def insert_all(self, batches: Iterable[Batch]) -> None:
        with self.datastore.get_connection() as connection, connection.transaction():
            cursor = connection.cursor(binary=True)
            for it in batches:
                if it.rows or it.keys or it.streams or it.imports:
                    query, parameters, _ = self._make_insertion(
                        it.rows, it.keys, it.streams, it.imports
                    )
                    cursor.execute(query, parameters)
        for subscription in tuple(self.subscriptions):
            subscription.wake()

    def _make_insertion(
        self,
        rows: Sequence[StoredRow],
        keys: Sequence[AppendKey],
        streams: Sequence[Stream],
        imports: Sequence[ImportRow],
    ) -> tuple[bytes, Sequence[Any], list[tuple[Any, ...]]]:
        """Return the statement that stores everything, its parameters, and the events' values."""
        events, bodies = [], {}
        for row in rows:
            subject = self.names.subject(row.subject)[0]
            events.append(make_event_values(row, self.names.topic(row.topic), subject))
            for body in row.bodies:
                bodies[subject, body.hash] = body.content
        query, parameters = make_insertion(events, bodies, keys, streams, imports)
        return query, parameters, events

    def _insert(
        self, query: bytes, parameters: Sequence[Any], events: list[tuple[Any, ...]]
    ) -> list[int]:
        may_be_there = False
        attempts = 0
        while True:
            attempts += 1
            try:
                answer = self.datastore.execute(query, parameters)
            except IntegrityError:
                if may_be_there and (own := self._find_own_ids(events)):
                    return own
                raise
            except ConnectionLostError:
                if attempts == MAX_ATTEMPTS:
                    raise
                # The server may still be working on it; then the next attempt waits for its end.
                may_be_there = True
                if own := self._find_own_ids(events):
                    return own
            except OperationalError as error:
                if attempts == MAX_ATTEMPTS or _error_state(error) not in RETRYABLE_STATES:
                    raise
            else:
                return [row[0] for row in answer] if events else []

    def _find_own_ids(self, events: list[tuple[Any, ...]]) -> list[int]:
        """Return the ids of these events if exactly these are stored; else an empty list."""
        ids = []
        for originator, version, *content in events:
            for id, *stored in self.datastore.read(SELECT_OWN, (originator, version)):
                if stored == content:
                    ids.append(id)
        return ids if len(ids) == len(events) else []

    def select_events(  # type: ignore[override]  # a row has all that a StoredEvent has
        self,
        originator_id: UUID | str,
        *,
        gt: int | None = None,
        lte: int | None = None,
        desc: bool = False,
        limit: int | None = None,
    ) -> Sequence[StoredRow]:
        query = _SELECT_EVENTS
        parameters: list[Any] = [originator_id]
        if gt is not None:
            query += " AND originator_version > %s"
            parameters.append(gt)
        if lte is not None:
            query += " AND originator_version <= %s"
            parameters.append(lte)
        query += " ORDER BY originator_version" + (" DESC" if desc else "")
        if limit is not None:
            query += " LIMIT %s"
            parameters.append(limit)
        found = self.datastore.read(query.encode(), parameters)
        return [self._make_row(cast(UUID, originator_id), values) for values in found]

    def select_runs(self, originator_id: UUID, runs: Sequence[Run]) -> list[StoredRow]:
        firsts, lasts = [first for first, _ in runs], [last for _, last in runs]
        if len(runs) == 1:
            return list(self.select_events(originator_id, gt=firsts[0] - 1, lte=lasts[0]))
        found = self.datastore.read(_SELECT_RUNS, (firsts, lasts, originator_id))
        return [self._make_row(originator_id, values) for values in found]

    def select_head(
        self, originator_id: UUID, at: int | None = None
    ) -> tuple[int, dict[str, Any], str] | None:
        found = self.datastore.read(SELECT_HEAD, (originator_id, 2**62 if at is None else at))
        if not found:
            return None
        version, carried, subject = found[0]
        try:
            state = {**json.loads(carried)}
        except (TypeError, ValueError) as error:
            raise OperationalError(
                f"the state at #{version} of stream {originator_id} is damaged: {error}"
            ) from error
        return version, state, self.names.subject_name(subject)

    def select_key(self, originator_id: UUID, key: str) -> AppendKey | None:
        found = self.datastore.read(
            "SELECT first, last FROM append_keys WHERE originator_id = %s AND key = %s",
            (originator_id, key),
        )
        return AppendKey(originator_id, key, *found[0]) if found else None

    def select_keys(self, originator_id: UUID, gt: str, limit: int) -> list[AppendKey]:
        found = self.datastore.read(
            "SELECT key, first, last FROM append_keys WHERE originator_id = %s AND key > %s"
            " ORDER BY key LIMIT %s",
            (originator_id, gt, limit),
        )
        return [AppendKey(originator_id, *values) for values in found]

    def select_streams(
        self, namespace: str | None = None, session: str | None = None
    ) -> list[Stream]:
        query = "SELECT originator_id, namespace, session, lineage FROM streams"
        parameters: list[str] = []
        if namespace is not None:
            query += " WHERE namespace = %s"
            parameters.append(namespace)
            if session is not None:
                query += " AND session = %s"
                parameters.append(session)
        query += " ORDER BY namespace, session, lineage NULLS FIRST"
        return [Stream(*values) for values in self.datastore.read(query.encode(), parameters)]

    def select_body(self, subject: str, digest: bytes) -> bytes:
        found = self.datastore.read(
            "SELECT content FROM bodies WHERE subject = %s AND hash = %s",
            (self.names.subject(subject)[0], digest),
        )
        if not found:
            raise OperationalError(f"body {digest.hex()} is missing from the database")
        return cast(bytes, found[0][0])

    def select_import(self, namespace: str, source: str) -> ImportRow | None:
        found = self.datastore.read(
            "SELECT format, session, bytes, complete, stamp FROM imports"
            " WHERE namespace = %s AND source = %s",
            (namespace, source),
        )
        return ImportRow(namespace, source, *found[0]) if found else None

    def select_incomplete_import(self, namespace: str, session: str) -> str | None:
        found = self.datastore.read(
            "SELECT source FROM imports WHERE namespace = %s AND session = %s AND NOT complete",
            (namespace, session),
        )
        return found[0][0] if found else None

    def select_imports(self, namespace: str, session: str) -> list[ImportRow]:
        found = self.datastore.read(
            "SELECT namespace, source, format, session, bytes, complete, stamp FROM imports"
            " WHERE namespace = %s AND session = %s ORDER BY source",
            (namespace, session),
        )
        return [ImportRow(*values) for values in found]

    def select_import_session(self, namespace: str, source: str) -> str | None:
        found = self.datastore.read(
            "SELECT session FROM imports WHERE namespace = %s AND source = %s", (namespace, source)
        )
        return found[0][0] if found else None

    def backup(self, target: Path) -> None:
        with self.datastore.get_connection() as connection:
            copy_to_file(connection, target)

    def read_server_time(self) -> datetime:
        return cast(datetime, self.datastore.read("SELECT clock_timestamp()")[0][0])

    def get_storage(self) -> PostgresStorage:
        return PostgresStorage(self.datastore, self.names)

    def find_problems(self) -> list[str]:
        """Return nothing: PostgreSQL checks pages as it reads them, and fails the statement."""
        return []

    def count_unnamed_streams(self) -> int:
        found = self.datastore.read(
            "SELECT count(*) FROM (SELECT DISTINCT originator_id FROM stored_events"
            " EXCEPT SELECT originator_id FROM streams) AS unnamed"
        )
        return int(found[0][0])

    def select_notifications(
        self,
        start: int | None,
        limit: int,
        stop: int | None = None,
        topics: Sequence[str] = (),
        *,
        inclusive_of_start: bool = True,
    ) -> Sequence[LogNotification]:
        after = (start or 0) - (1 if start and inclusive_of_start else 0)
        last = 2**62 if stop is None else stop
        settled = self.tail.known
        asked = after >= settled
        if asked:
            settled = self.tail.find_settled()
        found = self._read_notifications(after, min(settled, last), limit, topics)
        if len(found) < limit and last > settled and not asked:
            # More may be committed by now.
            settled = self.tail.find_settled()
            found = self._read_notifications(after, min(settled, last), limit, topics)
        return found

    def _read_notifications(
        self, after: int, last: int, limit: int, topics: Sequence[str]
    ) -> list[LogNotification]:
        if after >= last:
            return []
        query = SELECT_LOG
        parameters: list[Any] = [after, last]
        if topics:
            query += " AND topic = ANY (%s::int[])"
            parameters.append([self.names.topic(topic) for topic in topics])
        query += " ORDER BY notification_id LIMIT %s"
        parameters.append(limit)
        return [
            LogNotification(
                id=number,
                originator_id=originator,
                originator_version=version,
                topic=self.names.topic_name(topic),
                state=state,
                subject=self.names.subject_name(subject),
                key_id=key_id,
                tokens=tokens,
                carried=carried.encode(),
            )
            for number, originator, version, topic, subject, key_id, tokens, carried, state in (
                self.datastore.read(query.encode(), parameters)
            )
        ]

    def max_notification_id(self) -> int:
        """Return the newest notification before which none is missing."""
        return self.tail.find_settled()

    def subscribe(self, gt: int | None = None, topics: Sequence[str] = ()) -> PostgresSubscription:
        return PostgresSubscription(self, gt, topics)

    def _make_row(self, originator_id: UUID, values: tuple[Any, ...]) -> StoredRow:
        version, topic, subject, key_id, tokens, digest, carried, state = values
        return StoredRow(
            originator_id,
            version,
            self.names.topic_name(topic),
            state,
            self.names.subject_name(subject),
            key_id,
            tokens,
            digest,
            carried.encode(),
        )

    def subject(self, name: str) -> tuple[int, bytes]:
        return self.names.subject(name)

    def secret_of(self, subject: str) -> bytes | None:
        return self.names.secret_of(subject)

    def adopt_subject(self, name: str, secret: bytes) -> bytes:
        return self.names.adopt(name, secret)

    def name_topic(self, topic: str) -> None:
        self.names.topic(topic)


def _error_state(error: OperationalError) -> str | None:
    return getattr(error.args[0], "sqlstate", None) if error.args else None
