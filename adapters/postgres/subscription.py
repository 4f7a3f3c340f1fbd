"""Follows the log on PostgreSQL."""

from collections.abc import Sequence
from contextlib import suppress
from threading import Event, Thread, current_thread
from typing import TYPE_CHECKING

from eventsourcing.persistence import ListenNotifySubscription, PersistenceError

if TYPE_CHECKING:
    from .recorder import PostgresRecorder

POLL_SECONDS = 0.005
SNAPSHOT = "SELECT pg_current_snapshot()::text"


class Subscription(ListenNotifySubscription["PostgresRecorder"]):
    """Woken at once by this process's own appends, and within a poll by other processes'.

    `NOTIFY` would serialise all appends: its transactions take a lock of the whole database to
    commit. What a snapshot says, in contrast, costs no more than the round trip; as long as it
    does not change, no transaction has committed anything.
    """

    def __init__(
        self, recorder: "PostgresRecorder", gt: int | None = None, topics: Sequence[str] = ()
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
            while not self._ended.wait(POLL_SECONDS):
                snapshot = self._recorder.datastore.read(SNAPSHOT)
                # A transaction leaves the snapshot a moment before it lets go of its locks.
                if snapshot != seen or self._recorder.tail.is_waiting:
                    seen = snapshot
                    self.wake()
        except PersistenceError as error:
            # The store was closed, or its server is gone: whoever iterates has to hear of it.
            self._thread_error = self._thread_error or error
            self.stop()
