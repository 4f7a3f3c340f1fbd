"""An agent's three calls: before it asks a model, after, and when the model refuses."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast
from uuid import uuid4

from ..domain.compaction import MAIN
from ..domain.compaction_events import CompactionRequested, Trigger
from ..domain.errors import (
    CompactionVetoedError,
    InvalidSettingError,
    NothingToCompactError,
    StalePlanError,
)
from ..domain.overflow import recognised
from ..domain.policies.catalog import policy_named
from ..domain.session_events import Usage
from ..projections.history_view import HistoryView
from ..projections.rendering.catalog import RENDERERS
from .compacting.cancellation import Cancellation
from .compacting.order import Order
from .compacting.outcome import Outcome
from .compacting.overflow_advice import refused
from .compacting.seen import Seen
from .event_log.plain_errors import speaking_plainly
from .telemetry.in_use import timed

if TYPE_CHECKING:
    from .stored_session import StoredSession


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

    A request is one call of the model: it ends with the model's answer in the log, or with
    `record_call()`. In it, one compaction by threshold takes place at most, and one after an
    overflow, whichever process asks. Sub-agents' sessions (those with a parent) are compacted
    after an overflow only. Threads may share a loop.
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
        self._unasked = replace(order, trigger=Trigger.THRESHOLD)
        self._running: Cancellation | None = None

    # The three calls

    @timed
    def prepare(self) -> HistoryView:
        """What to send to the model now; compacted first where the policy says so.

        Where a compaction comes to nothing, the view is served as it is; listeners and the log
        are told why. Raises CompactionCancelledError after `cancel()`.
        """
        with speaking_plainly(self.session.store.name):
            seen = self._compactor.planner.seen(self._unasked)
            if seen.decided.requested and self._picks_up(seen):
                seen = self._compactor.planner.seen(self._unasked)
            if not self.habits.auto or not self._is_due(seen):
                return seen.view
            try:
                self._compact(self._unasked)
            except NothingToCompactError as nothing:
                if self._compactor.state().futile == seen.decided.futile:
                    self._compactor.note_futile(nothing)
            except (CompactionVetoedError, StalePlanError):
                pass  # a hook forbade it, or others did it: what there is, is served
            return self._compactor.reader.view()

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
        """Record that the model answered to `view`: what it was sent, and what that cost.

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

        `error` is the provider's exception, or the body of its answer. Compacts whatever the
        policy's threshold says, and once: a request that is refused a second time, or a view that
        cannot be made smaller, raises ContextOverflowError, which says what holds the floor up.
        Raises `error` again where it is about something else.
        """
        overflow = recognised(error)
        if overflow is None:
            if isinstance(error, BaseException):
                raise error
            raise InvalidSettingError(f"this is no refusal for length: {str(error)[:200]}")
        with speaking_plainly(self.session.store.name):
            if overflow.limit:
                limit = min(self.order.limit, overflow.limit)
                self.order = replace(self.order, limit=limit)
                self._unasked = replace(self._unasked, limit=limit)
            order = replace(self.order, trigger=Trigger.OVERFLOW, usage=overflow.tokens)
            seen = self._compactor.planner.seen(order)
            if overflow.tokens is None and seen.window.used < order.limit:
                # Nobody says how much it was; but it was more than we take it for.
                order = replace(order, usage=order.limit)
            at = seen.view.coordinate
            self.session.record_overflow(
                overflow.message,
                model=self.model,
                lineage=at.lineage,
                lineage_version=at.lineage_version,
            )
            if seen.was_compacted_for(Trigger.OVERFLOW):
                raise refused(seen.window, overflow, self.model, "after it was compacted for it")
            try:
                done = self._compact(order)
            except (NothingToCompactError, CompactionVetoedError) as nothing:
                raise refused(seen.window, overflow, self.model, str(nothing)) from nothing
            if not done.compacted and done.post_tokens >= done.pre_tokens:
                raise refused(seen.window, overflow, self.model, done.reason)
            return self._compactor.reader.view()

    def cancel(self) -> None:
        """Stop the compaction that another thread is at, if one is; the view stays as it was."""
        if running := self._running:
            running.ask()

    # How

    def _is_due(self, seen: Seen) -> bool:
        """Whether a compaction by threshold may take place in this request."""
        return (
            self.order.policy.plan(seen.window) is not None
            and not seen.history.is_same_request
            and not self._was_this_turns(seen)
            and not self._is_futile(seen)
            and self.session.parent is None
        )

    def _was_this_turns(self, seen: Seen) -> bool:
        if not self.habits.once_a_turn or not seen.was_drawn_by(Trigger.THRESHOLD):
            return False
        return seen.turn_at(seen.history.effective_from) == seen.state.turn

    def _is_futile(self, seen: Seen) -> bool:
        """Whether it came to nothing before, and hardly anything was said since."""
        futile = seen.decided.futile
        if not futile:
            return False
        grown = seen.state.tokens - seen.state_at(futile).tokens
        return grown < self.habits.regrowth * self.order.limit

    def _compact(self, order: Order) -> Outcome:
        self._running = running = Cancellation()
        try:
            self.last = self._compactor.compact(order, running)
        finally:
            self._running = None
        return self.last

    def _picks_up(self, seen: Seen) -> bool:
        """Carry out what somebody was asked for who has died at it; whether there was any."""
        requested = seen.decided.requested
        held_until = self._compactor.held_until(requested)
        if held_until is not None and held_until > self.session.store.events.clock():
            return False  # whoever asked may be at it still
        request = cast(CompactionRequested, self._compactor.reader.decision(requested))
        if request.by is not None:
            return False  # other workers take over when the session rests; here somebody waits
        why = "whoever was at it has died, and by now nothing has to be done"
        try:
            order = replace(
                self.order,
                policy=policy_named(request.policy, request.settings),
                trigger=request.trigger,
                instructions=request.instructions,
                idempotency_key=request.idempotency_key,
            )
            self._compact(order)
        except (InvalidSettingError, NothingToCompactError, CompactionVetoedError) as error:
            why = f"whoever was at it has died, and it cannot be picked up: {error}"
        except StalePlanError:
            pass  # others were faster: what they decided has ended it
        self._compactor.give_up(requested, why)
        return True
