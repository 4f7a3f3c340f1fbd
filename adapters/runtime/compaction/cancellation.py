"""Cancels work from any thread."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Lock

from ....domain.errors import CompactionCancelledError


class Cancellation:
    """A request to stop some work; the worker checks it, or registers a callback that stops it."""

    def __init__(self) -> None:
        self._told = Event()
        self._changing = Lock()
        self._stops: list[Callable[[], None]] = []

    @property
    def is_requested(self) -> bool:
        return self._told.is_set()

    def request(self) -> None:
        with self._changing:
            self._told.set()
            stops = list(self._stops)
        for stop in stops:
            stop()

    def check(self) -> None:
        """Raise CompactionCancelledError if cancellation was requested."""
        if self.is_requested:
            raise CompactionCancelledError(
                "the compaction was cancelled: the view is as it was before it"
            )

    def pause(self, seconds: float) -> None:
        """Wait; raise CompactionCancelledError as soon as the work is cancelled."""
        self._told.wait(seconds)
        self.check()

    @contextmanager
    def call_on_cancel(self, stop: Callable[[], None]) -> Iterator[None]:
        """Call `stop` when the work is cancelled within this context, or now if it already was."""
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
