"""Reads and follows a log; the SQLite and PostgreSQL recorders add what only they do."""

import json
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, cast
from uuid import UUID

from eventsourcing.persistence import (
    ApplicationRecorder,
    ListenNotifySubscription,
    OperationalError,
)

from ....domain.ranges import Run
from .log_names import LogDatastore, LogNames
from .log_tables import EVENTS_TABLE, TableRows, make_table_rows
from .storage_tasks import Storage
from .stored_row import AppendKey, Batch, ImportRow, LogNotification, StoredRow, Stream

_MAX_POSITION = 2**62
_POLL_SECONDS = 0.005
ROW_COLUMNS = ", ".join(EVENTS_TABLE.column_names[1:])
SELECT_HEAD = (
    "SELECT originator_version, carried, subject FROM stored_events"
    " WHERE originator_id = ? AND originator_version <= ?"
    " ORDER BY originator_version DESC LIMIT 1"
)
SELECT_LOG = (
    "SELECT notification_id, originator_id, originator_version, topic, subject, key_id, tokens,"
    " carried, state FROM stored_events WHERE notification_id > ? AND notification_id <= ?"
)


class Recorder(ApplicationRecorder):
    """One database's log. Its errors are eventsourcing's PersistenceErrors, or sqlite3's.

    Topics and subjects are stored as small numbers.
    """

    SELECT_RUNS: ClassVar[str]
    """Selects the rows of a stream in many ranges of positions."""

    def __init__(self, datastore: LogDatastore) -> None:
        self.datastore: Any = datastore
        self.names = LogNames(datastore)
        self.subscriptions: list[LogSubscription] = []

    def insert_events(  # type: ignore[override]  # a row has all that a StoredEvent has
        self,
        stored_events: Sequence[StoredRow],
        *,
        keys: Sequence[AppendKey] = (),
        streams: Sequence[Stream] = (),
        imports: Sequence[ImportRow] = (),
        **_: Any,
    ) -> Sequence[int]:
        """Store everything in one transaction, or nothing; return the notification ids.

        Raises IntegrityError if a position, a key or a stream's name is taken.
        """
        batch = Batch(list(stored_events), list(keys), list(streams), list(imports))
        ids = self.insert_rows(make_table_rows(batch, self.names, self.encode_id))
        self._wake_subscriptions()
        return ids

    def insert_all(self, batches: Iterable[Batch]) -> None:
        """Store all batches in one transaction, or nothing, with one batch in memory at a time.

        Topics and subjects must have been added before. Raises IntegrityError as `insert_events`
        does.
        """
        self.insert_all_rows(
            make_table_rows(batch, self.names, self.encode_id) for batch in batches
        )
        self._wake_subscriptions()

    @abstractmethod
    def insert_rows(self, rows: TableRows) -> Sequence[int]:
        """Store the rows in one transaction, and return the ids of events."""

    @abstractmethod
    def insert_all_rows(self, batches: Iterable[TableRows]) -> None:
        """Store the rows of all batches in one transaction."""

    def encode_id(self, id: UUID) -> Any:
        """Return a stream's id as the database stores it."""
        return id

    def decode_id(self, stored: Any) -> UUID:
        return cast(UUID, stored)

    @abstractmethod
    def encode_runs(self, runs: Sequence[Run]) -> tuple[Any, ...]:
        """Return the parameters of SELECT_RUNS that come before the stream's id."""

    @abstractmethod
    def max_notification_id(self) -> int:
        """Return the newest settled notification, 0 for an empty log."""

    @abstractmethod
    def read_change_marker(self) -> object:
        """Return a value that changes with each commit and is cheap to read.

        None means that there is something to read in any case.
        """

    def read_server_time(self) -> datetime | None:
        """Return the database server's time; None if its clock is this machine's."""
        return None

    @abstractmethod
    def get_storage(self) -> Storage | None:
        """Return the storage for maintenance; None for a log in memory."""

    def find_problems(self) -> list[str]:
        """Return the problems in the database's files that reading would not report."""
        return []

    @abstractmethod
    def backup(self, target: Path) -> None:
        """Copy the present log into a new SQLite file, while others go on writing."""

    def close(self) -> None:
        self.datastore.close()

    def reopen_in_child(self) -> None:
        """Forget the state of the parent's threads after a fork."""
        self.subscriptions.clear()

    def _wake_subscriptions(self) -> None:
        for subscription in tuple(self.subscriptions):
            subscription.wake()

    def select_events(  # type: ignore[override]  # a row has all that a StoredEvent has
        self,
        originator_id: UUID | str,
        *,
        gt: int | None = None,
        lte: int | None = None,
        desc: bool = False,
        limit: int | None = None,
    ) -> list[StoredRow]:
        id = cast(UUID, originator_id)
        query = f"SELECT {ROW_COLUMNS} FROM stored_events WHERE originator_id = ?"  # noqa: S608 - our names
        parameters = [self.encode_id(id)]
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
        return [self._make_row(id, values) for values in self.datastore.read(query, parameters)]

    def select_runs(self, originator_id: UUID, runs: Sequence[Run]) -> list[StoredRow]:
        """Return the events of a stream at these positions, in order: O(found)."""
        if len(runs) == 1:
            first, last = runs[0]
            return self.select_events(originator_id, gt=first - 1, lte=last)
        parameters = (*self.encode_runs(runs), self.encode_id(originator_id))
        found = self.datastore.read(self.SELECT_RUNS, parameters)
        return [self._make_row(originator_id, values) for values in found]

    def select_head(
        self, originator_id: UUID, at: int | None = None
    ) -> tuple[int, dict[str, Any], str] | None:
        """Return the newest version up to `at`, the state stored there, and the subject."""
        position = _MAX_POSITION if at is None else at
        found = self.datastore.read(SELECT_HEAD, (self.encode_id(originator_id), position))
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
        """Return the append of that key."""
        found = self.datastore.read(
            "SELECT first, last FROM append_keys WHERE originator_id = ? AND key = ?",
            (self.encode_id(originator_id), key),
        )
        return AppendKey(originator_id, key, *found[0]) if found else None

    def select_keys(self, originator_id: UUID, gt: str, limit: int) -> list[AppendKey]:
        """Return a stream's append keys after `gt`, in a stable order."""
        found = self.datastore.read(
            "SELECT key, first, last FROM append_keys WHERE originator_id = ? AND key > ?"
            " ORDER BY key LIMIT ?",
            (self.encode_id(originator_id), gt, limit),
        )
        return [AppendKey(originator_id, *values) for values in found]

    def select_names(self, originator_id: UUID, last: int) -> list[tuple[str, str]]:
        """Return the topics and subjects of a stream's events up to `last`."""
        found = self.datastore.read(
            "SELECT DISTINCT topic, subject FROM stored_events"
            " WHERE originator_id = ? AND originator_version <= ? ORDER BY topic, subject",
            (self.encode_id(originator_id), last),
        )
        return [
            (self.names.topic_name(topic), self.names.subject_name(subject))
            for topic, subject in found
        ]

    def select_streams(
        self, namespace: str | None = None, session: str | None = None
    ) -> list[Stream]:
        """Return the catalog of streams, sorted by name."""
        query = "SELECT originator_id, namespace, session, lineage FROM streams"
        parameters = []
        if namespace is not None:
            query += " WHERE namespace = ?"
            parameters.append(namespace)
            if session is not None:
                query += " AND session = ?"
                parameters.append(session)
        query += " ORDER BY namespace, session, lineage NULLS FIRST"
        return [
            Stream(self.decode_id(id), *names)
            for id, *names in self.datastore.read(query, parameters)
        ]

    def select_body(self, subject: str, digest: bytes) -> bytes:
        found = self.datastore.read(
            "SELECT content FROM bodies WHERE subject = ? AND hash = ?",
            (self.names.subject(subject)[0], digest),
        )
        if not found:
            raise OperationalError(f"body {digest.hex()} is missing from the database")
        return cast(bytes, found[0][0])

    def select_import(self, namespace: str, source: str) -> ImportRow | None:
        """Return the record of a transcript's last import."""
        found = self._select_imports("namespace = ? AND source = ?", namespace, source)
        return found[0] if found else None

    def select_import_session(self, namespace: str, source: str) -> str | None:
        """Return the session into which a source was imported."""
        found = self.select_import(namespace, source)
        return found.session if found else None

    def select_incomplete_import(self, namespace: str, session: str) -> str | None:
        """Return the source of a session whose import is incomplete."""
        sources = [
            one.source for one in self.select_imports(namespace, session) if not one.complete
        ]
        return sources[0] if sources else None

    def select_imports(self, namespace: str, session: str) -> list[ImportRow]:
        return self._select_imports("namespace = ? AND session = ?", namespace, session)

    def _select_imports(self, condition: str, *values: str) -> list[ImportRow]:
        query = "SELECT namespace, source, format, session, bytes, complete, stamp FROM imports"
        query += f" WHERE {condition} ORDER BY source"
        return [ImportRow(*found) for found in self.datastore.read(query, values)]

    def count_unnamed_streams(self) -> int:
        """Return how many streams have events but no entry in the catalog."""
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
    ) -> list[LogNotification]:
        """Return the log from `start` on; events that are missing will never appear."""
        after = (start or 0) - (1 if start and inclusive_of_start else 0)
        return self.read_log(after, _MAX_POSITION if stop is None else stop, limit, topics)

    def read_log(
        self, after: int, last: int, limit: int, topics: Sequence[str]
    ) -> list[LogNotification]:
        if after >= last:
            return []
        query = SELECT_LOG
        parameters = [after, last]
        if topics:
            query += f" AND topic IN ({', '.join('?' * len(topics))})"
            parameters += map(self.names.topic, topics)
        query += " ORDER BY notification_id LIMIT ?"
        parameters.append(limit)
        decode = cache(self.decode_id)  # most events of a page are of few streams
        return [
            LogNotification(
                id=number,
                originator_id=decode(originator),
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

    def subscribe(self, gt: int | None = None, topics: Sequence[str] = ()) -> "LogSubscription":
        """Follow the log from `gt` on, across threads and processes."""
        return LogSubscription(self, gt, topics)

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


class LogSubscription(ListenNotifySubscription[Any]):
    """Wakes immediately for this process's own appends, and within one poll for others'."""

    def __init__(self, recorder: Any, gt: int | None = None, topics: Sequence[str] = ()) -> None:
        super().__init__(recorder, gt, topics)
        recorder.subscriptions.append(self)

    def wake(self) -> None:
        self._has_been_notified.set()

    def stop(self) -> None:
        super().stop()
        with suppress(ValueError):
            self._recorder.subscriptions.remove(self)

    def _loop_on_pull(self) -> None:
        seen = None
        try:
            while not self._has_been_stopped:
                self._pull()
                while not self._has_been_notified.wait(_POLL_SECONDS):
                    found = self._recorder.read_change_marker()
                    if found is None or found != seen:
                        seen = found
                        break
        except BaseException as error:  # noqa: BLE001 - the iterating thread raises it
            self._thread_error = error
            self.stop()
