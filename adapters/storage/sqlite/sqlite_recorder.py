import json
import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, cast
from uuid import UUID

from eventsourcing.persistence import (
    IntegrityError,
    OperationalError,
    Subscription,
)
from eventsourcing.sqlite import SQLiteApplicationRecorder

from ....domain.ranges import Run
from ..event_log.log_names import LogNames
from ..event_log.recorder import AppendKey, Batch, ImportRow, LogNotification, Stream
from ..event_log.stored_row import StoredRow
from .group_commit import GroupCommit
from .insertion import PendingWrite
from .sqlite_datastore import SQLiteLogDatastore
from .sqlite_name_tables import SQLiteNameTables
from .sqlite_storage import SQLiteStorage
from .sqlite_subscription import SQLiteSubscription

_SELECT_EVENTS = (
    "SELECT originator_version, topic, subject, key_id, tokens, digest, carried, state"
    " FROM stored_events WHERE originator_id = ?"
)
_SELECT_RUNS = (
    "SELECT originator_version, topic, subject, key_id, tokens, digest, carried, state"
    " FROM json_each(?) AS run CROSS JOIN stored_events"
    " ON originator_id = ? AND originator_version"
    " BETWEEN json_extract(run.value, '$[0]') AND json_extract(run.value, '$[1]')"
    " ORDER BY originator_version"
)


