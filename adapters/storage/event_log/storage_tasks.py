"""Maintains the bodies and the records of a log, for both databases."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

from .log_names import LogDatastore, LogNames


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


RunStatement = Callable[[str, Sequence[Any]], int]
"""Runs a statement, in which `?` marks a parameter, and returns how many rows it changed."""
_SAVE_RECORD = (
    "INSERT INTO chores (name, record) VALUES (?, ?)"
    " ON CONFLICT (name) DO UPDATE SET record = excluded.record"
)
_REPLACE_BODY = "UPDATE bodies SET content = ? WHERE id = ? AND key_id IS NULL AND content = ?"


class Storage(ABC):
    """The log's own storage and its maintenance, which never changes an event."""

    task_name: ClassVar[str]
    """The task that this database needs: `checkpoint` or `statistics`."""
    BODY_SIZE: ClassVar[str]
    FIND_RECORDS: ClassVar[str]
    """Selects whether there is a table of records, which is made on demand."""

    def __init__(self, datastore: LogDatastore, names: LogNames) -> None:
        self.datastore: Any = datastore
        self.names = names

    @abstractmethod
    def try_lock(self) -> AbstractContextManager[bool]:
        """Try to lock the maintenance here; yield whether that succeeded."""

    @abstractmethod
    def run_database_task(self) -> DatabaseTaskResult: ...

    @abstractmethod
    def change_records(self) -> AbstractContextManager[RunStatement]:
        """RunStatement one short transaction, in which the table of records exists."""

    def has_records(self) -> bool:
        return bool(self.datastore.read(self.FIND_RECORDS)[0][0])

    def read_records(self) -> Mapping[str, str]:
        if not self.has_records():
            return {}
        return dict(self.datastore.read("SELECT name, record FROM chores"))

    def save_record(self, chore: str, record: str) -> None:
        self.replace_bodies((), chore, record)

    def select_body(self, subject: str, digest: bytes) -> StoredBody | None:
        """Return a subject's body; None if there is none, or if it is encrypted."""
        found = self.datastore.read(
            f"SELECT id, content, {self.BODY_SIZE} FROM bodies"  # noqa: S608 - our names
            " WHERE subject = ? AND hash = ? AND key_id IS NULL",
            (self.names.subject(subject)[0], digest),
        )
        return StoredBody(*found[0]) if found else None

    def replace_bodies(self, smaller: Sequence[RecompressedBody], chore: str, record: str) -> int:
        """Store the smaller bodies and the record in one short transaction; return the bytes saved.

        A body that has changed since it was read stays as it is.
        """
        saved = 0
        with self.change_records() as run:
            for body, content in smaller:
                count = run(_REPLACE_BODY, (content, body.id, body.content))
                saved += count * (body.size - len(content))
            run(_SAVE_RECORD, (chore, record))
        return saved
