"""One compaction from end to end: plan, request, summary, gate, record."""

import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from eventsourcing.persistence import PersistenceError

from ....domain.blocks import Kind
from ....domain.compaction_events import Trigger
from ....domain.errors import (
    CompactionCancelledError,
    CompactionVetoedError,
    LeaseHeldError,
    LeaseLostError,
    NothingToCompactError,
    StalePlanError,
)
from ....domain.hooks import CompactionEvent, CompactionEventKind, Listener, ViewStats
from ....domain.policies.policy import describe_pruning
from ....domain.ranges import Ranges
from ....domain.session_events import BlockAppended
from ....domain.summaries.gate import check_draft
from ....domain.summaries.notice import NoticeSummarizer
from ....domain.summaries.summarizer import Draft, Material
from ....domain.window import Window
from ....projections.hook_payloads import of_boundary
from ....projections.planned_compaction import PlannedCompaction, check_gain, reuse_summary
from ...storage.event_log.event_store import EventStore
from ...storage.view_reader import ViewReader
from ..telemetry.activation import make_compaction_watch
from .cancellation import Cancellation
from .compaction_observer import CompactionObserver
from .compaction_request import CompactionRequest
from .event_sink import CompactionEventSink
from .explanation import explain_plan
from .lineage_writer import LineageWriter
from .listeners import notify_listeners
from .outcome import (
    CompactionOutcome,
    find_earlier_outcome,
    make_no_need_outcome,
    make_outcome,
    make_overtaken_outcome,
)
from .planner import Planner
from .summary_chain import AcceptedDraft, SummaryChain, UnwrittenError

NON_FAILURES = (
    NothingToCompactError,
    LeaseHeldError,
    StalePlanError,
    PersistenceError,
    sqlite3.Error,
)
"""What speaks against no further attempt, or cannot be noted anywhere."""
UNUSED_SUMMARY_REASONS = {
    LeaseLostError: "lost-lease",
    NothingToCompactError: "nothing-gained",
    CompactionCancelledError: "cancelled",
}
"""Why a summary that was written is not used, by what was raised: rules of their rejection."""
MAX_REPLANS = 3
"""How often a plan that was overtaken is made anew before the conflict is the caller's."""


