"""Keeps one agent's session within its model's context, before and after each call."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from math import ceil
from os import getpid
from typing import Any, Unpack, cast
from uuid import uuid4

from ...domain.compaction_events import BoundaryActivated, CompactionRequested, Trigger
from ...domain.context_limit import LimitSource
from ...domain.errors import (
    CompactionVetoedError,
    InvalidSettingError,
    NothingToCompactError,
    StalePlanError,
)
from ...domain.hooks import CompactionEventKind
from ...domain.overflow import recognize_overflow
from ...domain.policies.policy import find_warning, is_due
from ...projections.history_view import HistoryView
from ..storage.event_log.storage_errors import translate_storage_errors
from .compaction.background import Cancellation
from .compaction.compactor import MAX_REPLANS
from .compaction.event_sink import context_warning
from .compaction.options import CompactionRequest, LoopOptions
from .compaction.outcome import CompactionOutcome, make_overflow_error
from .compaction.snapshot import PreparedView, SessionSnapshot, read_prepared_view
from .compaction.summary_chain import UnwrittenError
from .sessions.session_log import CallReport, SessionLog
from .telemetry import measure_wait


class AgentLoop:
    """Keeps one session within its model's context, call by call.

    A request is one call of the model; it ends when the model's answer is in the log, or with
    `record_call()`. Each request allows at most one compaction by threshold and one after an
    overflow, counted over all processes. Sub-agents' sessions (those with a parent) are compacted
    after an overflow only. Threads may share a loop.
    """

    def __init__(
        self,
        log: SessionLog,
        request: CompactionRequest,
        options: LoopOptions,
        *,
        model: str | None,
    ) -> None:
        self.log = log
        self.request = request
        self.options = options
        """With the settings filled in, where they were None."""
        self.model = model
        self.last: CompactionOutcome | None = None
        """The outcome of this loop's newest compaction, or why it did nothing."""
        self._compactor = log.compactor(options.lineage)
        self._lineage_id = log.events.find_lineage_id(log.namespace, log.key, options.lineage)
        self._automatic = replace(request, trigger=Trigger.THRESHOLD)
        self._running: Cancellation | None = None

    @property
    def lineage(self) -> str:
        return self.options.lineage

    def prepare(self) -> HistoryView:
        """Return the view to send to the model, compacted first if the policy asks for it.

        If the compaction fails, the view is served as it is, and listeners and the log get the
        reason. Raises CompactionCancelledError after `cancel()`.
        """
        with measure_wait(lambda: self.last), translate_storage_errors(self.log.context.name):
            snapshot, view = self._read_snapshot()
            if view.boundary == snapshot.view.boundary and self.options.auto:
                self._warn(snapshot)
            return view

    def record_call(
        self, view: HistoryView, *, call_id: str | None = None, **call: Unpack[CallReport]
    ) -> None:
        """Record the model's answer to `view`: what was sent and what it cost.

        `usage` is what the provider reported; later token counts build on it. `renderer` is the
        format in which the view was sent, `stop_reason` why the model stopped.
        """
        call["model"] = call.get("model") or self.model
        self.log.record_call(view, call_id or uuid4().hex, **call)

    def handle_overflow(self, error: object) -> HistoryView:
        """Compact after a provider refused the view as too long; return the view to send instead.

        `error` is the provider's exception or the body of its answer; an exception about anything
        else is raised again. The policy's threshold does not matter here. Raises
        ContextOverflowError, naming the largest blocks, if the same request is refused twice or the
        view cannot shrink.
        """
        overflow = recognize_overflow(error)
        if overflow is None:
            if isinstance(error, BaseException):
                raise error
            raise InvalidSettingError(
                f"this error does not say that the request was too long: {str(error)[:200]}"
            )
        with translate_storage_errors(self.log.context.name):
            if overflow.limit:
                self._lower_limit(overflow.limit)
            request = replace(self.request, trigger=Trigger.OVERFLOW, usage=overflow.tokens)
            snapshot = self._compactor.take_snapshot(request)
            if overflow.tokens is None and snapshot.window.used_tokens < request.limit:
                # The error gives no token count, but the request was larger than our estimate.
                request = replace(request, usage=request.limit)
                snapshot = self._compactor.take_snapshot(request)
            self.log.record_overflow(overflow.message, snapshot.view, model=self.model)
            boundary = snapshot.boundary
            was_for_overflow = boundary is not None and boundary.trigger is Trigger.OVERFLOW
            if was_for_overflow and snapshot.history.is_same_request:
                raise make_overflow_error(
                    snapshot.window, overflow, self.model, "after it was compacted for it"
                )
            if self._wait_for_background():
                snapshot = self._compactor.take_snapshot(request)
            if swapped := self._serve_prepared(snapshot, request):
                if swapped.is_enough:
                    return self._compactor.reader.read_view()
                request = replace(request, usage=swapped.window.used_tokens)
            try:
                done = self._compact(request)
            except (NothingToCompactError, CompactionVetoedError, UnwrittenError) as nothing:
                if swapped and swapped.window.used_tokens < request.limit:
                    return self._compactor.reader.read_view()
                raise make_overflow_error(
                    snapshot.window, overflow, self.model, str(nothing)
                ) from nothing
            if not done.compacted and done.post_tokens >= done.pre_tokens:
                raise make_overflow_error(snapshot.window, overflow, self.model, done.reason)
            return self._compactor.reader.read_view()

    def _lower_limit(self, limit: int) -> None:
        """Adopt the limit that a provider named if it is lower than the known one."""
        if limit < self.request.limit:
            lower: dict[str, Any] = {"limit": limit, "limit_source": LimitSource.REFUSAL}
            self.request = replace(self.request, **lower)
            self._automatic = replace(self._automatic, **lower)

    def cancel(self) -> None:
        """Stop the compaction that another thread is running, if any; the view stays as it was."""
        if running := self._running:
            running.request()

    def _read_snapshot(self) -> tuple[SessionSnapshot, HistoryView]:
        snapshot = self._compactor.take_snapshot(self._automatic)
        self._end_abandoned_request(snapshot.decided.requested)
        if not self.options.auto:
            return snapshot, snapshot.view
        if not self._is_due(snapshot):
            if snapshot.decided.prepared:
                # Now, so that it need not be read when it is served.
                self._compactor.reader.read_boundary(snapshot.decided.prepared)
            else:
                self._begin_background(snapshot)
            return snapshot, snapshot.view
        if (
            self._wait_for_background()
            or self._compactor.decisions.read_state() != snapshot.decided
        ):
            # The boundary may also have been finished between the snapshot above and the wait.
            snapshot = self._compactor.take_snapshot(self._automatic)
        swapped = self._serve_prepared(snapshot, self._automatic)
        if swapped is None and snapshot.decided.prepared:
            snapshot = self._compactor.take_snapshot(self._automatic)
            if not self._is_due(snapshot):
                return snapshot, snapshot.view  # another process served the prepared boundary
        if swapped is None and not self._is_futile(snapshot):
            self._compact_by_threshold(snapshot.decided.futile)
        elif swapped and not swapped.is_enough:
            self._compact_by_threshold(0)
        return snapshot, self._compactor.reader.read_view()

    def _warn(self, snapshot: SessionSnapshot) -> None:
        """Notify listeners of the context in use if the policy warns about it."""
        listeners = self._compactor.listeners
        if listeners and (warning := find_warning(self.request.policy, snapshot.window)):
            self._compactor.notify(
                CompactionEventKind.CONTEXT_WARNING,
                policy=self.request.policy.name,
                message=context_warning(warning),
            )

    def _is_due(self, snapshot: SessionSnapshot) -> bool:
        """Return whether this request may compact by threshold."""
        return (
            is_due(self.request.policy, snapshot.window)
            and not snapshot.history.is_same_request
            and not self._was_this_turns(snapshot)
            and self.log.parent is None
        )

    def _was_this_turns(self, snapshot: SessionSnapshot) -> bool:
        """Return whether this turn was compacted by threshold before, if it may be only once."""
        boundary, switched = snapshot.boundary, snapshot.decided.switched
        if not self.options.once_a_turn or boundary is None:
            return False
        # A prepared boundary has another trigger than its activation.
        decision = self._compactor.reader.read_decision(switched) if switched else None
        served_by = decision.trigger if isinstance(decision, BoundaryActivated) else None
        if Trigger.THRESHOLD not in (boundary.trigger, served_by):
            return False
        served_from = snapshot.read_state_at(snapshot.history.effective_from)
        return served_from.turn == snapshot.state.turn

    def _is_futile(self, snapshot: SessionSnapshot) -> bool:
        """Return whether a compaction gained nothing before, with hardly any growth since."""
        futile = snapshot.decided.futile
        if not futile:
            return False
        if snapshot.window.request_tokens < self.request.limit < snapshot.window.used_tokens:
            return False  # the provider would refuse it, and there may be more to take out
        grown = snapshot.state.tokens - snapshot.read_state_at(futile).tokens
        return grown < self.options.regrowth * self.request.limit

    def _serve_prepared(
        self, snapshot: SessionSnapshot, request: CompactionRequest
    ) -> PreparedView | None:
        """Serve the prepared boundary if there is one that still fits; return None if not."""
        for _ in range(MAX_REPLANS):
            if not snapshot.decided.prepared:
                return None
            coming = read_prepared_view(self._compactor.reader, snapshot, request)
            try:
                is_served = self._compactor.serve(coming)
            except StalePlanError:  # another process decided at the same moment
                snapshot = self._compactor.take_snapshot(request)
                continue
            if not is_served:
                return None
            self.last = coming.outcome
            return coming
        return None

    def _compact_by_threshold(self, futile: int) -> None:
        """Compact; a compaction is known to gain nothing up to the position `futile`."""
        try:
            self._compact(self._automatic)
        except NothingToCompactError as nothing:
            self._compactor.note_futile(nothing, futile)
        except (CompactionVetoedError, StalePlanError, UnwrittenError):
            pass  # vetoed, overtaken or without a summary: keep the view

    def _begin_background(self, snapshot: SessionSnapshot) -> None:
        """Start writing the next summary in the background if it is nearly due and not running."""
        part, decided = self.options.prepare_at, snapshot.decided
        if (
            not part
            or self._compactor.decisions.is_held(decided.requested)
            or self._is_futile(snapshot)
        ):
            return
        preparations, size = self.log.context.preparations, snapshot.state.tokens
        if preparations.is_futile(
            self._lineage_id, size, self.options.regrowth * self.request.limit
        ):
            return
        used = ceil(snapshot.window.used_tokens / part)
        larger = replace(snapshot.window, in_use=used, usage=used)
        if not is_due(self.request.policy, larger) or self.log.parent is not None:
            return
        ahead = replace(
            self._automatic,
            trigger=Trigger.IDLE,
            activate=False,
            by=f"prepare() of process {getpid()}",
        )

        def prepare(cancellation: Cancellation) -> str | None:
            with translate_storage_errors(self.log.context.name):
                return self._compactor.prepare(ahead, cancellation)

        preparations.begin(self._lineage_id, size, prepare)

    def _wait_for_background(self) -> bool:
        """Wait for a summary being written in the background; return whether there was one."""
        with self._cancellable() as running:
            return self.log.context.preparations.join(self._lineage_id, running)

    def _compact(self, request: CompactionRequest) -> CompactionOutcome:
        with self._cancellable() as running:
            self.last = self._compactor.compact(request, running)
        return self.last

    @contextmanager
    def _cancellable(self) -> Iterator[Cancellation]:
        """Let `cancel()` stop what is done in this context."""
        self._running = running = Cancellation()
        try:
            yield running
        finally:
            self._running = None

    def _end_abandoned_request(self, requested: int) -> None:
        """Record that a request failed whose process has died, unless a worker takes it over."""
        decisions = self._compactor.decisions
        if not requested or decisions.is_held(requested):
            return
        left = cast(CompactionRequested, self._compactor.reader.read_decision(requested))
        if left.activate and left.by is not None:
            return
        if not left.activate and self.log.context.preparations.is_running(self._lineage_id):
            return  # the work outlives its lease, e.g. after the machine was asleep
        why = "the process that began it has died"
        decisions.record_failure(why, request_version=requested)
