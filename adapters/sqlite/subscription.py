"""Follows the log on SQLite, which eventsourcing itself does not offer."""

from collections.abc import Sequence
from threading import Event, Thread
from typing import TYPE_CHECKING

from eventsourcing.persistence import ListenNotifySubscription

if TYPE_CHECKING:
    from .recorder import Recorder

POLL_SECONDS = 0.005


class SQLiteSubscription(ListenNotifySubscription["Recorder"]):
    """Woken at once by this process's own appends, and within a poll by other processes'.

    SQLite has no notifications, but `PRAGMA data_version` says for nothing whether somebody else
    has committed.
    """

    def __init__(
        self, recorder: "Recorder", gt: int | None = None, topics: Sequence[str] = ()
    ) -> None:
        super().__init__(recorder, gt, topics)
        self._ended = Event()
        recorder.subscriptions.append(self)
        self._watcher = Thread(target=self._watch_other_processes, daemon=True)
        self._watcher.start()

    def wake(self) -> None:
        self._has_been_notified.set()

    def stop(self) -> None:
        super().stop()
        if self in self._recorder.subscriptions:
            self._recorder.subscriptions.remove(self)
        self._ended.set()

    def _watch_other_processes(self) -> None:
        reader = self._recorder.datastore.reader
        seen = None
        while not self._ended.wait(POLL_SECONDS):
            version = reader.execute("PRAGMA data_version").fetchone()[0]
            if version != seen:
                seen = version
                self.wake()
