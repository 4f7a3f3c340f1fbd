"""Runs the shadows of one store's sessions in a background thread."""

import logging
from collections import deque
from threading import Condition, Thread, current_thread
from weakref import WeakSet

from ....domain.hooks import CompactionEvent, CompactionEventKind
from ...runtime.compaction.listeners import notify_listeners
from .shadow import Shadow

_STOP_TIMEOUT_S = 5.0
"""Seconds that closing a store waits for a decision."""

logger = logging.getLogger("cutbank.compaction")


class ShadowWorker:
    """One thread, which runs while there is work.

    An error in a shadow is logged and reported to listeners, once, and that shadow is dropped: its
    lineage stays as it is, and the agent's view is not affected.
    """

    def __init__(self, patience_s: float = _STOP_TIMEOUT_S) -> None:
        self.patience_s = patience_s
        self._changing = Condition()
        self._waiting: deque[tuple[Shadow, int]] = deque()
        self._thread: Thread | None = None
        self._dropped = WeakSet[Shadow]()
        self._is_ended = False

    def submit(self, shadow: Shadow, position: int) -> None:
        """Queue a decision about a call; return immediately, and raise nothing."""
        with self._changing:
            if self._is_ended or shadow in self._dropped:
                return
            self._waiting.append((shadow, position))
            if self._thread is None:
                self._thread = Thread(target=self._work, name="cutbank-shadows", daemon=True)
                self._thread.start()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for all shadows to decide; return whether they have."""
        with self._changing:
            return self._changing.wait_for(lambda: self._thread is None, timeout_s)

    def stop(self) -> None:
        """End after the current decision and drop queued calls.

        A policy that does not return is abandoned; its decision is not stored.
        """
        with self._changing:
            self._is_ended = True
            self._waiting.clear()
            thread = self._thread
        if thread is not None and thread is not current_thread():
            thread.join(self.patience_s)
            if thread.is_alive():
                logger.warning(
                    "the policy of a shadow is still deciding: its thread is left running"
                )

    def _work(self) -> None:
        while True:
            with self._changing:
                if not self._waiting:
                    self._thread = None
                    self._changing.notify_all()
                    return
                shadow, position = self._waiting.popleft()
                if shadow in self._dropped:
                    continue
            try:
                shadow.decide_at(position)
            except Exception as error:  # there is no caller to raise it to
                logger.exception(
                    "%s of session %r failed, and decides no more",
                    shadow.lineage,
                    shadow.session.key,
                )
                with self._changing:
                    self._dropped.add(shadow)
                _log_failure(shadow, error)


def _log_failure(shadow: Shadow, error: Exception) -> None:
    session = shadow.session
    happening = CompactionEvent(
        CompactionEventKind.FAILED,
        session.key,
        session.namespace,
        shadow.lineage,
        policy=shadow.policy.name,
        reason=str(error),
        error=type(error).__name__,
    )
    notify_listeners(session.log.listeners, happening)
