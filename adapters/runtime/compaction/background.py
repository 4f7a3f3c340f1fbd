"""Cancels work from any thread, and compacts in background threads."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Lock, Thread, current_thread
from uuid import UUID

from ....domain.errors import CompactionCancelledError, CutbankError

logger = logging.getLogger("cutbank.compaction")


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


BackgroundWork = Callable[[Cancellation], str | None]
"""Prepares a boundary; returns why it could not, or None if it did."""


class BackgroundCompactions:
    """The background compactions of one store's sessions, one at a time for each lineage."""

    def __init__(self) -> None:
        self._changing = Lock()
        self._running: dict[UUID, tuple[Thread, Cancellation]] = {}
        self._in_vain: dict[UUID, int] = {}
        """The size of each session, in tokens, when its newest preparation failed."""
        self._is_ended = False

    def begin(self, lineage: UUID, size: int, work: BackgroundWork) -> None:
        """Start the work in a thread unless it is already running; `size` is the session's."""
        cancellation = Cancellation()
        thread = Thread(
            target=self._run,
            args=(lineage, size, work, cancellation),
            name="cutbank-preparation",
            daemon=True,
        )
        with self._changing:
            if self._is_ended or lineage in self._running:
                return
            thread.start()
            self._running[lineage] = (thread, cancellation)

    def is_running(self, lineage: UUID) -> bool:
        """Return whether this process is preparing a boundary of the lineage."""
        return lineage in self._running

    def is_futile(self, lineage: UUID, size: int, regrowth: float) -> bool:
        """Return whether the last preparation failed and the session has hardly grown since."""
        failed_at = self._in_vain.get(lineage)
        return failed_at is not None and size - failed_at < regrowth

    def join(self, lineage: UUID, cancellation: Cancellation) -> bool:
        """Wait for the work on a lineage; return whether there was any.

        A request on `cancellation` stops the work and raises CompactionCancelledError.
        """
        with self._changing:
            thread, theirs = self._running.get(lineage, (None, None))
        if thread is None or theirs is None or thread is current_thread():
            return False
        with cancellation.call_on_cancel(theirs.request):
            thread.join()
        cancellation.check()
        return True

    def stop(self) -> None:
        """Cancel all work, wait for it, and refuse to begin any more."""
        with self._changing:
            self._is_ended = True
            running = list(self._running.values())
        for _, cancellation in running:
            cancellation.request()
        for thread, _ in running:
            if thread is not current_thread():  # a listener may close the store
                thread.join()

    def _run(
        self, lineage: UUID, size: int, work: BackgroundWork, cancellation: Cancellation
    ) -> None:
        why: str | None = "it failed"
        try:
            why = work(cancellation)
            if why is not None:
                logger.info("a boundary was not prepared: %s", why)
        except CutbankError as error:
            is_wanted = isinstance(error, CompactionCancelledError)
            level = logging.INFO if is_wanted else logging.WARNING
            logger.log(level, "a boundary was not prepared: %s", error)
        except Exception:  # the thread's errors have no caller
            logger.exception("a boundary could not be prepared")
        finally:
            with self._changing:
                if why is None:
                    self._in_vain.pop(lineage, None)
                else:
                    self._in_vain[lineage] = size
                del self._running[lineage]
