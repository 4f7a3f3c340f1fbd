"""Lets concurrent appends share a commit and its wait for the disk."""

from collections import deque
from uuid import UUID

from .insertion import PendingWrite
from .sqlite_datastore import SQLiteLogDatastore


class GroupCommit:
    """The first thread to commit stores the writes of all waiting threads."""

    def __init__(self, datastore: SQLiteLogDatastore) -> None:
        self.datastore = datastore
        self.waiting: deque[PendingWrite] = deque()

    def store(self, write: PendingWrite) -> None:
        """Store the write, in this thread or another; raise its error if it is refused."""
        self.waiting.append(write)
        with self.datastore.writing:
            if not write.is_done:
                self._commit_waiting(write)
        if write.error is not None:
            raise write.error

    def _commit_waiting(self, own: PendingWrite) -> None:
        writes = []
        while self.waiting:
            writes.append(self.waiting.popleft())
        try:
            self._insert(writes)
        except Exception as error:  # noqa: BLE001 - raised again by the thread whose write it is
            if len(writes) == 1:
                writes[0].fail(error)
            else:
                self._insert_each(writes)
        except BaseException:
            # Only this thread was interrupted.
            others = [write for write in writes if write is not own]
            self.waiting.extend(write for write in others if not self._is_stored(write))
            raise
        for write in writes:
            write.is_done = True

    def _insert_each(self, writes: list[PendingWrite]) -> None:
        """Store the writes one by one, since at least one of them will be refused."""
        for write in writes:
            try:
                self._insert([write])
            except Exception as error:  # noqa: BLE001 - as above
                write.fail(error)

    def _insert(self, writes: list[PendingWrite]) -> None:
        """Store all of these in one transaction, or nothing."""
        if len(writes) == 1 and writes[0].is_one_row:
            self.datastore.check_file()
            writes[0].insert_alone(self.datastore.writer)
            return
        with self.datastore.writing_transaction() as writer:
            for write in writes:
                write.insert(writer)

    def _is_stored(self, write: PendingWrite) -> bool:
        """Return whether the commit succeeded just before the interrupt."""
        for row in write.rows[:1]:
            found = self._read_digest(row.originator_id, row.originator_version)
            write.is_done = found == row.digest
        return write.is_done

    def _read_digest(self, originator_id: UUID, version: int) -> bytes | None:
        found = self.datastore.writer.execute(
            "SELECT digest FROM stored_events WHERE originator_id = ? AND originator_version = ?",
            (originator_id.bytes, version),
        ).fetchone()
        return bytes(found[0]) if found else None
