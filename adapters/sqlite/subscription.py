"""Follows the log on SQLite, which eventsourcing itself does not offer."""

import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from threading import Event, Thread, current_thread
from typing import TYPE_CHECKING

from eventsourcing.persistence import ListenNotifySubscription

from ...domain.errors import StorageError

if TYPE_CHECKING:
    from .recorder import SQLiteRecorder

POLL_SECONDS = 0.005


class SQLiteSubscription(ListenNotifySubscription["SQLiteRecorder"]):
    """Woken at once by this process's own appends, and within a poll by other processes'.

    SQLite has no notifications, but `PRAGMA data_version` says for nothing whether somebody else
    has committed.
    """

    def __init__(
        self, recorder: "SQLiteRecorder", gt: int | None = None, topics: Sequence[str] = ()
    ) -> None:
        # The base class begins to read at once, and may have to stop before this returns.
        self._ended = Event()
        self._watcher = Thread(target=self._watch_other_processes, daemon=True)
        super().__init__(recorder, gt, topics)
        recorder.subscriptions.append(self)
        self._watcher.start()

    def wake(self) -> None:
        self._has_been_notified.set()

    def stop(self) -> None:
        super().stop()
        with suppress(ValueError):
            self._recorder.subscriptions.remove(self)
        self._ended.set()
        if self._watcher.is_alive() and self._watcher is not current_thread():
            self._watcher.join()

    def _watch_other_processes(self) -> None:
        seen = None
        try:
            reader = self._recorder.datastore.reader
            while not self._ended.wait(POLL_SECONDS):
                version = reader.execute("PRAGMA data_version").fetchone()[0]
                if version != seen:
                    seen = version
                    self.wake()
        except (sqlite3.Error, StorageError) as error:
            # The store was closed, or its file is gone: whoever iterates has to hear of it.
            self._thread_error = self._thread_error or error
            self.stop()
