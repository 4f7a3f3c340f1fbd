"""What keeps a log's storage in order asks of its database: SQLite's and PostgreSQL's are this."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import NamedTuple, Protocol


@dataclass(frozen=True, slots=True)
class StoredBody:
    """A body as it lies there."""

    id: int
    content: bytes
    size: int
    """Bytes that it takes there; PostgreSQL may have packed it in its own way."""


class RecompressedBody(NamedTuple):
    """A body, and the same content in fewer bytes."""

    body: StoredBody
    content: bytes


class DatabaseTaskResult(NamedTuple):
    """What became of a routine: bytes that the disk has back, and what is worth a word."""

    saved: int = 0
    note: str | None = None


class TaskStore(Protocol):
    """Where it is written down when each chore was done, and who may do chores there."""

    def try_lock(self) -> AbstractContextManager[bool]:
        """Whether nobody else does chores here, and nobody will while this is held.

        Whoever is killed holds it no longer.
        """
        ...

    def read_records(self) -> Mapping[str, str]:
        """What was written down last of each chore, by its name."""
        ...

    def save_record(self, chore: str, record: str) -> None:
        """Write down what is known of a chore now."""
        ...


class Storage(TaskStore, Protocol):
    """The log's own place, and what may be done to its storage: nothing that changes an event."""

    task_name: str
    """What this database wants done now and then: `checkpoint` or `statistics`."""

    def run_database_task(self) -> DatabaseTaskResult: ...

    def select_body(self, subject: str, digest: bytes) -> StoredBody | None:
        """A subject's body; None where there is none, or where it is in cipher."""
        ...

    def replace_bodies(self, smaller: Sequence[RecompressedBody], chore: str, record: str) -> int:
        """Store what is smaller, and the record, in one short transaction.

        A body that is not any more what was read stays as it is. Returns the bytes saved.
        """
        ...
