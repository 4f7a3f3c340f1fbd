"""Compacts from end to end: plan, request, summary, gate, record."""

import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from eventsourcing.persistence import PersistenceError

from ....domain.compaction_events import Trigger
from ....domain.errors import (
    CompactionCancelledError,
    CompactionVetoedError,
    LeaseHeldError,
    LeaseLostError,
    NothingToCompactError,
    StalePlanError,
)
from ....domain.hooks import CompactionEventKind, Listener, ViewStats
from ....domain.policies.policy import describe_pruning
from ....domain.window import Window
from ....projections.planned_compaction import (
    PlannedCompaction,
    check_gain,
    plan_compaction,
)
from ....projections.rendering.catalog import render_view
from ...storage.view_reader import ViewReader
from ..telemetry import make_compaction_watch
from .background import Cancellation
from .event_sink import CompactionEventSink, make_boundary_message
from .lineage_writer import LineageWriter
from .options import CompactionRequest
from .outcome import (
    CompactionOutcome,
    explain_plan,
    make_idle_outcome,
    make_outcome,
    make_stored_outcome,
)
from .snapshot import PreparedView, SessionSnapshot
from .summary_chain import AcceptedDraft, Notify, SummaryChain, UnwrittenError, ignore_event

NON_FAILURES = (
    NothingToCompactError,
    LeaseHeldError,
    StalePlanError,
    PersistenceError,
    sqlite3.Error,
)
"""The errors that say nothing against another attempt, or cannot be recorded."""
UNUSED_SUMMARY_REASONS = {
    LeaseLostError: "lost-lease",
    NothingToCompactError: "nothing-gained",
    CompactionCancelledError: "cancelled",
    StalePlanError: "overtaken",
}
"""The reason, by error, why a written summary is not used; recorded as the rejection's rule."""
MAX_REPLANS = 3
"""How often an overtaken plan is made again before StalePlanError reaches the caller."""


