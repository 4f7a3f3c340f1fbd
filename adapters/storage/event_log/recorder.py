"""Defines what the store needs of a database; the SQLite and PostgreSQL recorders implement it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from uuid import UUID

from eventsourcing.persistence import Notification, Subscription

from ....domain.ranges import Run
from .storage_tasks import Storage
from .stored_row import StoredRow


@dataclass(frozen=True, slots=True)
class AppendKey:
    """The key that a caller gave one append; a repeated key returns the first result."""

    originator_id: UUID
    key: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Stream:
    """An entry in the catalog of streams; `lineage` is None for a session's own stream."""

    originator_id: UUID
    namespace: str
    session: str
    lineage: str | None


class ImportRow(NamedTuple):
    namespace: str
    source: str
    format: str
    session: str | None
    """The first of its sessions."""
    bytes: int
    complete: bool
    stamp: str | None = None
    """The file's stamp, to detect changes; None forces the file to be read again."""


@dataclass(frozen=True, slots=True)
class Batch:
    """A part of what `insert_all` stores."""

    rows: list[StoredRow] = field(default_factory=list)
    keys: list[AppendKey] = field(default_factory=list)
    streams: list[Stream] = field(default_factory=list)
    imports: list[ImportRow] = field(default_factory=list)


@dataclass(frozen=True)
class LogNotification(Notification):
    """One event in log order, with cutbank's own columns.

    The mapper can read it like a StoredRow.
    """

    subject: str
    key_id: str | None
    tokens: int
    carried: bytes


class Recorder(Protocol):
    """One database's log. Its errors are eventsourcing's PersistenceErrors, or sqlite3's."""

    def insert_events(
        self,
        stored_events: Sequence[StoredRow],
        *,
        keys: Sequence[AppendKey] = (),
        streams: Sequence[Stream] = (),
        imports: Sequence[ImportRow] = (),
    ) -> Sequence[int]:
        """Store everything in one transaction, or nothing; return the notification ids.

        Raises IntegrityError if a position, a key or a stream's name is taken.
        """
        ...

    def insert_all(self, batches: Iterable[Batch]) -> None:
        """Store all batches in one transaction, or nothing, with one batch in memory at a time.

        Topics and subjects must have been added before. Raises IntegrityError as `insert_events`
        does.
        """
        ...

    def select_events(
        self,
        originator_id: UUID,
        *,
        gt: int | None = None,
        lte: int | None = None,
        desc: bool = False,
        limit: int | None = None,
    ) -> Sequence[StoredRow]: ...

    def select_runs(self, originator_id: UUID, runs: Sequence[Run]) -> Sequence[StoredRow]:
        """Return the events of a stream at these positions, in order: O(found)."""
        ...

    def select_head(
        self, originator_id: UUID, at: int | None = None
    ) -> tuple[int, dict[str, Any], str] | None:
        """Return the newest version up to `at`, the state stored there, and the subject."""
        ...

    def select_key(self, originator_id: UUID, key: str) -> AppendKey | None:
        """Return the append of that key."""
        ...

    def select_keys(self, originator_id: UUID, gt: str, limit: int) -> list[AppendKey]:
        """Return a stream's append keys after `gt`, in a stable order."""
        ...

    def select_streams(
        self, namespace: str | None = None, session: str | None = None
    ) -> list[Stream]:
        """Return the catalog of streams, sorted by name."""
        ...

    def select_body(self, subject: str, digest: bytes) -> bytes: ...

    def select_import(self, namespace: str, source: str) -> ImportRow | None:
        """Return the record of a transcript's last import."""
        ...

    def select_incomplete_import(self, namespace: str, session: str) -> str | None:
        """Return the source of a session whose import is incomplete."""
        ...

    def select_imports(self, namespace: str, session: str) -> list[ImportRow]: ...

    def select_import_session(self, namespace: str, source: str) -> str | None:
        """Return the session into which a source was imported."""
        ...

    def select_notifications(
        self,
        start: int | None,
        limit: int,
        stop: int | None = None,
        topics: Sequence[str] = (),
        *,
        inclusive_of_start: bool = True,
    ) -> Sequence[LogNotification]:
        """Return the log from `start` on; events that are missing will never appear."""
        ...

    def max_notification_id(self) -> int:
        """Return the newest notification, 0 for an empty log."""
        ...

    def subscribe(self, gt: int | None = None, topics: Sequence[str] = ()) -> Subscription[Any]:
        """Follow the log from `gt` on, across threads and processes."""
        ...

    def subject(self, name: str) -> tuple[int, bytes]:
        """Return a subject's number and secret, adding the subject if it is new."""
        ...

    def secret_of(self, subject: str) -> bytes | None:
        """Return a subject's secret; None if there is no such subject."""
        ...

    def adopt_subject(self, name: str, secret: bytes) -> bytes:
        """Add a subject with a given secret; return the secret that the subject has."""
        ...

    def name_topic(self, topic: str) -> None: ...

    def read_server_time(self) -> datetime | None:
        """Return the database server's time; None if its clock is this machine's."""
        ...

    def get_storage(self) -> Storage | None:
        """Return the storage for maintenance; None for a log in memory."""
        ...

    def find_problems(self) -> list[str]:
        """Return the problems that the database finds in its files."""
        ...

    def count_unnamed_streams(self) -> int:
        """Return how many streams have events but no entry in the catalog."""
        ...

    def reopen_in_child(self) -> None:
        """Forget the state of the parent's threads after a fork."""
        ...

    def backup(self, target: Path) -> None:
        """Copy the present log into a new SQLite file, while others go on writing."""
        ...
