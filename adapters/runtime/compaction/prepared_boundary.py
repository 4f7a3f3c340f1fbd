"""Serves a boundary that was prepared earlier, if it still fits; the swap is one event."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from threading import Lock, Thread, current_thread
from typing import Any
from uuid import UUID

from ....domain.compaction import ChangesSince, explain_misfit
from ....domain.compaction_events import CompactBoundary, Trigger
from ....domain.errors import (
    CompactionCancelledError,
    CompactionVetoedError,
    CutbankError,
    LeaseHeldError,
    NothingToCompactError,
)
from ....domain.hooks import ViewStats
from ....domain.policies.policy import is_due
from ....domain.window import Window
from ....projections.compaction_window import make_window
from ....projections.history_view import HistoryFold
from ...storage.event_log.storage_errors import translate_storage_errors
from .cancellation import Cancellation
from .compactor import Compactor
from .options import CompactionRequest
from .outcome import CompactionOutcome, make_stored_outcome
from .snapshot import SessionSnapshot, apply_reported_usage


@dataclass(frozen=True)
class PreparedView:
    """The view that would begin at the prepared boundary, and the window of the current one."""

    request: CompactionRequest
    snapshot: SessionSnapshot
    history: HistoryFold
    window: Window

    @property
    def now(self) -> Window:
        return self.snapshot.window

    @property
    def boundary(self) -> CompactBoundary:
        assert self.history.boundary is not None, "it begins at the prepared one"
        return self.history.boundary

    @cached_property
    def misfit(self) -> str | None:
        """The reason why it must not be served any more, None if it fits."""
        history, served = self.history, self.snapshot.boundary
        since = ChangesSince(
            retracted=history.retracted,
            reopened=history.reopened,
            pinned=history.pinned,
            hidden=history.hides,
            shown=history.entries,
        )
        if why := explain_misfit(
            self.boundary,
            history.summary,
            since,
            beneath=self.snapshot.decided.prepared_beneath,
            served=served.originator_version if served else 0,
        ):
            return why
        # An estimate, which reads no blocks: a model call may be waiting for the answer.
        gained = self.now.used_tokens - self.window.used_tokens
        share = self.request.minimum_gain if self.request.is_automatic else 0
        if gained <= 0 or gained < share * self.now.used_tokens:
            return f"by now it would save {gained:,} of {self.now.used_tokens:,} tokens"
        return None

    @cached_property
    def is_enough(self) -> bool:
        """Whether the policy would leave the new view as it is."""
        return not is_due(self.request.policy, replace(self.window, trigger=Trigger.THRESHOLD))

    @property
    def outcome(self) -> CompactionOutcome:
        """What the swap does, as a compaction's outcome."""
        reason = f"boundary {self.boundary.originator_version} was prepared"
        return replace(
            make_stored_outcome(self.boundary, self.history.summary, reason),
            pre_tokens=self.now.used_tokens,
            post_tokens=self.window.used_tokens,
        )


def read_prepared_view(
    compactor: Compactor, snapshot: SessionSnapshot, request: CompactionRequest
) -> PreparedView:
    """Return the view that the session's prepared boundary would begin."""
    reader = compactor.reader
    with reader.advancing:
        history, view = reader.read_prepared(snapshot.decided.prepared, snapshot.view.coordinate)
        window = make_window(history, view, request.limit, request.trigger)
    if request.usage is not None:
        window = apply_reported_usage(window, round(window.tokens * snapshot.share))
    return PreparedView(request, snapshot, history, window)


def serve_prepared(compactor: Compactor, coming: PreparedView) -> bool:
    """Serve the view if it fits, or drop it; return whether it was served.

    Raises StalePlanError if another process decided at the same moment.
    """
    boundary, summary = coming.boundary, coming.history.summary
    told: dict[str, Any] = {
        "trigger": coming.request.trigger,
        "policy": boundary.policy,
        "summarizer": summary.summarizer if summary else None,
        "before": ViewStats(coming.now.used_tokens, len(coming.snapshot.view.entries)),
    }
    if coming.misfit is not None:
        compactor.drop(boundary.originator_version, coming.misfit, **told)
        return False
    after = ViewStats(coming.window.used_tokens, len(coming.history.entries))
    compactor.activate(boundary.originator_version, **told, after=after)
    return True


logger = logging.getLogger("cutbank.compaction")

BackgroundWork = Callable[[Cancellation], str | None]
"""Prepares a boundary; returns why it could not, or None if it did."""


def prepare_boundary(
    compactor: Compactor, name: str, request: CompactionRequest, cancellation: Cancellation
) -> str | None:
    with translate_storage_errors(name):
        futile = compactor.decisions.read_state().futile
        try:
            outcome = compactor.compact(request, cancellation)
        except NothingToCompactError as nothing:
            compactor.note_futile(nothing, futile)
            return str(nothing)
        except (CompactionVetoedError, LeaseHeldError) as error:
            return str(error)
        return None if outcome.compacted else outcome.reason


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
        except CompactionCancelledError as error:
            logger.info("a boundary was not prepared: %s", error)
        except CutbankError as error:
            logger.warning("a boundary could not be prepared: %s", error)
        except Exception:  # the thread's errors have no caller
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
