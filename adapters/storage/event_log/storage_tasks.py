"""Defines what maintenance needs of a database; SQLite and PostgreSQL implement it."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import NamedTuple, Protocol


@dataclass(frozen=True, slots=True)
class StoredBody:
    id: int
    content: bytes
    size: int
    """Its bytes in the database; PostgreSQL may have compressed it."""


class RecompressedBody(NamedTuple):
    """A body, and the same content in fewer bytes."""

    body: StoredBody
    content: bytes


class DatabaseTaskResult(NamedTuple):
    """The result of a database task: bytes freed on disk, and a remark."""

    saved: int = 0
    note: str | None = None


class TaskStore(Protocol):
    """Stores the records of maintenance tasks, and a lock for running them."""

    def try_lock(self) -> AbstractContextManager[bool]:
        """Try to lock the maintenance here; yield whether that succeeded.

        The lock ends with its process.
        """
        ...

    def read_records(self) -> Mapping[str, str]:
        """Return the newest record of each task, by name."""
        ...

    def save_record(self, chore: str, record: str) -> None: ...


class Storage(TaskStore, Protocol):
    """The log's own storage and its maintenance, which never changes an event."""

    task_name: str
    """The task that this database needs: `checkpoint` or `statistics`."""

    def run_database_task(self) -> DatabaseTaskResult: ...

    def select_body(self, subject: str, digest: bytes) -> StoredBody | None:
        """Return a subject's body; None if there is none, or if it is encrypted."""
        ...

    def replace_bodies(self, smaller: Sequence[RecompressedBody], chore: str, record: str) -> int:
        """Store the smaller bodies and the record in one short transaction; return the bytes saved.

        A body that has changed since it was read stays as it is.
        """
        ...
