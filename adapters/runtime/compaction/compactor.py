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
from ....domain.hooks import Happening, Listener, Moment, Stats
from ....domain.policies.policy import pruned_by
from ....domain.ranges import Ranges
from ....domain.session_events import BlockAppended
from ....domain.summaries.gate import check
from ....domain.summaries.notice import Notice
from ....domain.summaries.summariser import Draft, Material
from ....domain.window import Window
from ....projections.hook_payloads import of_boundary
from ....projections.planned import Planned, check_gain, standing
from ...storage.event_log.event_store import EventStore
from ...storage.view_reader import ViewReader
from ..telemetry.in_use import watch_of
from .cancellation import Cancellation
from .decisions import Decisions
from .explanation import explanation_of
from .listeners import told
from .order import Order
from .outcome import Outcome, done_before, no_need, outcome_of, overtaken
from .planner import Planner
from .story import CompactionStory
from .summary_chain import SummaryChain, UnwrittenError, Written
from .watch import Watch

NO_FAILURE = (
    NothingToCompactError,
    LeaseHeldError,
    StalePlanError,
    PersistenceError,
    sqlite3.Error,
)
"""What speaks against no further attempt, or cannot be noted anywhere."""
UNUSED = {
    LeaseLostError: "lost-lease",
    NothingToCompactError: "nothing-gained",
    CompactionCancelledError: "cancelled",
}
"""Why a summary that was written is not used, by what was raised: rules of their rejection."""
REPLANS = 3
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
        self.decisions = Decisions(store, reader)
        self.listeners = listeners

    def compact(self, order: Order, cancellation: Cancellation | None = None) -> Outcome:
        """Compact if the policy says so.

        Raises NothingToCompactError where the view would not become smaller, UnwrittenError where
        no summary can be had and the policy wants none to stand in, CompactionVetoedError where a
        hook forbids it, CompactionCancelledError where it was cancelled, StalePlanError where
        others decided boundaries again and again meanwhile; and of an order under a lease
        LeaseHeldError where somebody is at it, LeaseLostError where somebody has taken over.
        """
        with watch_of(self.reader, order) as watch:
            return watch.ended_with(self._compacted(order, cancellation or Cancellation(), watch))

    def _compacted(self, order: Order, cancellation: Cancellation, watch: Watch) -> Outcome:
        if done := self._done(order):
            return done
        try:
            if order.by is not None:
                # Whoever is at it is not to be disturbed by hooks and policies either.
                self.decisions.check_free(order)
            planned = self.planner.planned(order)
            if isinstance(planned, Window):
                return no_need(order, planned)
            story = CompactionStory((watch, *self.listeners), self.reader, order, planned)
            order, planned = self._heard(story, order, planned)
            request = self.decisions.request(order, planned)
        except Exception as error:  # whatever a user's policy raises
            if order.by is not None and not isinstance(error, NO_FAILURE):
                # Attempts of workers are counted, wherever and by whom they were made.
                with suppress(PersistenceError):
                    self.decisions.note_failed(str(error) or type(error).__name__)
            raise
        story.requested()
        try:
            return self._carried_out(order, planned, request, story, cancellation)
        except BaseException as error:
            # Also where the process is told to stop: the request is not left for others. If even
            # this cannot be stored, it stays open, and whoever comes next picks it up.
            with suppress(PersistenceError):
                self.decisions.give_up(
                    request,
                    str(error) or type(error).__name__,
                    futile_at=_futile(error, planned),
                    cancelled=isinstance(error, CompactionCancelledError),
                )
            story.failed(str(error))
            raise

    def explained(self, order: Order) -> Outcome:
        """What a compaction would do now, by rules alone: nothing is recorded, nobody is asked."""
        planned = self.planner.planned(order)
        explanation = explanation_of(order, planned)
        if isinstance(planned, Window):
            return replace(no_need(order, planned), explanation=explanation)
        written = self._written(replace(order, chain=SummaryChain()), planned, Cancellation())
        check_gain(planned, planned.post_tokens(written.draft.text), order)
        return replace(outcome_of(order, planned, written, None), explanation=explanation)

    def activate(
        self, prepared: int | None = None, trigger: Trigger | None = None, **details: Any
    ) -> int:
        """Serve the boundary that was prepared last; or `prepared`, if it is that still.

        `trigger` is what sets it off, where nobody asked for it, and `details` what listeners are
        told besides. Raises StalePlanError where others decided.
        """
        details |= {"trigger": trigger}
        boundary = self.decisions.activate(prepared, trigger)
        message = of_boundary(self.reader.key, self.reader.boundary(boundary)[0])
        self._tell(Moment.ACTIVATED, boundary, message=message, **details)
        self._tell(Moment.SESSION_START, boundary, source="compact", **details)
        return boundary

    def drop(self, prepared: int, reason: str, **details: Any) -> None:
        """Give up a prepared boundary, unless others have served or replaced it."""
        if self.decisions.drop(prepared, reason):
            self._tell(Moment.DROPPED, prepared, reason=reason, **details)

    def revert(self) -> int:
        """Serve again what the active boundary builds upon; returns the reverted boundary."""
        reverted = self.decisions.revert()
        self._tell(Moment.REVERTED, reverted)
        return reverted

    # The steps

    def _heard(
        self, story: CompactionStory, order: Order, planned: Planned
    ) -> tuple[Order, Planned]:
        """The order and its material, with what hooks have added."""
        verdict = story.asked()
        if verdict.veto is not None:
            raise CompactionVetoedError(f"a hook vetoed the compaction: {verdict.veto}")
        if verdict.instructions == order.instructions:
            return order, planned
        return (
            replace(order, instructions=verdict.instructions),
            replace(planned, material=replace(planned.material, instructions=verdict.instructions)),
        )

    def _carried_out(
        self,
        order: Order,
        planned: Planned,
        request: int,
        story: CompactionStory,
        cancellation: Cancellation,
    ) -> Outcome:
        """Write and record; where others decided meanwhile, look what is still valid."""
        written = self._written(order, planned, cancellation, story, request)
        for attempt in range(1, REPLANS + 1):
            try:
                post_tokens = planned.post_tokens(written.draft.text)
                check_gain(planned, post_tokens, order)
                cancellation.check()
                boundary = self.decisions.draw(order, planned, written, request)
            except StalePlanError:
                if attempt == REPLANS:
                    self.decisions.note_spent(
                        request, written, "overtaken", "others decided again and again"
                    )
                    raise
            except tuple(UNUSED) as error:
                self.decisions.note_spent(request, written, UNUSED[type(error)], str(error))
                raise
            else:
                gone = planned.settlement.gone
                after = Stats(post_tokens, planned.blocks_after, int(bool(written.draft.text)))
                pruned = pruned_by(order.policy, planned.window, gone)
                story.recorded(
                    boundary, written, after, len(gone), pruned=pruned, is_served=order.activate
                )
                return outcome_of(order, planned, written, boundary)
            if done := self._done(order):
                self.decisions.note_spent(
                    request, written, "overtaken", "it was done under the same key meanwhile"
                )
                story.failed(done.reason)
                return done
            again = self._planned_again(order, planned)
            if isinstance(again, Outcome):
                self.decisions.note_spent(request, written, "overtaken", again.reason)
                self.decisions.give_up(request, again.reason)
                story.failed(again.reason)
                return again
            # What another boundary left as it was need not be summarised a second time.
            if not again.is_written_from(planned.material):
                self.decisions.note_spent(
                    request, written, "overtaken", "others have decided meanwhile"
                )
                written = self._written(order, again, cancellation, story, request)
            planned = again
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _planned_again(self, order: Order, before: Planned) -> Planned | Outcome:
        """The plan on what others have decided; what they took out need not leave again."""
        try:
            planned = self.planner.planned(order)
        except NothingToCompactError as error:
            return overtaken(order, before.window, self.planner.seen(order).window, str(error))
        if isinstance(planned, Window):
            return overtaken(order, before.window, planned, "enough is free now")
        return planned

    def _written(
        self,
        order: Order,
        planned: Planned,
        cancellation: Cancellation,
        story: CompactionStory | None = None,
        request: int | None = None,
    ) -> Written:
        material = planned.material
        if not material.gone:
            draft, summariser = standing(planned)
            return Written(draft, summariser, 0.0, ())
        if not planned.plan.summary_tokens:
            notice = Notice()
            return Written(notice.summarise(material), notice.name, 0.0, ())

        def judge(draft: Draft) -> None:
            check(draft, material, user_texts=self._user_texts(draft, material))

        try:
            return order.chain.written(
                material, judge, cancellation, story, planned.plan.on_failure
            )
        except UnwrittenError as error:
            self.decisions.note_refused(request, error.refusals)
            raise

    def _user_texts(self, draft: Draft, material: Material) -> list[str]:
        """What users really said of what the draft may quote: all that leaves, and all it cites."""
        chain = self.store.session_chain(self.reader.namespace, self.reader.key)
        leaving = {
            item.position: item.block.text for item in material.gone if item.kind is Kind.USER
        }
        for recorded in self.store.read(chain, draft.cites - Ranges.of(leaving)):
            event = recorded.event
            if isinstance(event, BlockAppended) and event.block.kind is Kind.USER:
                leaving[recorded.position] = event.block.text
        return list(leaving.values())

    def _done(self, order: Order) -> Outcome | None:
        if order.idempotency_key is None:
            return None
        return done_before(self.store, self.reader, order.idempotency_key)

    def _tell(self, moment: Moment, boundary: int, **details: Any) -> None:
        reader = self.reader
        happening = Happening(
            moment, reader.key, reader.namespace, reader.lineage, boundary=boundary, **details
        )
        told(self.listeners, happening)


def _futile(error: BaseException, planned: Planned) -> int | None:
    """Up to where a loop need not try again, if that is what the error says."""
    # A summary that cannot be had takes its time and its price: not again before each call.
    is_unwritten = isinstance(error, UnwrittenError) and planned.window.trigger is Trigger.THRESHOLD
    is_futile = is_unwritten or isinstance(error, NothingToCompactError)
    return planned.settlement.after if is_futile else None