class Compactor:
    """Compacts one session on one lineage, outside any transaction while a summary is written.

    It records a request before the summary is written, and a boundary or a failure after it. A
    request without either means that its process has died.
    """

    def __init__(self, reader: ViewReader, listeners: Sequence[Listener] = ()) -> None:
        self.reader = reader
        self.decisions = LineageWriter(reader)
        self.listeners = listeners

    def compact(
        self, request: CompactionRequest, cancellation: Cancellation | None = None
    ) -> CompactionOutcome:
        """Compact if the policy asks for it.

        Raises NothingToCompactError if the view would not shrink, UnwrittenError if no summary was
        accepted and the policy wants no fallback, CompactionVetoedError if a hook forbids it,
        CompactionCancelledError if it was cancelled, StalePlanError if others keep deciding
        boundaries. Under a lease it raises LeaseHeldError if another worker holds the session,
        LeaseLostError if one has taken over.
        """
        cancellation = cancellation or Cancellation()
        watch = make_compaction_watch(self.reader, request)
        if watch is None:
            return self._run(request, cancellation, self._make_sink())
        with watch:
            return watch.finish(self._run(request, cancellation, self._make_sink(watch)))

    def explain(self, request: CompactionRequest) -> CompactionOutcome:
        """Return what a compaction would do now, recording nothing and calling no model."""
        planned = self.plan(request)
        explanation = explain_plan(request, planned)
        if isinstance(planned, Window):
            return replace(make_idle_outcome(request, planned), explanation=explanation)
        by_rules = replace(request, chain=SummaryChain())
        written = self._write_summary(by_rules, planned, Cancellation())
        check_gain(planned, planned.count_post_tokens(written.draft.text), request)
        return replace(make_outcome(request, planned, written, None), explanation=explanation)

    def take_snapshot(self, request: CompactionRequest) -> SessionSnapshot:
        """Return the view and the window that a policy gets now."""
        return SessionSnapshot(self.reader, request)

    def plan(self, request: CompactionRequest) -> PlannedCompaction | Window:
        """Return the plan, or only the window if the policy asks for nothing.

        Raises NothingToCompactError if nothing can be gained.
        """
        snapshot = self.take_snapshot(request)
        found = plan_compaction(
            snapshot.window,
            request,
            snapshot.read_originals,
            snapshot.decided.decided,
            partial(render_view, snapshot.view),
        )
        return snapshot.window if found is None else found

    def _run(
        self, request: CompactionRequest, cancellation: Cancellation, sink: CompactionEventSink
    ) -> CompactionOutcome:
        if done := self._find_earlier(request):
            return done
        try:
            if request.by is not None:
                # While another worker holds the lease, do not run hooks and policies.
                self.decisions.check_free(request)
            planned = self.plan(request)
            if isinstance(planned, Window):
                return make_idle_outcome(request, planned)
            window = planned.window
            sink.add(
                trigger=request.trigger,
                policy=request.policy.name,
                before=ViewStats(window.tokens, len(window.items), int(window.summary is not None)),
                compacted_blocks=len(planned.settlement.removed_items),
                instructions=request.instructions,
            )
            request = replace(request, instructions=sink.ask_hooks())
            material = replace(planned.material, instructions=request.instructions)
            planned = replace(planned, material=material)
            version = self.decisions.record_request(request, planned)
        except Exception as error:  # a user's policy may raise anything
            if request.by is not None and not isinstance(error, NON_FAILURES):
                # Count failed attempts of all workers, whichever process made them.
                with suppress(PersistenceError):
                    self.decisions.record_failure(str(error) or type(error).__name__)
            raise
        sink.notify(CompactionEventKind.REQUESTED)
        try:
            return self._carry_out(request, planned, version, sink, cancellation)
        except BaseException as error:
            # A failed summary costs time and money, so do not retry before each call.
            is_futile = isinstance(error, NothingToCompactError) or (
                isinstance(error, UnwrittenError) and request.trigger is Trigger.THRESHOLD
            )
            # Also when the process is stopped, so that no request stays open. If even this cannot
            # be stored, the next worker picks the request up.
            with suppress(PersistenceError):
                self.decisions.record_failure(
                    str(error) or type(error).__name__,
                    request_version=version,
                    futile_at=planned.settlement.after if is_futile else None,
                    cancelled=isinstance(error, CompactionCancelledError),
                )
            sink.notify(CompactionEventKind.FAILED, reason=str(error))
            raise

    def _carry_out(
        self,
        request: CompactionRequest,
        planned: PlannedCompaction,
        version: int,
        sink: CompactionEventSink,
        cancellation: Cancellation,
    ) -> CompactionOutcome:
        """Write and record; if others have decided since, check what is still valid."""
        decisions = self.decisions
        written = self._write_summary(request, planned, cancellation, sink.notify, version)
        for attempt in range(1, MAX_REPLANS + 1):
            try:
                check_gain(planned, planned.count_post_tokens(written.draft.text), request)
                cancellation.check()
                boundary = decisions.record_boundary(request, planned, written, version)
            except tuple(UNUSED_SUMMARY_REASONS) as error:
                if not isinstance(error, StalePlanError) or attempt == MAX_REPLANS:
                    rule = UNUSED_SUMMARY_REASONS[type(error)]
                    decisions.record_spent(version, written, rule, str(error))
                    raise
            else:
                outcome = make_outcome(request, planned, written, boundary)
                self._notify_recorded(sink, request, planned, outcome)
                return outcome
            again = self._find_earlier(request) or self._replan(request, planned)
            if isinstance(again, CompactionOutcome):
                decisions.record_spent(version, written, "overtaken", again.reason)
                decisions.record_failure(again.reason, request_version=version)
                sink.notify(CompactionEventKind.FAILED, reason=again.reason)
                return again
            # If the other boundary did not change the material, its summary stays valid.
            if not again.is_written_from(planned.material):
                decisions.record_spent(
                    version, written, "overtaken", "others have decided meanwhile"
                )
                written = self._write_summary(request, again, cancellation, sink.notify, version)
            planned = again
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _replan(
        self, request: CompactionRequest, before: PlannedCompaction
    ) -> PlannedCompaction | CompactionOutcome:
        """Plan again on what others have decided."""
        try:
            planned = self.plan(request)
        except NothingToCompactError as error:
            now, why = self.take_snapshot(request).window, str(error)
        else:
            if not isinstance(planned, Window):
                return planned
            now, why = planned, "enough is free now"
        why = f"another compaction was decided while this one was written: {why}"
        return make_idle_outcome(request, before.window, now, why)

    def _write_summary(
        self,
        request: CompactionRequest,
        planned: PlannedCompaction,
        cancellation: Cancellation,
        notify: Notify = ignore_event,
        version: int | None = None,
    ) -> AcceptedDraft:
        read = partial(self.reader.store.read, self.reader.chain)
        try:
            return request.chain.write_planned(planned, read, cancellation, notify)
        except UnwrittenError as error:
            self.decisions.record_refusals(version, error.refusals)
            raise

    def _find_earlier(self, request: CompactionRequest) -> CompactionOutcome | None:
        """Return what an earlier compaction with the request's key did, None if there is none."""
        key = request.idempotency_key
        if key is None or (boundary := self.decisions.find_boundary(key)) is None:
            return None
        return make_stored_outcome(
            *self.reader.read_boundary(boundary)[:2], "done before under the same key"
        )

    # Boundaries that were recorded before

    def activate(
        self, prepared: int | None = None, trigger: Trigger | None = None, **details: Any
    ) -> int:
        """Serve the boundary that was prepared last; `prepared` demands that it is still that one.

        `trigger` says what set it off if no caller did; `details` go to listeners. Raises
        StalePlanError if another process has decided.
        """
        boundary = self.decisions.activate(prepared, trigger)
        message = make_boundary_message(self.reader.key, self.reader.read_boundary(boundary)[0])
        self._make_sink().notify_served(message, boundary=boundary, trigger=trigger, **details)
        return boundary

    def prepare(self, request: CompactionRequest, cancellation: Cancellation) -> str | None:
        """Record a boundary for a later activation; return why it could not, None if it did."""
        futile = self.decisions.read_state().futile
        try:
            outcome = self.compact(request, cancellation)
        except NothingToCompactError as nothing:
            self.note_futile(nothing, futile)
            return str(nothing)
        except (CompactionVetoedError, LeaseHeldError) as error:
            return str(error)
        return None if outcome.compacted else outcome.reason

    def serve(self, coming: PreparedView) -> bool:
        """Serve the prepared view if it fits, or drop it; return whether it was served.

        Raises StalePlanError if another process decided at the same moment.
        """
        prepared, summary = coming.boundary.originator_version, coming.history.summary
        trigger = coming.request.trigger
        details: dict[str, Any] = {
            "policy": coming.boundary.policy,
            "summarizer": summary.summarizer if summary else None,
            "before": ViewStats(coming.now.used_tokens, len(coming.snapshot.view.entries)),
        }
        if coming.misfit is None:
            after = ViewStats(coming.window.used_tokens, len(coming.history.entries))
            self.activate(prepared, trigger, **details, after=after)
        elif self.decisions.drop(prepared, coming.misfit):
            details |= {"boundary": prepared, "trigger": trigger}
            self.notify(CompactionEventKind.DROPPED, reason=coming.misfit, **details)
        return coming.misfit is None

    def note_futile(self, error: NothingToCompactError, known: int) -> None:
        """Record that nothing can be gained, unless it is known by now to another position."""
        if self.decisions.read_state().futile == known:
            self.decisions.record_failure(str(error), futile_at=self.decisions.read_head())

    def revert(self) -> int:
        """Serve the boundary beneath the active one again; return the reverted boundary."""
        reverted = self.decisions.revert()
        self.notify(CompactionEventKind.REVERTED, boundary=reverted)
        return reverted

    # Events

    def notify(self, moment: CompactionEventKind, **details: Any) -> None:
        """Notify listeners of an event outside of a running compaction."""
        self._make_sink().notify(moment, **details)

    def _make_sink(self, *first: Listener) -> CompactionEventSink:
        reader, listeners = self.reader, (*first, *self.listeners)
        return CompactionEventSink(listeners, reader.key, reader.namespace, reader.lineage)

    def _notify_recorded(
        self,
        sink: CompactionEventSink,
        request: CompactionRequest,
        planned: PlannedCompaction,
        outcome: CompactionOutcome,
    ) -> None:
        gone, boundary = planned.settlement.removed_items, outcome.boundary or 0
        has_summary = int(bool(outcome.summary))
        sink.add(
            boundary=boundary,
            summarizer=outcome.summarizer,
            after=ViewStats(outcome.post_tokens, planned.blocks_after, has_summary),
            compacted_blocks=len(gone),
        )
        sink.notify(CompactionEventKind.RECORDED)
        if request.activate:
            sink.notify_served(
                make_boundary_message(self.reader.key, self.reader.read_boundary(boundary)[0]),
                describe_pruning(request.policy, planned.window, gone),
            )
