"""Reads a log: events, streams, keys, bodies and imports, by the same queries on both databases."""

import json
from collections.abc import Sequence
from functools import cache
from typing import Any, cast
from uuid import UUID

from eventsourcing.persistence import ApplicationRecorder, OperationalError

from ....domain.ranges import Run
from .log_names import LogDatastore, LogNames
from .log_tables import (
    DELETED,
    EVENTS,
    IMPORTS,
    STREAMS,
    TABLES,
    AppendKey,
    DeletedStream,
    ImportRow,
    StoredRow,
    Stream,
)

_MAX_POSITION = 2**62
ROW_COLUMNS = ", ".join(list(TABLES[EVENTS].columns)[1:])
SELECT_HEAD = (
    "SELECT originator_version, carried, subject FROM stored_events"
    " WHERE originator_id = ? AND originator_version <= ?"
    " ORDER BY originator_version DESC LIMIT 1"
)
SELECT_LOG = (
    f"SELECT notification_id, originator_id, {ROW_COLUMNS} FROM stored_events"  # noqa: S608 - our names
    " WHERE notification_id > ? AND notification_id <= ?"
)
SELECT_RUNS = (
    f"SELECT {ROW_COLUMNS} FROM json_each(?) AS run CROSS JOIN stored_events"  # noqa: S608 - our names
    " WHERE originator_id = ? AND originator_version"
    " BETWEEN CAST(run.key AS bigint) AND CAST(CAST(run.value AS text) AS bigint)"
    " ORDER BY originator_version"
)
SELECT_NAMES = (
    "WITH RECURSIVE found (name) AS (SELECT (SELECT min(name) FROM records"
    " WHERE originator_id = ? AND name >= ? AND name < ?)"
    " UNION ALL SELECT (SELECT min(records.name) FROM records"
    " WHERE originator_id = ? AND records.name > found.name AND records.name < ?)"
    " FROM found WHERE found.name IS NOT NULL)"
    " SELECT name, (SELECT max(position) FROM records"
    " WHERE originator_id = ? AND records.name = found.name AND position <= ?)"
    " FROM found WHERE name IS NOT NULL LIMIT ?"
)
"""Goes from name to name, past all positions of each but the newest."""
SELECT_NAMES_DESCENDING = (
    SELECT_NAMES.replace("min(name)", "max(name)")
    .replace("min(records.name)", "max(records.name)")
    .replace("records.name < ?", "records.name >= ?")
    .replace("> found.name", "< found.name")
)
_SELECT_GENERATION = (
    "SELECT coalesce(max(number), 0) FROM ("
    "SELECT generation AS number FROM streams"
    " WHERE namespace = ? AND session = ? AND lineage IS NULL"
    " UNION ALL SELECT generation + 1 FROM deleted_streams"
    " WHERE namespace = ? AND session = ? AND lineage IS NULL) AS generations"
)


def _read_flag(stored: Any) -> bool | None:
    """Return a flag that may be missing; SQLite stores it as a number."""
    return None if stored is None else bool(stored)


