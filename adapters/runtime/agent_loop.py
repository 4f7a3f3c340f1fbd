"""An agent's three calls: before it asks a model, after, and when the model refuses."""

from dataclasses import replace
from functools import partial
from math import ceil
from os import getpid
from typing import Any, cast
from uuid import uuid4

from ...domain.compaction import MAIN, lineage_id
from ...domain.compaction_events import BoundaryActivated, CompactionRequested, Trigger
from ...domain.context_limit import LimitSource
from ...domain.errors import (
    CompactionVetoedError,
    InvalidSettingError,
    NothingToCompactError,
    StalePlanError,
)
from ...domain.hooks import Happening, Moment
from ...domain.overflow import recognised
from ...domain.policies.policy import Policy, is_due, warning_of
from ...domain.session_events import Usage
from ...projections.history_view import HistoryView
from ...projections.hook_payloads import context_warning
from ...projections.rendering.catalog import RENDERERS
from ..settings.policy_catalog import policy_named
from ..storage.event_log.plain_errors import speaking_plainly
from .compaction.ahead import prepared_ahead
from .compaction.by_settings import chain_by, habits_by, order_by, policy_by
from .compaction.cancellation import Cancellation
from .compaction.compactor import REPLANS
from .compaction.listeners import told
from .compaction.options import LoopHabits, LoopOptions
from .compaction.order import Order
from .compaction.outcome import Outcome
from .compaction.overflow_advice import refused
from .compaction.seen import Seen
from .compaction.summary_chain import UnwrittenError
from .compaction.swap import Coming, Swap
from .sessions.session_log import SessionLog
from .sessions.store_context import ShadowPolicies
from .telemetry.in_use import timed


def open_loop(
    log: SessionLog,
    policy: str | Policy | None = None,
    *,
    limit: int | None = None,
    model: str | None = None,
    options: LoopOptions | None = None,
) -> "AgentLoop":
    """Make the loop of a session; see `StoredSession.loop`."""
    options = options or LoopOptions()
    settings, lineage = log.settings, options.lineage
    order = order_by(
        settings,
        model,
        log.logged_context(lineage, limit),
        policy=policy_by(settings, policy, options.settings),
        limit=limit,
        chain=chain_by(settings, model, tuple(options.summarizers))
        if options.summarizers is not None
        else None,
        pins=options.pins,
        instructions=options.instructions,
        tracked_files=options.tracked_files,
    )
    habits = habits_by(settings, options)
    if options.shadows and lineage != MAIN:
        raise InvalidSettingError(f"shadows run next to {MAIN}, not next to {lineage}")
    shadows = None
    names = settings.shadow.policies if options.shadows is None else options.shadows
    if names and lineage == MAIN and log.context.start_shadows:
        shadows = log.context.start_shadows(log, names, order, habits)
    return AgentLoop(log, order, model=model, lineage=lineage, habits=habits, shadows=shadows)


