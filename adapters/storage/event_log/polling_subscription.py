"""Follows a log without notifications, by polling for commits."""

from collections.abc import Sequence
from contextlib import suppress
from threading import Event, Thread, current_thread
from typing import Any

from eventsourcing.persistence import ListenNotifySubscription

_POLL_SECONDS = 0.005


class PollingSubscription(ListenNotifySubscription[Any]):
    """Wakes immediately for this process's own appends, and within one poll for others'."""

    failures: tuple[type[Exception], ...]
    """The errors of a poll after the store was closed, or its database is gone."""

    def __init__(self, recorder: Any, gt: int | None = None, topics: Sequence[str] = ()) -> None:
        # The base class starts reading immediately, and may have to stop before this returns.
        self._ended = Event()
        self._watcher = Thread(target=self._watch_other_processes, daemon=True)
        super().__init__(recorder, gt, topics)
        recorder.subscriptions.append(self)
        self._watcher.start()

    def read_marker(self) -> object:
        """Return a value that changes with each commit and is cheap to read.

        None means that there is something to read in any case.
        """
        raise NotImplementedError

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
            while not self._ended.wait(_POLL_SECONDS):
                found = self.read_marker()
                if found is None or found != seen:
                    seen = found
                    self.wake()
        except self.failures as error:
            # The iterating thread raises it.
            self._thread_error = self._thread_error or error
            self.stop()