class Compactor:
    """Compacts one session on one lineage; never holds a transaction while a summary is written.

    A request is recorded before the summary is written, and a boundary or a failure after it: a
    request without either says that whoever was at it has died.
    """

    def __init__(
        self, store: EventStore, reader: ViewReader, listeners: Sequence[Listener] = ()
    ) -> None:
        self.store = store
        self.reader = reader
        self.planner = Planner(store, reader)
        self.decisions = LineageWriter(store, reader)
        self.listeners = listeners

    def compact(
        self, order: CompactionRequest, cancellation: Cancellation | None = None
    ) -> CompactionOutcome:
        """Compact if the policy says so.

        Raises NothingToCompactError where the view would not become smaller, UnwrittenError where
        no summary can be had and the policy wants none to stand in, CompactionVetoedError where a
        hook forbids it, CompactionCancelledError where it was cancelled, StalePlanError where
        others decided boundaries again and again meanwhile; and of an order under a lease
        LeaseHeldError where somebody is at it, LeaseLostError where somebody has taken over.
        """
        with make_compaction_watch(self.reader, order) as watch:
            return watch.finish(self._run_compaction(order, cancellation or Cancellation(), watch))

    def _run_compaction(
        self, order: CompactionRequest, cancellation: Cancellation, watch: CompactionObserver
    ) -> CompactionOutcome:
        if done := self._find_earlier(order):
            return done
        try:
            if order.by is not None:
                # Whoever is at it is not to be disturbed by hooks and policies either.
                self.decisions.check_free(order)
            planned = self.planner.plan(order)
            if isinstance(planned, Window):
                return make_no_need_outcome(order, planned)
            story = CompactionEventSink((watch, *self.listeners), self.reader, order, planned)
            order, planned = self._apply_hooks(story, order, planned)
            request = self.decisions.record_request(order, planned)
        except Exception as error:  # whatever a user's policy raises
            if order.by is not None and not isinstance(error, NON_FAILURES):
                # Attempts of workers are counted, wherever and by whom they were made.
                with suppress(PersistenceError):
                    self.decisions.record_failure(str(error) or type(error).__name__)
            raise
        story.note_request()
        try:
            return self._carry_out(order, planned, request, story, cancellation)
        except BaseException as error:
            # Also where the process is told to stop: the request is not left for others. If even
            # this cannot be stored, it stays open, and whoever comes next picks it up.
            with suppress(PersistenceError):
                self.decisions.give_up(
                    request,
                    str(error) or type(error).__name__,
                    futile_at=_find_futile_position(error, planned),
                    cancelled=isinstance(error, CompactionCancelledError),
                )
            story.note_failure(str(error))
            raise

    def explain(self, order: CompactionRequest) -> CompactionOutcome:
        """What a compaction would do now, by rules alone: nothing is recorded, nobody is asked."""
        planned = self.planner.plan(order)
        explanation = explain_plan(order, planned)
        if isinstance(planned, Window):
            return replace(make_no_need_outcome(order, planned), explanation=explanation)
        written = self._write_summary(replace(order, chain=SummaryChain()), planned, Cancellation())
        check_gain(planned, planned.count_post_tokens(written.draft.text), order)
        return replace(make_outcome(order, planned, written, None), explanation=explanation)

    def activate(
        self, prepared: int | None = None, trigger: Trigger | None = None, **details: Any
    ) -> int:
        """Serve the boundary that was prepared last; or `prepared`, if it is that still.

        `trigger` is what sets it off, where nobody asked for it, and `details` what listeners are
        told besides. Raises StalePlanError where others decided.
        """
        details |= {"trigger": trigger}
        boundary = self.decisions.activate(prepared, trigger)
        message = of_boundary(self.reader.key, self.reader.read_boundary(boundary)[0])
        self._notify(CompactionEventKind.ACTIVATED, boundary, message=message, **details)
        self._notify(CompactionEventKind.SESSION_START, boundary, source="compact", **details)
        return boundary

    def drop(self, prepared: int, reason: str, **details: Any) -> None:
        """Give up a prepared boundary, unless others have served or replaced it."""
        if self.decisions.drop(prepared, reason):
            self._notify(CompactionEventKind.DROPPED, prepared, reason=reason, **details)

    def revert(self) -> int:
        """Serve again what the active boundary builds upon; returns the reverted boundary."""
        reverted = self.decisions.revert()
        self._notify(CompactionEventKind.REVERTED, reverted)
        return reverted

    # The steps

    def _apply_hooks(
        self, story: CompactionEventSink, order: CompactionRequest, planned: PlannedCompaction
    ) -> tuple[CompactionRequest, PlannedCompaction]:
        """The order and its material, with what hooks have added."""
        verdict = story.ask_hooks()
        if verdict.veto is not None:
            raise CompactionVetoedError(f"a hook vetoed the compaction: {verdict.veto}")
        if verdict.instructions == order.instructions:
            return order, planned
        return (
            replace(order, instructions=verdict.instructions),
            replace(planned, material=replace(planned.material, instructions=verdict.instructions)),
        )

    def _carry_out(
        self,
        order: CompactionRequest,
        planned: PlannedCompaction,
        request: int,
        story: CompactionEventSink,
        cancellation: Cancellation,
    ) -> CompactionOutcome:
        """Write and record; where others decided meanwhile, look what is still valid."""
        written = self._write_summary(order, planned, cancellation, story, request)
        for attempt in range(1, MAX_REPLANS + 1):
            try:
                post_tokens = planned.count_post_tokens(written.draft.text)
                check_gain(planned, post_tokens, order)
                cancellation.check()
                boundary = self.decisions.record_boundary(order, planned, written, request)
            except StalePlanError:
                if attempt == MAX_REPLANS:
                    self.decisions.record_spent(
                        request, written, "overtaken", "others decided again and again"
                    )
                    raise
            except tuple(UNUSED_SUMMARY_REASONS) as error:
                self.decisions.record_spent(
                    request, written, UNUSED_SUMMARY_REASONS[type(error)], str(error)
                )
                raise
            else:
                gone = planned.settlement.removed_items
                after = ViewStats(post_tokens, planned.blocks_after, int(bool(written.draft.text)))
                pruned = describe_pruning(order.policy, planned.window, gone)
                story.note_boundary(
                    boundary, written, after, len(gone), pruned=pruned, is_served=order.activate
                )
                return make_outcome(order, planned, written, boundary)
            if done := self._find_earlier(order):
                self.decisions.record_spent(
                    request, written, "overtaken", "it was done under the same key meanwhile"
                )
                story.note_failure(done.reason)
                return done
            again = self._replan(order, planned)
            if isinstance(again, CompactionOutcome):
                self.decisions.record_spent(request, written, "overtaken", again.reason)
                self.decisions.give_up(request, again.reason)
                story.note_failure(again.reason)
                return again
            # What another boundary left as it was need not be summarised a second time.
            if not again.is_written_from(planned.material):
                self.decisions.record_spent(
                    request, written, "overtaken", "others have decided meanwhile"
                )
                written = self._write_summary(order, again, cancellation, story, request)
            planned = again
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _replan(
        self, order: CompactionRequest, before: PlannedCompaction
    ) -> PlannedCompaction | CompactionOutcome:
        """The plan on what others have decided; what they took out need not leave again."""
        try:
            planned = self.planner.plan(order)
        except NothingToCompactError as error:
            return make_overtaken_outcome(
                order, before.window, self.planner.take_snapshot(order).window, str(error)
            )
        if isinstance(planned, Window):
            return make_overtaken_outcome(order, before.window, planned, "enough is free now")
        return planned

    def _write_summary(
        self,
        order: CompactionRequest,
        planned: PlannedCompaction,
        cancellation: Cancellation,
        story: CompactionEventSink | None = None,
        request: int | None = None,
    ) -> AcceptedDraft:
        material = planned.material
        if not material.removed_items:
            draft, summariser = reuse_summary(planned)
            return AcceptedDraft(draft, summariser, 0.0, ())
        if not planned.plan.summary_tokens:
            notice = NoticeSummarizer()
            return AcceptedDraft(notice.summarize(material), notice.name, 0.0, ())

        def judge(draft: Draft) -> None:
            check_draft(draft, material, user_texts=self._find_user_texts(draft, material))

        try:
            return order.chain.write(material, judge, cancellation, story, planned.plan.on_failure)
        except UnwrittenError as error:
            self.decisions.record_refusals(request, error.refusals)
            raise

    def _find_user_texts(self, draft: Draft, material: Material) -> list[str]:
        """What users really said of what the draft may quote: all that leaves, and all it cites."""
        chain = self.store.find_session_chain(self.reader.namespace, self.reader.key)
        leaving = {
            item.position: item.block.text
            for item in material.removed_items
            if item.kind is Kind.USER
        }
        for recorded in self.store.read(chain, draft.cites - Ranges.of(leaving)):
            event = recorded.event
            if isinstance(event, BlockAppended) and event.block.kind is Kind.USER:
                leaving[recorded.position] = event.block.text
        return list(leaving.values())

    def _find_earlier(self, order: CompactionRequest) -> CompactionOutcome | None:
        if order.idempotency_key is None:
            return None
        return find_earlier_outcome(self.store, self.reader, order.idempotency_key)

    def _notify(self, moment: CompactionEventKind, boundary: int, **details: Any) -> None:
        reader = self.reader
        happening = CompactionEvent(
            moment, reader.key, reader.namespace, reader.lineage, boundary=boundary, **details
        )
        notify_listeners(self.listeners, happening)


def _find_futile_position(error: BaseException, planned: PlannedCompaction) -> int | None:
    """Up to where a loop need not try again, if that is what the error says."""
    # A summary that cannot be had takes its time and its price: not again before each call.
    is_unwritten = isinstance(error, UnwrittenError) and planned.window.trigger is Trigger.THRESHOLD
    is_futile = is_unwritten or isinstance(error, NothingToCompactError)
    return planned.settlement.after if is_futile else None