class LogReader(ApplicationRecorder):
    """The queries of one database's log. Topics and subjects are stored as small numbers."""

    def __init__(self, datastore: LogDatastore) -> None:
        self.datastore: Any = datastore
        self.names = LogNames(datastore)

    def encode_id(self, id: UUID) -> Any:
        """Return a stream's id as the database stores it."""
        return id

    def decode_id(self, stored: Any) -> UUID:
        return cast(UUID, stored)

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
        parameters = (json.dumps(dict(runs)), self.encode_id(originator_id))
        found = self.datastore.read(SELECT_RUNS, parameters)
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

    def select_record_positions(
        self, originator_id: UUID, name: str, before: int, limit: int
    ) -> list[int]:
        """Return where a value was put under a name, or removed, newest first."""
        query = (
            "SELECT position FROM records WHERE originator_id = ? AND name = ? AND position < ?"
            " ORDER BY position DESC LIMIT ?"
        )
        parameters = (self.encode_id(originator_id), name, before, limit)
        return [position for (position,) in self.datastore.read(query, parameters)]

    def select_record_names(
        self,
        originator_id: UUID,
        first: str,
        end: str,
        limit: int,
        *,
        last: int | None = None,
        descending: bool,
    ) -> list[tuple[str, int | None]]:
        """Return the names from `first` on and before `end`, each by one look-up.

        Each with its newest position up to `last`; None if all are behind that.
        """
        query = SELECT_NAMES_DESCENDING if descending else SELECT_NAMES
        id = self.encode_id(originator_id)
        bound, last = first if descending else end, _MAX_POSITION if last is None else last
        bounds = (id, first, end, id, bound, id, last, limit)
        return [(name, position) for name, position in self.datastore.read(query, bounds)]

    def select_records(self, originator_id: UUID) -> set[tuple[str, int]]:
        """Return the name and position of each record of a stream."""
        query = "SELECT name, position FROM records WHERE originator_id = ?"
        return set(self.datastore.read(query, (self.encode_id(originator_id),)))

    def find_last_keyed(self, originator_id: UUID) -> int:
        """Return the last position that was appended with a key, 0 if none was."""
        query = "SELECT coalesce(max(last), 0) FROM append_keys WHERE originator_id = ?"
        return int(self.datastore.read(query, (self.encode_id(originator_id),))[0][0])

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
        query = f"SELECT {', '.join(TABLES[STREAMS].columns)} FROM streams"  # noqa: S608 - our names
        parameters = []
        if namespace is not None:
            query += " WHERE namespace = ?"
            parameters.append(namespace)
            if session is not None:
                query += " AND session = ?"
                parameters.append(session)
        query += " ORDER BY namespace, session, lineage NULLS FIRST"
        return [
            Stream(self.decode_id(id), *rest)._replace(parent=parent and self.decode_id(parent))
            for id, *rest, parent in self.datastore.read(query, parameters)
        ]

    def select_deleted(
        self, namespace: str | None = None, session: str | None = None
    ) -> list[DeletedStream]:
        """Return the streams of all deleted sessions, or of those that had a name."""
        query = f"SELECT {', '.join(TABLES[DELETED].columns)} FROM deleted_streams"  # noqa: S608 - our names
        parameters = []
        if namespace is not None and session is not None:
            query += " WHERE namespace = ? AND session = ?"
            parameters += [namespace, session]
        query += " ORDER BY namespace, session, generation, lineage NULLS FIRST"
        return [
            DeletedStream(self.decode_id(id), *rest)._replace(erased=_read_flag(erased))
            for id, *rest, erased in self.datastore.read(query, parameters)
        ]

    def is_deleted(self, originator_id: UUID) -> bool:
        query = "SELECT 1 FROM deleted_streams WHERE originator_id = ?"
        return bool(self.datastore.read(query, (self.encode_id(originator_id),)))

    def has_unfinished_erasure(self) -> bool:
        return bool(self.datastore.read("SELECT 1 FROM deleted_streams WHERE NOT erased LIMIT 1"))

    def select_generation(self, namespace: str, session: str) -> int:
        """Return the generation of the session of that name, or that of the next one."""
        name = (namespace, session)
        found = self.datastore.read(_SELECT_GENERATION, name * 2)
        return int(found[0][0])

    def select_sessions(
        self,
        namespace: str | None = None,
        prefix: str = "",
        after: tuple[str, str] = ("", ""),
        limit: int | None = None,
    ) -> list[tuple[str, str]]:
        """Return the names of sessions whose keys begin with `prefix`, sorted.

        Only those that come after a name, and at most `limit` of them.
        """
        query = (
            "SELECT namespace, session FROM streams WHERE lineage IS NULL"
            " AND substr(session, 1, ?) = ? AND (namespace, session) > (?, ?)"
        )
        parameters: list[Any] = [len(prefix), prefix, *after]
        if namespace is not None:
            query += " AND namespace = ?"
            parameters.append(namespace)
        query += " ORDER BY namespace, session LIMIT ?"
        parameters.append(_MAX_POSITION if limit is None else limit)
        return [(name, key) for name, key in self.datastore.read(query, parameters)]

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

    def select_incomplete_import(self, namespace: str, session: str) -> str | None:
        """Return the source of a session whose import is incomplete."""
        found = self.select_imports(namespace, session)
        return next((one.source for one in found if not one.complete), None)

    def select_imports(
        self, namespace: str | None = None, session: str | None = None
    ) -> list[ImportRow]:
        """Return the imports of a namespace and of a session, if they are named, by their paths."""
        wanted = {"namespace = ?": namespace, "session = ?": session}
        given = {condition: value for condition, value in wanted.items() if value is not None}
        return self._select_imports(" AND ".join(given) or "1 = 1", *given.values())

    def select_segment(self, digest: bytes) -> bytes:
        """Return a segment of a kept source, compressed."""
        found = self.datastore.read(
            "SELECT content FROM source_segments WHERE digest = ?", (digest,)
        )
        if not found:
            raise OperationalError(f"segment {digest.hex()} is missing from the database")
        return cast(bytes, found[0][0])

    def _select_imports(self, condition: str, *values: str) -> list[ImportRow]:
        query = f"SELECT {', '.join(TABLES[IMPORTS].columns)} FROM imports"  # noqa: S608 - our names
        query += f" WHERE {condition} ORDER BY source"
        return [ImportRow(*found) for found in self.datastore.read(query, values)]

    def count_unnamed_streams(self) -> int:
        """Return how many streams have events but no entry in the catalog."""
        found = self.datastore.read(
            "SELECT count(*) FROM (SELECT DISTINCT originator_id FROM stored_events"
            " EXCEPT SELECT originator_id FROM streams"
            " EXCEPT SELECT originator_id FROM deleted_streams) AS unnamed"
        )
        return int(found[0][0])

    def select_notifications(  # type: ignore[override]  # a row has all that a Notification has
        self,
        start: int | None,
        limit: int,
        stop: int | None = None,
        topics: Sequence[str] = (),
        *,
        inclusive_of_start: bool = True,
    ) -> list[StoredRow]:
        """Return the log from `start` on; events that are missing will never appear."""
        after = (start or 0) - (1 if start and inclusive_of_start else 0)
        return self.read_log(after, _MAX_POSITION if stop is None else stop, limit, topics)

    def read_log(self, after: int, last: int, limit: int, topics: Sequence[str]) -> list[StoredRow]:
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
            self._make_row(decode(originator), values, number)
            for number, originator, *values in self.datastore.read(query, parameters)
        ]

    def _make_row(self, originator_id: UUID, values: Sequence[Any], id: int = 0) -> StoredRow:
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
            (),
            id,
        )