class SQLiteRecorder(SQLiteApplicationRecorder):
    """eventsourcing's application recorder on cutbank's tables.

    Ids are 16 bytes, topics and subjects small numbers. Notification ids are never reused, since
    they grow with the log and no event is ever deleted.
    """

    datastore: SQLiteLogDatastore

    def __init__(
        self, datastore: SQLiteLogDatastore, events_table_name: str = "stored_events"
    ) -> None:
        super().__init__(datastore, events_table_name)
        self.names = LogNames(SQLiteNameTables(datastore))
        self.group_commit = GroupCommit(datastore)
        self.subscriptions: list[SQLiteSubscription] = []

    def reopen_in_child(self) -> None:
        """Drop the state of the parent's threads, which do not exist in this process."""
        self.group_commit.waiting.clear()
        self.subscriptions.clear()

    def create_table(self) -> None:
        """Do nothing: the datastore migrated the file when it opened it."""

    def insert_events(  # type: ignore[override]  # a row has all that a StoredEvent has
        self,
        stored_events: Sequence[StoredRow],
        *,
        keys: Sequence[AppendKey] = (),
        streams: Sequence[Stream] = (),
        imports: Sequence[ImportRow] = (),
        **_: Any,
    ) -> Sequence[int]:
        parameters = [self._make_parameters(row) for row in stored_events]
        write = PendingWrite(stored_events, parameters, keys, streams, imports)
        self.group_commit.store(write)
        for subscription in tuple(self.subscriptions):
            subscription.wake()
        return write.ids

    def insert_all(self, batches: Iterable[Batch]) -> None:
        try:
            with self.datastore.writing_transaction() as writer:
                for it in batches:
                    parameters = [self._make_parameters(row) for row in it.rows]
                    PendingWrite(it.rows, parameters, it.keys, it.streams, it.imports).insert(
                        writer
                    )
        except sqlite3.IntegrityError as error:
            raise IntegrityError(error) from error
        for subscription in tuple(self.subscriptions):
            subscription.wake()

    def _make_parameters(self, row: StoredRow) -> tuple[Any, ...]:
        id, version, topic, state, subject, key_id, tokens, digest, carried, _ = row
        return (
            id.bytes,
            version,
            self.names.topic(topic),
            self.names.subject(subject)[0],
            key_id,
            tokens,
            digest,
            carried.decode(),
            state,
        )

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
        found = self.datastore.read(query, parameters)
        return [self._make_row(cast(UUID, originator_id), values) for values in found]

    def select_runs(self, originator_id: UUID, runs: Sequence[Run]) -> list[StoredRow]:
        if len(runs) == 1:
            first, last = runs[0]
            return list(self.select_events(originator_id, gt=first - 1, lte=last))
        found = self.datastore.read(
            _SELECT_RUNS,
            (json.dumps(runs), originator_id.bytes),
        )
        return [self._make_row(originator_id, values) for values in found]

    def select_head(
        self, originator_id: UUID, at: int | None = None
    ) -> tuple[int, dict[str, Any], str] | None:
        found = self.datastore.read_one(
            "SELECT originator_version, carried, subject FROM stored_events"
            " WHERE originator_id = ? AND originator_version <= ?"
            " ORDER BY originator_version DESC LIMIT 1",
            (originator_id.bytes, 2**62 if at is None else at),
        )
        if found is None:
            return None
        version, carried, subject = found
        try:
            state = {**json.loads(carried)}
        except (TypeError, ValueError) as error:
            raise OperationalError(
                f"the state at #{version} of stream {originator_id} is damaged: {error}"
            ) from error
        return version, state, self.names.subject_name(subject)

    def select_key(self, originator_id: UUID, key: str) -> AppendKey | None:
        found = self.datastore.read_one(
            "SELECT first, last FROM append_keys WHERE originator_id = ? AND key = ?",
            (originator_id.bytes, key),
        )
        return AppendKey(originator_id, key, *found) if found else None

    def select_keys(self, originator_id: UUID, gt: str, limit: int) -> list[AppendKey]:
        found = self.datastore.read(
            "SELECT key, first, last FROM append_keys WHERE originator_id = ? AND key > ?"
            " ORDER BY key LIMIT ?",
            (originator_id.bytes, gt, limit),
        )
        return [AppendKey(originator_id, *values) for values in found]

    def select_streams(
        self, namespace: str | None = None, session: str | None = None
    ) -> list[Stream]:
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
            for id, namespace, session, lineage in self.datastore.read(query, parameters)
        ]

    def select_body(self, subject: str, digest: bytes) -> bytes:
        found = self.datastore.read_one(
            "SELECT content FROM bodies WHERE subject = ? AND hash = ?",
            (self.names.subject(subject)[0], digest),
        )
        if found is None:
            raise OperationalError(f"body {digest.hex()} is missing from the database")
        return cast(bytes, found[0])

    def select_import(self, namespace: str, source: str) -> ImportRow | None:
        found = self.datastore.read_one(
            "SELECT format, session, bytes, complete, stamp FROM imports"
            " WHERE namespace = ? AND source = ?",
            (namespace, source),
        )
        return ImportRow(namespace, source, *found) if found else None

    def select_incomplete_import(self, namespace: str, session: str) -> str | None:
        found = self.datastore.read_one(
            "SELECT source FROM imports WHERE namespace = ? AND session = ? AND NOT complete",
            (namespace, session),
        )
        return found[0] if found else None

    def select_imports(self, namespace: str, session: str) -> list[ImportRow]:
        found = self.datastore.read(
            "SELECT namespace, source, format, session, bytes, complete, stamp FROM imports"
            " WHERE namespace = ? AND session = ? ORDER BY source",
            (namespace, session),
        )
        return [ImportRow(*values) for values in found]

    def select_import_session(self, namespace: str, source: str) -> str | None:
        found = self.datastore.read_one(
            "SELECT session FROM imports WHERE namespace = ? AND source = ?", (namespace, source)
        )
        return found[0] if found else None

    def backup(self, target: Path) -> None:
        self.datastore.backup(target)

    def read_server_time(self) -> None:
        """Return None: the clock is this machine's."""

    def get_storage(self) -> SQLiteStorage | None:
        path = self.datastore.path
        return SQLiteStorage(self.datastore, path, self.names) if path else None

    def find_problems(self) -> list[str]:
        """Return the problems that SQLite finds in the file."""
        found = self.datastore.read("PRAGMA quick_check")
        return [" ".join(line.split()) for (line,) in found if line != "ok"]

    def count_unnamed_streams(self) -> int:
        found = self.datastore.read(
            "SELECT count(*) FROM (SELECT DISTINCT originator_id FROM stored_events"
            " EXCEPT SELECT originator_id FROM streams)"
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
        query = "SELECT notification_id, originator_id, originator_version, topic, subject, key_id,"
        query += " tokens, carried, state FROM stored_events WHERE notification_id "
        query += ">= ?" if inclusive_of_start else "> ?"
        parameters: list[Any] = [start or 0]
        if stop is not None:
            query += " AND notification_id <= ?"
            parameters.append(stop)
        if topics:
            query += f" AND topic IN ({','.join('?' * len(topics))})"
            parameters += [self.names.topic(topic) for topic in topics]
        query += " ORDER BY notification_id LIMIT ?"
        parameters.append(limit)
        return [
            LogNotification(
                id=number,
                originator_id=UUID(bytes=originator),
                originator_version=version,
                topic=self.names.topic_name(topic),
                state=state,
                subject=self.names.subject_name(subject),
                key_id=key_id,
                tokens=tokens,
                carried=carried.encode(),
            )
            for number, originator, version, topic, subject, key_id, tokens, carried, state in (
                self.datastore.read(query, parameters)
            )
        ]

    def max_notification_id(self) -> int:
        found = self.datastore.read("SELECT max(notification_id) FROM stored_events")
        return found[0][0] or 0

    def subscribe(
        self, gt: int | None = None, topics: Sequence[str] = ()
    ) -> Subscription["SQLiteRecorder"]:
        return SQLiteSubscription(self, gt, topics)

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
