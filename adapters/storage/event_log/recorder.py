"""Writes and follows a log; the recorder of each database adds what only it does."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from eventsourcing.persistence import ListenNotifySubscription

from .log_names import LogDatastore, make_table_rows
from .log_reader import LogReader
from .log_tables import (
    AppendKey,
    Batch,
    ImportRow,
    RecordRow,
    Segment,
    StoredRow,
    Stream,
    TableRows,
)

_POLL_SECONDS = 0.005


class LogTransaction(Protocol):
    """The statements of one transaction; in these, `?` marks a parameter."""

    def insert(self, rows: TableRows) -> None: ...

    def execute(self, query: str, *parameters: Any) -> list[tuple[Any, ...]]: ...

    def execute_many(self, query: str, rows: Sequence[tuple[Any, ...]]) -> None: ...

    def lock_contents(self) -> None:
        """Keep others from storing bodies and segments until the transaction ends."""
        ...


class Recorder(LogReader):
    """One database's log. Its errors are eventsourcing's PersistenceErrors, or sqlite3's."""

    is_in_memory = False
    """Whether no other process can open the log."""

    def __init__(self, datastore: LogDatastore) -> None:
        super().__init__(datastore)
        self.subscriptions: list[LogSubscription] = []

    def insert_events(  # type: ignore[override]  # a row has all that a StoredEvent has
        self,
        stored_events: Sequence[StoredRow],
        *,
        keys: Sequence[AppendKey] = (),
        streams: Sequence[Stream] = (),
        imports: Sequence[ImportRow] = (),
        segments: Sequence[Segment] = (),
        records: Sequence[RecordRow] = (),
        **_: Any,
    ) -> Sequence[int]:
        """Store everything in one transaction, or nothing; return the notification ids.

        Raises IntegrityError if a position, a key or a stream's name is taken.
        """
        batch = Batch(
            list(stored_events),
            list(keys),
            list(streams),
            list(imports),
            list(segments),
            list(records),
        )
        ids = self.insert_rows(make_table_rows(batch, self.names, self.encode_id))
        self.wake_subscriptions()
        return ids

    def insert_all(self, batches: Iterable[Batch]) -> None:
        """Store all batches in one transaction, or nothing, with one batch in memory at a time.

        Topics and subjects must have been added before. Raises IntegrityError as `insert_events`
        does.
        """
        self.insert_all_rows(
            make_table_rows(batch, self.names, self.encode_id) for batch in batches
        )
        self.wake_subscriptions()

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Run all that this thread writes and reads in one transaction, or nothing."""
        with self.datastore.batch():
            yield
        self.wake_subscriptions()

    @abstractmethod
    def insert_rows(self, rows: TableRows) -> Sequence[int]:
        """Store the rows in one transaction, and return the ids of events."""

    @abstractmethod
    def insert_all_rows(self, batches: Iterable[TableRows]) -> None:
        """Store the rows of all batches in one transaction."""

    @abstractmethod
    def transaction(self) -> AbstractContextManager["LogTransaction"]:
        """Run statements that are stored together, or not at all, while no one else writes to them.

        Raises IntegrityError as `insert_events` does.
        """

    @abstractmethod
    def purge(self, *, rewrite: bool) -> None:
        """Remove what was erased from free pages too, so that no file holds its bytes.

        `rewrite` allows to write the database again, for which all others wait. Raises StorageError
        if others prevent it.
        """

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

    def subscribe(self, gt: int | None = None, topics: Sequence[str] = ()) -> "LogSubscription":
        """Follow the log from `gt` on, across threads and processes."""
        return LogSubscription(self, gt, topics)

    def wake_subscriptions(self) -> None:
        for subscription in tuple(self.subscriptions):
            subscription.wake()


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
