"""An agent's three calls: before it asks a model, after, and when the model refuses."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from uuid import uuid4

from ..domain.compaction import MAIN
from ..domain.compaction_events import Trigger
from ..domain.errors import (
    CompactionVetoedError,
    NothingToCompactError,
)
from ..domain.overflow import recognised
from ..domain.session_events import Usage
from ..projections.history_view import HistoryView
from ..projections.rendering.catalog import RENDERERS
from .cancellation import Cancellation
from .compaction_order import Order
from .compaction_outcome import Outcome
from .plain_errors import speaking_plainly

if TYPE_CHECKING:
    from .stored_session import StoredSession

HINTS = (
    "raise the limit, or use a model with a larger context",
    "unpin or hide what holds the floor up; its originals stay within reach of recall",
    "fork the session, or begin a new one that recalls what it needs",
)
"""What helps when nothing that a compaction may take out is left."""


@dataclass(frozen=True)
class Habits:
    """When a loop compacts by itself."""

    auto: bool = True
    """Whether the policy is asked before each call."""
    once_a_turn: bool = False
    """Whether one compaction by threshold has to do for all calls of a turn."""
    regrowth: float = 0.05
    """The part of the limit by which a session has to grow before it is tried again, once a
    compaction came to nothing."""


class AgentLoop:
    """Keeps one session within its model's context, call by call.

    A request is one call of the model, from `prepare()` to the model's answer in the log, or to
    `record_call()`: in it, one compaction by threshold takes place at most, and one after an
    overflow. Sub-agents' sessions (those with a parent) are compacted after an overflow only.
    """

    def __init__(
        self,
        session: "StoredSession",
        order: Order,
        *,
        model: str | None = None,
        lineage: str = MAIN,
        habits: Habits = Habits(),
    ) -> None:
        self.session = session
        self.order = order
        self.model = model
        self.lineage = lineage
        self.habits = habits
        self.last: Outcome | None = None
        """What the newest compaction of this loop did, or why it did nothing."""
        self._compactor = session.compactor(lineage)
        self._cancellation = Cancellation()
        self._looked_behind = False

    # The three calls

    def prepare(self) -> HistoryView:
        """What to send to the model now; compacted first where the policy says so.

        A failure to compact is told to listeners and recorded, and the view is served as it is.
        Raises CompactionCancelledError after `cancel()`.
        """
        with speaking_plainly(self.session.store.name):
            self._look_behind()
            if self.habits.auto and self._is_due():
                self._compact_unasked()
            return self._view()

    def record_call(
        self,
        view: HistoryView,
        *,
        usage: Usage | None = None,
        call_id: str | None = None,
        model: str | None = None,
        renderer: str = "neutral",
        cost_usd: float | None = None,
        latency_s: float | None = None,
        stop_reason: str | None = None,
    ) -> None:
        """Record that the model answered to `view`: what it was sent, what it cost, how large it was.

        `usage` is what the provider reported; later counts build upon it. `renderer` is the
        format that the view was sent in, `stop_reason` why the model stopped.
        """
        known = RENDERERS.get(renderer)
        self.session.record_call(
            view,
            call_id=call_id or uuid4().hex,
            renderer=known.label if known else renderer,
            model=model or self.model,
            usage=usage,
            cost_usd=cost_usd,
            latency_s=latency_s,
            stop_reason=stop_reason,
        )

    def overflowed(self, error: object) -> HistoryView:
        """What to send instead, after a provider refused the view as too long.

        `error` is the provider's exception, or its answer's body. Compacts whatever the policy's
        threshold. Raises `error` again where it is about something else, and ContextOverflowError
        where the view cannot be made smaller, or was refused a second time.
        """
        overflow = recognised(error)
        if overflow is None:
            raise error if isinstance(error, BaseException) else NotAnOverflowError(error)
        with speaking_plainly(self.session.store.name):
            view = self._view()
            is_second = view.overflows > 0
            self.session.record_overflow(view, message=overflow.message, model=self.model)
            if overflow.limit:
                self.order = replace(self.order, limit=min(self.order.limit, overflow.limit))
            if is_second:
                raise self._refused(view, overflow, "after it was compacted already")
            try:
                done = self._compact(Trigger.OVERFLOW, usage=overflow.tokens)
            except (NothingToCompactError, CompactionVetoedError) as nothing:
                raise self._refused(view, overflow, f"and {nothing}") from nothing
            after = self._view()
            if not done.compacted and after.tokens >= view.tokens:
                raise self._refused(view, overflow, f"and {done.reason}")
            return after

    def cancel(self) -> None:
        """Stop the compaction that runs in another thread; the view stays as it was."""
        self._cancellation.ask()

    # When

    def _is_due(self) -> bool:
        """Whether a compaction by threshold may take place in this request."""
