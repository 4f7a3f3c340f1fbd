"""Serves a boundary that was prepared earlier, if it still fits; the swap is one event."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from ....domain.compaction import ChangesSince, explain_misfit
from ....domain.compaction_events import CompactBoundary, Trigger
from ....domain.hooks import ViewStats
from ....domain.policies.policy import is_due
from ....domain.window import Window
from ....projections.compaction_window import make_window
from ....projections.history_view import HistoryFold
from .compaction_request import CompactionRequest
from .compactor import Compactor
from .outcome import CompactionOutcome, make_stored_outcome
from .session_snapshot import SessionSnapshot, apply_reported_usage


@dataclass(frozen=True)
class PreparedView:
    """The view that would begin at the prepared boundary, and the window of the current one."""

    order: CompactionRequest
    now: Window
    blocks: int
    """The number of blocks in the current view."""
    history: HistoryFold
    window: Window
    beneath: int
    served: int

    @property
    def boundary(self) -> CompactBoundary:
        assert self.history.boundary is not None, "it begins at the prepared one"
        return self.history.boundary

    @cached_property
    def misfit(self) -> str | None:
        """The reason why it must not be served any more, None if it fits."""
        history = self.history
        since = ChangesSince(
            retracted=history.retracted,
            reopened=history.reopened,
            pinned=history.pinned,
            hidden=history.hides,
            shown=history.entries,
        )
        if why := explain_misfit(
            self.boundary, history.summary, since, beneath=self.beneath, served=self.served
        ):
            return why
        # An estimate, which reads no blocks: a model call may be waiting for the answer.
        gained = self.now.used_tokens - self.window.used_tokens
        has_to = self.order.minimum_gain * self.now.used_tokens if self.order.is_automatic else 0
        if gained <= 0 or gained < has_to:
            return f"by now it would save {gained:,} of {self.now.used_tokens:,} tokens"
        return None

    @cached_property
    def is_enough(self) -> bool:
        """Whether the policy would leave the new view as it is."""
        return not is_due(self.order.policy, replace(self.window, trigger=Trigger.THRESHOLD))

    @property
    def outcome(self) -> CompactionOutcome:
        """What the swap does, as a compaction's outcome."""
        number = self.boundary.originator_version
        return replace(
            make_stored_outcome(
                self.boundary, self.history.summary, f"boundary {number} was prepared"
            ),
            pre_tokens=self.now.used_tokens,
            post_tokens=self.window.used_tokens,
        )


class PreparedBoundaries:
    """Serves prepared boundaries, or drops those that no longer fit."""

    def __init__(self, compactor: Compactor) -> None:
        self.compactor = compactor

    def read_ahead(self, prepared: int) -> None:
        """Read the boundary now, so that it need not be read when it is served."""
        self.compactor.reader.read_boundary(prepared)

    def read_prepared_view(self, seen: SessionSnapshot, order: CompactionRequest) -> PreparedView:
        """Return the view that the session's prepared boundary would begin."""
        reader = self.compactor.reader
        with reader.advancing:
            history, view = reader.read_prepared(seen.decided.prepared, seen.view.coordinate)
            window = make_window(history, view, order.limit, order.trigger)
        if order.usage is not None:
            window = apply_reported_usage(window, round(window.tokens * seen.share))
        return PreparedView(
            order=order,
            now=seen.window,
            blocks=len(seen.view.entries),
            history=history,
            window=window,
            beneath=seen.decided.prepared_beneath,
            served=seen.boundary.originator_version if seen.boundary else 0,
        )

    def serve(self, coming: PreparedView) -> bool:
        """Serve the view if it fits, or drop it; return whether it was served.

        Raises StalePlanError if another process decided at the same moment.
        """
        boundary, summary = coming.boundary, coming.history.summary
        told: dict[str, Any] = {
            "trigger": coming.order.trigger,
            "policy": boundary.policy,
            "summariser": summary.summariser if summary else None,
            "before": ViewStats(coming.now.used_tokens, coming.blocks),
        }
        if coming.misfit is not None:
            self.compactor.drop(boundary.originator_version, coming.misfit, **told)
            return False
        after = ViewStats(coming.window.used_tokens, len(coming.history.entries))
        self.compactor.activate(boundary.originator_version, **told, after=after)
        return True
