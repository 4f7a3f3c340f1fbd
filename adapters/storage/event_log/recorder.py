"""What the store asks of a database: the recorders of SQLite and PostgreSQL are both this."""

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
    """What a caller named one append: a repeated key gets the first result."""

    originator_id: UUID
    key: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream's entry in the catalog of streams; `lineage` is None for a session's own."""

    originator_id: UUID
    namespace: str
    session: str
    lineage: str | None


class ImportRow(NamedTuple):
    """How far a transcript was read, and what it was like then."""

    namespace: str
    source: str
    format: str
    session: str | None
    """The first of its sessions."""
    bytes: int
    complete: bool
    stamp: str | None = None
    """Tells whether it has changed; None where it has to be read again all the same."""


@dataclass(frozen=True, slots=True)
class Batch:
    """A part of what `insert_all` stores."""

    rows: list[StoredRow] = field(default_factory=list)
    keys: list[AppendKey] = field(default_factory=list)
    streams: list[Stream] = field(default_factory=list)
    imports: list[ImportRow] = field(default_factory=list)


@dataclass(frozen=True)
class LogNotification(Notification):
    """One event of the log in the order of the log, with what cutbank keeps beside it.

    The mapper reads it as it reads a StoredRow: it says whose secret its hashes are keyed with.
    """

    subject: str
    key_id: str | None
    tokens: int
    carried: bytes


class Recorder(Protocol):
    """One database's log. Failures are eventsourcing's PersistenceErrors, or sqlite3's own."""

    def insert_events(
        self,
        stored_events: Sequence[StoredRow],
        *,
        keys: Sequence[AppendKey] = (),
        streams: Sequence[Stream] = (),
        imports: Sequence[ImportRow] = (),
    ) -> Sequence[int]:
        """Store all of it in one transaction, or nothing; returns the notification ids.

        Raises IntegrityError where a position, a key or a stream's name is taken.
        """
        ...

    def insert_all(self, batches: Iterable[Batch]) -> None:
        """Store all batches in one transaction, or nothing; one of them is in memory at a time.

        Topics and subjects are named before. Raises IntegrityError as `insert_events` does.
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
        """The events of a stream at these positions, in order: O(found), however scattered."""
        ...

    def select_head(
        self, originator_id: UUID, at: int | None = None
    ) -> tuple[int, dict[str, Any], str] | None:
        """The newest version up to `at`, the state carried there, and the subject."""
        ...

    def select_key(self, originator_id: UUID, key: str) -> AppendKey | None:
        """What the append of that name was."""
        ...

    def select_keys(self, originator_id: UUID, gt: str, limit: int) -> list[AppendKey]:
        """The names of a stream's appends that come after `gt`, in some order that stays."""
        ...

    def select_streams(
        self, namespace: str | None = None, session: str | None = None
    ) -> list[Stream]:
        """The catalog of streams, by name."""
        ...

    def select_body(self, subject: str, digest: bytes) -> bytes:
        """A subject's stored body."""
        ...

    def select_import(self, namespace: str, source: str) -> ImportRow | None:
        """What was written down when the transcript was imported last."""
        ...

    def select_incomplete_import(self, namespace: str, session: str) -> str | None:
        """The source of a session whose import did not reach the source's end."""
        ...

    def select_imports(self, namespace: str, session: str) -> list[ImportRow]:
        """What was imported into a session, and how far, as `insert_events` takes it."""
        ...

    def select_import_session(self, namespace: str, source: str) -> str | None:
        """The session that a source was imported into."""
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
        """The log from `start` on, without gaps: what is missing will never appear."""
        ...

    def max_notification_id(self) -> int:
        """The newest notification; 0 in an empty log."""
        ...

    def subscribe(self, gt: int | None = None, topics: Sequence[str] = ()) -> Subscription[Any]:
        """Follow the log from `gt` on; works across threads and processes."""
        ...

    def subject(self, name: str) -> tuple[int, bytes]:
        """A subject's number and the secret of its hashes; made when first asked for."""
        ...

    def secret_of(self, subject: str) -> bytes | None:
        """The secret of a subject's hashes; None where the subject is not there."""
        ...

    def adopt_subject(self, name: str, secret: bytes) -> bytes:
        """Name a subject with a secret from elsewhere; the one it has, where it was there."""
        ...

    def name_topic(self, topic: str) -> None:
        """Give a topic its number before rows of it are inserted with others."""
        ...

    def read_server_time(self) -> datetime | None:
        """What the database's own clock says; None where it is this machine's."""
        ...

    def get_storage(self) -> Storage | None:
        """What may be done to keep the storage in order; None where there is nothing to keep."""
        ...

    def find_problems(self) -> list[str]:
        """What the database itself finds wrong with its files."""
        ...

    def count_unnamed_streams(self) -> int:
        """How many streams have events and no entry in the catalog."""
        ...

    def reopen_in_child(self) -> None:
        """Forget what the threads of the process were at that this one was forked from."""
        ...

    def backup(self, target: Path) -> None:
        """Copy all of it, as it is now, into a new SQLite file, while others go on writing."""
        ...
