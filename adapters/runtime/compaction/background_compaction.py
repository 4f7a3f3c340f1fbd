"""Writes summaries ahead of their need, in threads that the agents do not wait for."""

import logging
from collections.abc import Callable
from threading import Lock, Thread, current_thread
from uuid import UUID

from ....domain.errors import (
    CompactionCancelledError,
    CompactionVetoedError,
    CutbankError,
    LeaseHeldError,
    NothingToCompactError,
)
from ...storage.event_log.storage_errors import translate_storage_errors
from .cancellation import Cancellation
from .compaction_request import CompactionRequest
from .compactor import Compactor

logger = logging.getLogger("cutbank.compaction")

BackgroundWork = Callable[[Cancellation], str | None]
"""Prepares a boundary; returns why it did not, or None where it did."""


def prepare_boundary(
    compactor: Compactor, name: str, order: CompactionRequest, cancellation: Cancellation
) -> str | None:
    """Prepare a boundary; returns why there is none, or None where there is one."""
    with translate_storage_errors(name):
        futile = compactor.decisions.read_state().futile
        try:
            outcome = compactor.compact(order, cancellation)
        except NothingToCompactError as nothing:
            if compactor.decisions.read_state().futile == futile:
                compactor.decisions.record_futile(nothing)
            return str(nothing)
        except (CompactionVetoedError, LeaseHeldError) as error:
            return str(error)
        return None if outcome.compacted else outcome.reason


class BackgroundCompactions:
    """The preparations of one store's sessions, one at a time for each lineage."""

    def __init__(self) -> None:
        self._changing = Lock()
        self._running: dict[UUID, tuple[Thread, Cancellation]] = {}
        self._in_vain: dict[UUID, int] = {}
        """How large a session was when its newest preparation came to nothing."""
        self._is_ended = False

    def begin(self, lineage: UUID, size: int, work: BackgroundWork) -> None:
        """Start the work in a thread, unless one is at it; `size` is the session's, in tokens."""
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
        """Whether this process is at it."""
        return lineage in self._running

    def is_futile(self, lineage: UUID, size: int, regrowth: float) -> bool:
        """Whether it came to nothing, and the session has hardly grown since."""
        failed_at = self._in_vain.get(lineage)
        return failed_at is not None and size - failed_at < regrowth

    def join(self, lineage: UUID, cancellation: Cancellation) -> bool:
        """Wait for the work on a lineage; whether there was any.

        Once `cancellation` is asked for, the work is stopped, and CompactionCancelledError raised.
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
        """Cancel all work and wait for it; nothing is begun any more."""
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
        except CompactionCancelledError as error:
            logger.info("a boundary was not prepared: %s", error)
        except CutbankError as error:
            logger.warning("a boundary could not be prepared: %s", error)
        except Exception:  # nobody waits for it whom it could be raised to
            logger.exception("a boundary could not be prepared")
        else:
            if why is not None:
                logger.info("a boundary was not prepared: %s", why)
        finally:
            with self._changing:
                if why is None:
                    self._in_vain.pop(lineage, None)
                else:
                    self._in_vain[lineage] = size
                del self._running[lineage]