class AgentLoop:
    """Keeps one session within its model's context, call by call.

    A request is one call of the model: it ends with the model's answer in the log, or with
    `record_call()`. In it, one compaction by threshold takes place at most, and one after an
    overflow, whichever process asks. Sub-agents' sessions (those with a parent) are compacted
    after an overflow only. Threads may share a loop.
    """

    def __init__(
        self,
        log: SessionLog,
        order: Order,
        *,
        model: str | None,
        lineage: str,
        habits: LoopHabits,
        shadows: ShadowPolicies | None = None,
    ) -> None:
        self.log = log
        self.order = order
        self.model = model
        self.lineage = lineage
        self.habits = habits
        self.shadows = shadows
        self.last: Outcome | None = None
        """What the newest compaction of this loop did, or why it did nothing."""
        self._compactor = log.compactor(lineage)
        self._lineage_id = lineage_id(log.namespace, log.key, lineage)
        self._swap = Swap(self._compactor)
        self._unasked = replace(order, trigger=Trigger.THRESHOLD)
        self._running: Cancellation | None = None

    # The three calls

    @timed
    def prepare(self) -> HistoryView:
        """What to send to the model now; compacted first where the policy says so.

        Where a compaction comes to nothing, the view is served as it is; listeners and the log
        are told why. Raises CompactionCancelledError after `cancel()`.
        """
        with speaking_plainly(self.log.context.name):
            seen, view = self._prepared()
            if view.boundary == seen.view.boundary and self.habits.auto:
                self._warn(seen)
            if self.shadows:
                self.shadows.decide(view.coordinate.position)
            return view

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
        self.log.record_call(
            view,
            call_id=call_id or uuid4().hex,
            renderer=known.label if known else renderer,
            model=model or self.model,
            usage=usage,
            cost_usd=cost_usd,
            latency_s=latency_s,
            stop_reason=stop_reason,
        )

    def handle_overflow(self, error: object) -> HistoryView:
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
        with speaking_plainly(self.log.context.name):
            if overflow.limit:
                self._lower_limit(overflow.limit)
            order = replace(self.order, trigger=Trigger.OVERFLOW, usage=overflow.tokens)
            seen = self._compactor.planner.seen(order)
            if overflow.tokens is None and seen.window.used < order.limit:
                # Nobody says how much it was; but it was more than we take it for.
                order = replace(order, usage=order.limit)
                seen = self._compactor.planner.seen(order)
            at = seen.view.coordinate
            self.log.record_overflow(
                overflow.message,
                model=self.model,
                lineage=at.lineage,
                lineage_version=at.lineage_version,
            )
            if seen.was_compacted_for(Trigger.OVERFLOW):
                raise refused(seen.window, overflow, self.model, "after it was compacted for it")
            if self._has_waited():
                seen = self._compactor.planner.seen(order)
            if swapped := self._swapped(seen, order):
                if swapped.is_enough:
                    return self._compactor.reader.view()
                order = replace(order, usage=swapped.window.used)
            try:
                done = self._compact(order)
            except (NothingToCompactError, CompactionVetoedError, UnwrittenError) as nothing:
                if swapped and swapped.window.used < order.limit:
                    return self._compactor.reader.view()
                raise refused(seen.window, overflow, self.model, str(nothing)) from nothing
            if not done.compacted and done.post_tokens >= done.pre_tokens:
                raise refused(seen.window, overflow, self.model, done.reason)
            return self._compactor.reader.view()

    def _lower_limit(self, limit: int) -> None:
        """Go by the limit that a provider named, where it is lower than what was known."""
        if limit < self.order.limit:
            lower: dict[str, Any] = {"limit": limit, "limit_source": LimitSource.REFUSAL}
            self.order = replace(self.order, **lower)
            self._unasked = replace(self._unasked, **lower)

    def cancel(self) -> None:
        """Stop the compaction that another thread is at, if one is; the view stays as it was."""
        if running := self._running:
            running.ask()

    # How

    def _prepared(self) -> tuple[Seen, HistoryView]:
        """What was found last, and what is served now."""
        seen = self._compactor.planner.seen(self._unasked)
        if seen.decided.requested and self._picks_up(seen):
            seen = self._compactor.planner.seen(self._unasked)
        if not self.habits.auto:
            return seen, seen.view
        if not self._is_due(seen):
            if seen.decided.prepared:
                self._swap.awaited(seen.decided.prepared)
            else:
                self._begin_ahead(seen)
            return seen, seen.view
        if self._has_waited() or self._compactor.decisions.state() != seen.decided:
            # It may as well have been finished after this was looked at, and before it was waited.
            seen = self._compactor.planner.seen(self._unasked)
        swapped = self._swapped(seen, self._unasked)
        if swapped is None and seen.decided.prepared:
            seen = self._compactor.planner.seen(self._unasked)
            if not self._is_due(seen):
                return seen, seen.view  # others have served what was prepared
        if swapped is None and not self._is_futile(seen):
            self._compact_by_threshold(seen.decided.futile)
        elif swapped and not swapped.is_enough:
            self._compact_by_threshold(0)
        return seen, self._compactor.reader.view()

    def _warn(self, seen: Seen) -> None:
        """Tell those who listen how much is in use, where the policy has them told."""
        listeners = self._compactor.listeners
        if listeners and (warning := warning_of(self.order.policy, seen.window)):
            happening = Happening(
                Moment.CONTEXT_WARNING,
                self.log.key,
                self.log.namespace,
                self.lineage,
                policy=self.order.policy.name,
                message=context_warning(warning),
            )
            told(listeners, happening)

    def _is_due(self, seen: Seen) -> bool:
        """Whether a compaction by threshold may take place in this request."""
        return (
            is_due(self.order.policy, seen.window)
            and not seen.history.is_same_request
            and not self._was_this_turns(seen)
            and self.log.parent is None
        )

    def _was_this_turns(self, seen: Seen) -> bool:
        if not self.habits.once_a_turn:
            return False
        if not seen.was_drawn_by(Trigger.THRESHOLD) and not self._was_swapped_in(seen):
            return False
        return seen.turn_at(seen.history.effective_from) == seen.state.turn

    def _was_swapped_in(self, seen: Seen) -> bool:
        """Whether what is served was prepared before, and waited for the threshold."""
        switched = seen.decided.switched
        decision = self._compactor.reader.decision(switched) if switched else None
        return isinstance(decision, BoundaryActivated) and decision.trigger is Trigger.THRESHOLD

    def _is_futile(self, seen: Seen) -> bool:
        """Whether it came to nothing before, and hardly anything was said since."""
        futile = seen.decided.futile
        if not futile:
            return False
        if seen.window.request < self.order.limit < seen.window.used:
            return False  # the provider would refuse it, and something may leave by now
        grown = seen.state.tokens - seen.state_at(futile).tokens
        return grown < self.habits.regrowth * self.order.limit

    def _swapped(self, seen: Seen, order: Order) -> Coming | None:
        """The view that was served in place of this one; None where nothing prepared fits."""
        for _ in range(REPLANS):
            if not seen.decided.prepared:
                return None
            coming = self._swap.coming(seen, order)
            try:
                is_served = self._swap.made(coming)
            except StalePlanError:  # others decided at the same moment
                seen = self._compactor.planner.seen(order)
                continue
            if not is_served:
                return None
            self.last = coming.outcome
            return coming
        return None

    def _compact_by_threshold(self, futile: int) -> None:
        """Compact; `futile` is up to where it is known by now that nothing is to be gained."""
        try:
            self._compact(self._unasked)
        except NothingToCompactError as nothing:
            if self._compactor.decisions.state().futile == futile:
                self._compactor.decisions.note_futile(nothing)
        except (CompactionVetoedError, StalePlanError, UnwrittenError):
            pass  # a hook forbade it, others did it, or no summary can be had: what is, is served

    def _begin_ahead(self, seen: Seen) -> None:
        """Have the summary of the next compaction written, if it is near and nobody is at it."""
        part, decided = self.habits.prepare_at, seen.decided
        if (
            part is None
            or self._compactor.decisions.is_held(decided.requested)
            or self._is_futile(seen)
        ):
            return
        preparations, size = self.log.context.preparations, seen.state.tokens
        if preparations.is_in_vain(self._lineage_id, size, self.habits.regrowth * self.order.limit):
            return
        used = ceil(seen.window.used / part)
        larger = replace(seen.window, in_use=used, usage=used)
        if not is_due(self.order.policy, larger) or self.log.parent is not None:
            return
        ahead = replace(
            self._unasked,
            trigger=Trigger.IDLE,
            activate=False,
            by=f"prepare() of process {getpid()}",
        )
        work = partial(prepared_ahead, self._compactor, self.log.context.name, ahead)
        preparations.begin(self._lineage_id, size, work)

    def _has_waited(self) -> bool:
        """Whether a summary was being written ahead, which is sooner there than another one."""
        self._running = running = Cancellation()
        try:
            return self.log.context.preparations.join(self._lineage_id, running)
        finally:
            self._running = None

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
        if self._compactor.decisions.is_held(requested):
            return False  # whoever asked may be at it still
        request = cast(CompactionRequested, self._compactor.reader.decision(requested))
        if not request.activate:
            if self.log.context.preparations.is_at(self._lineage_id):
                return False  # it outlives its lease, as where a machine has slept
            self._compactor.decisions.give_up(
                requested, "whoever prepared a boundary has died at it"
            )
            return True
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
        except (
            InvalidSettingError,
            NothingToCompactError,
            CompactionVetoedError,
            UnwrittenError,
        ) as error:
            why = f"whoever was at it has died, and it cannot be picked up: {error}"
        except StalePlanError:
            pass  # others were faster: what they decided has ended it
        self._compactor.decisions.give_up(requested, why)
        return True
