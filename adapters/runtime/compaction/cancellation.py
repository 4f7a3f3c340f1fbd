"""Stops what waits for others, from any thread."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Lock

from ....domain.errors import CompactionCancelledError


class Cancellation:
    """Told once that the work is not wanted any more; whoever does it asks, or is stopped."""

    def __init__(self) -> None:
        self._told = Event()
        self._changing = Lock()
        self._stops: list[Callable[[], None]] = []

    @property
    def is_requested(self) -> bool:
        return self._told.is_set()

    def request(self) -> None:
        """Stop the work, now or as soon as it begins."""
        with self._changing:
            self._told.set()
            stops = list(self._stops)
        for stop in stops:
            stop()

    def check(self) -> None:
        """Raises CompactionCancelledError once it was asked for."""
        if self.is_requested:
            raise CompactionCancelledError(
                "the compaction was cancelled: the view is as it was before it"
            )

    def pause(self, seconds: float) -> None:
        """Wait; raises at once when the work is cancelled meanwhile."""
        self._told.wait(seconds)
        self.check()

    @contextmanager
    def call_on_cancel(self, stop: Callable[[], None]) -> Iterator[None]:
        """Within it, `stop` is called when the work is cancelled; at once if it was before."""
        with self._changing:
            self._stops.append(stop)
            is_late = self.is_requested
        if is_late:
            stop()
        try:
            yield
        finally:
            with self._changing:
                self._stops.remove(stop)
