"""One compaction from end to end: plan, request, summary, gate, record."""

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from typing import Any, cast

from eventsourcing.persistence import IntegrityError, PersistenceError

from ...domain.blocks import Kind
from ...domain.compaction import Compaction, CompactionState, lineage_id
from ...domain.compaction_events import CompactionRequested, Trigger
from ...domain.errors import (
    CompactionCancelledError,
    CompactionVetoedError,
    LeaseHeldError,
    LeaseLostError,
    NothingToCompactError,
    StalePlanError,
)
from ...domain.ranges import Ranges
from ...domain.session_events import BlockAppended
from ...domain.summaries.gate import check
from ...domain.summaries.summariser import Draft, Material
from ...domain.token_budget import estimate_text
from ...domain.window import Window
from ..event_log.event_store import EventStore
from ..event_log.recorder import AppendKey
from ..telemetry.in_use import watch_of
from ..view_reader import ViewReader
from .cancellation import Cancellation
from .happenings import Happening, Listener, Moment, Stats
from .order import Order
from .outcome import Outcome, done_before, no_need, outcome_of, overtaken
from .planner import Planned, Planner, check_gain
from .story import CompactionStory, told
from .summary_chain import Refusal, SummaryChain, UnwrittenError, Written
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
        self.listeners = listeners

    def compact(self, order: Order, cancellation: Cancellation | None = None) -> Outcome:
        """Compact if the policy says so.

        Raises NothingToCompactError where the view would not become smaller,
        CompactionVetoedError where a hook forbids it, CompactionCancelledError where it was
        cancelled, StalePlanError where others decided boundaries again and again meanwhile; and of
        an order under a lease LeaseHeldError where somebody is at it, LeaseLostError where
        somebody has taken over.
        """
        with watch_of(self.reader, order) as watch:
            return watch.ended_with(self._compacted(order, cancellation or Cancellation(), watch))

    def _compacted(self, order: Order, cancellation: Cancellation, watch: Watch) -> Outcome:
        if done := self._done(order):
            return done
        try:
            if order.by is not None:
                # Whoever is at it is not to be disturbed by hooks and policies either.
                with self._deciding():
                    self._check_free(self._own_lineage(), order)
            planned = self.planner.planned(order)
            if isinstance(planned, Window):
                return no_need(order, planned)
            story = CompactionStory((watch, *self.listeners), self.reader, order, planned)
            order, planned = self._heard(story, order, planned)
            request = self._request(order, planned)
        except Exception as error:  # whatever a user's policy raises
            if order.by is not None and not isinstance(error, NO_FAILURE):
                # Attempts of workers are counted, wherever and by whom they were made.
                with suppress(PersistenceError):
                    self.note_failed(str(error) or type(error).__name__)
            raise
        story.requested()
        try:
            return self._carried_out(order, planned, request, story, cancellation)
        except BaseException as error:
            # Also where the process is told to stop: the request is not left for others. If even
            # this cannot be stored, it stays open, and whoever comes next picks it up.
            with suppress(PersistenceError):
                self.give_up(
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
        if isinstance(planned, Window):
            return no_need(order, planned)
        written = self._written(replace(order, chain=SummaryChain()), planned, Cancellation())
        check_gain(planned, planned.post_tokens(written.draft.text), order)
        return outcome_of(order, planned, written, None)

    def activate(
        self, prepared: int | None = None, trigger: Trigger | None = None, **details: Any
    ) -> int:
        """Serve the boundary that was prepared last; or `prepared`, if it is that still.

        `trigger` is what sets it off, where nobody asked for it, and `details` what listeners are
        told besides. Raises StalePlanError where others decided.
        """
        details |= {"trigger": trigger}
        with self._deciding():
            compaction = self._own_lineage()
            boundary = compaction.state.prepared if prepared is None else prepared
            compaction.activate(boundary, self._head(), trigger)
            self._save(compaction)
        self._tell(Moment.ACTIVATED, boundary, **details)
        self._tell(Moment.SESSION_START, boundary, source="compact", **details)
        return boundary

    def drop(self, prepared: int, reason: str, **details: Any) -> None:
        """Give up a prepared boundary, unless others have served or replaced it."""
        dropped: list[int] = []

        def drop(lineage: Compaction) -> None:
            dropped.clear()
            if lineage.state.prepared == prepared:
                lineage.drop(prepared, reason)
                dropped.append(prepared)

        self._note(drop)
        if dropped:
            self._tell(Moment.DROPPED, prepared, reason=reason, **details)

    def revert(self) -> int:
        """Serve again what the active boundary builds upon; returns the reverted boundary."""
        with self._deciding():
            compaction = self._own_lineage()
            beneath = compaction.state.beneath
            below = self.reader.boundary(beneath)[0].previous if beneath else None
            reverted = compaction.revert(self._head(), beneath=below or 0)
            self._save(compaction)
        self._tell(Moment.REVERTED, reverted)
        return reverted

    def note_futile(self, error: NothingToCompactError) -> None:
        """Record that nothing can be gained, so that it is not tried again at the next call."""
        self._note(lambda lineage: lineage.fail(reason=str(error), after=self._head()))

    def note_failed(self, why: str) -> None:
        """Record that an attempt failed before anything could be requested."""

        def fail(lineage: Compaction) -> None:
            # It would end the request of whoever is at it.
            if not self._is_held(lineage.state.requested):
                lineage.fail(reason=why, after=lineage.state.futile)

        self._note(fail)

    def give_up(
        self, request: int, why: str, *, futile_at: int | None = None, cancelled: bool = False
    ) -> None:
        """Record that a request came to nothing, unless another one ended it."""

        def fail(lineage: Compaction) -> None:
            if lineage.state.requested == request:
                after = lineage.state.futile if futile_at is None else futile_at
                lineage.fail(reason=why, after=after, cancelled=cancelled)

        self._note(fail)

    def held_until(self, requested: int) -> datetime | None:
        """When the lease of an open request runs out; None where there is none."""
        if not requested:
            return None
        request = cast(CompactionRequested, self.reader.decision(requested))
        # Requests of before there were leases say nothing: whoever made them is long gone.
        return request.timestamp + timedelta(seconds=request.lease_s or 0.0)

    def state(self) -> CompactionState:
        """What was decided so far, as stored."""
        reader = self.reader
        chain = self.store.lineage_chain(reader.namespace, reader.key, reader.lineage)
        return self.store.lineage_state(chain)[1]

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
                boundary = self._record(order, planned, written, post_tokens, request)
            except StalePlanError:
                if attempt == REPLANS:
                    self._record_spent(
                        request, written, "overtaken", "others decided again and again"
                    )
                    raise
            except tuple(UNUSED) as error:
                self._record_spent(request, written, UNUSED[type(error)], str(error))
                raise
            else:
                after = Stats(post_tokens, planned.blocks_after)
                story.recorded(boundary, written, after, is_served=order.activate)
                return outcome_of(order, planned, written, boundary)
            if done := self._done(order):
                self._record_spent(
                    request, written, "overtaken", "it was done under the same key meanwhile"
                )
                return done
            again = self._planned_again(order, planned)
            if isinstance(again, Outcome):
                self._record_spent(request, written, "overtaken", again.reason)
                self.give_up(request, again.reason)
                return again
            # What another boundary left as it was need not be summarised a second time.
            if not again.is_written_from(planned.material):
                self._record_spent(request, written, "overtaken", "others have decided meanwhile")
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

    def _request(self, order: Order, planned: Planned) -> int:
        requested: list[int] = []

        def request(lineage: Compaction) -> None:
            if order.by is not None:
                self._check_free(lineage, order)
            version = lineage.request(
                trigger=order.trigger,
                policy=order.policy.name,
                settings=asdict(order.policy),
                after=planned.settlement.after,
                instructions=order.instructions,
                idempotency_key=order.idempotency_key,
                by=order.by,
                lease_s=order.chain.longest_s if order.lease_s is None else order.lease_s,
                activate=order.activate,
            )
            requested.append(version)

        self._note(request)
        return requested[-1]

    def _is_held(self, requested: int) -> bool:
        until = self.held_until(requested)
        return until is not None and until > self.store.clock()

    def _check_free(self, lineage: Compaction, order: Order) -> None:
        """Raises LeaseHeldError, or StalePlanError where it was found due on old news."""
        requested = lineage.state.requested
        until = self.held_until(requested)
        if until is not None and until > self.store.clock():
            request = cast(CompactionRequested, self.reader.decision(requested))
            raise LeaseHeldError(
                f"{request.by or 'whoever works in the session'} is compacting it,"
                f" until {until.isoformat(timespec='seconds')} at the longest",
                until,
            )
        if order.found_at is not None and lineage.stored_version > order.found_at:
            raise StalePlanError("it was compacted, or tried, since it was found due")

    def _written(
        self,
        order: Order,
        planned: Planned,
        cancellation: Cancellation,
        story: CompactionStory | None = None,
        request: int | None = None,
    ) -> Written:
        material = planned.material

        def judge(draft: Draft) -> None:
            check(draft, material, user_texts=self._user_texts(draft, material))

        try:
            return order.chain.written(material, judge, cancellation, story)
        except UnwrittenError as error:
            refusals = error.refusals
            if any(refusal.rule for refusal in refusals):
                self._note(lambda lineage: _reject(lineage, request, refusals))
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

    def _record(
        self, order: Order, planned: Planned, written: Written, post_tokens: int, request: int
    ) -> int:
        """Record boundary, summary and activation in one transaction; the boundary's number."""
        settlement, draft = planned.settlement, written.draft
        with self._deciding():
            compaction = self._own_lineage()
            leased_by = request if order.by is not None else None
            # Before anything is noted in the stream, which is not to be taken back.
            compaction.check_plan(planned.planned_on, leased_by)
            self._record_refusals(compaction, request, written)
            boundary = compaction.draw(
                {
                    "after": settlement.after,
                    "first_kept": settlement.first_kept,
                    "kept": settlement.kept,
                    "pinned": settlement.pinned,
                    "hidden": settlement.hidden,
                    "trims": settlement.trims,
                    "replacements": settlement.replacements,
                    "split_turn": settlement.split_turn,
                    "trigger": order.trigger,
                    "policy": order.policy.name,
                    "pre_tokens": planned.window.tokens,
                    "post_tokens": post_tokens,
                    "repairs": settlement.repairs,
                    "previous": planned.previous,
                },
                {
                    "text": draft.text,
                    "sections": draft.sections,
                    "digest": planned.material.digest,
                    "covers": settlement.covers,
                    "cites": draft.cites,
                    "summariser": written.summariser,
                    "model": draft.model,
                    "usage": draft.usage,
                    "cost_usd": draft.cost_usd,
                    # By rules it takes the processor's time, which says nothing of a provider.
                    "latency_s": round(written.latency_s, 3) if draft.model else None,
                    "tokens": estimate_text(draft.text),
                },
                planned_on=planned.planned_on,
                activate_at=self._head() if order.activate else None,
                leased_by=leased_by,
            )
            keys = []
            if order.idempotency_key:
                keys = [AppendKey(compaction.id, order.idempotency_key, boundary, boundary)]
            self._save(compaction, keys=keys)
            return boundary

    def _record_spent(self, request: int, written: Written, rule: str, why: str) -> None:
        """What a summary that is not used has cost: it was spent all the same."""
        draft, took = written.draft, written.latency_s
        spent = list(written.refusals)
        if draft.model:
            spent.append(
                Refusal(
                    written.summariser, why, rule, draft.model, draft.usage, draft.cost_usd, took
                )
            )
        if any(refusal.rule for refusal in spent):
            self._note(lambda lineage: _reject(lineage, request, spent))

    def _record_refusals(self, compaction: Compaction, request: int, written: Written) -> None:
        _reject(compaction, request, written.refusals)
        others = [r for r in written.refusals if r.summariser != written.summariser]
        if others:
            compaction.fail(
                reason="no draft of those that were tried was fit to serve",
                tried=tuple(map(str, others)),
                stood_in=written.summariser,
            )

    # The stream

    def _note(self, change: Callable[[Compaction], object]) -> None:
        """Record what depends on nobody's decision: again, where another process came first."""
        with self._deciding():
            while True:
                compaction = self._own_lineage()
                change(compaction)
                try:
                    self.store.save(compaction)
                except IntegrityError:
                    continue  # somebody else's event was stored: that made progress
                return

    def _save(self, compaction: Compaction, keys: Sequence[AppendKey] = ()) -> None:
        try:
            self.store.save(compaction, keys=keys)
        except IntegrityError as error:
            raise StalePlanError("another process decided a boundary at the same time") from error

    def _deciding(self) -> AbstractContextManager[Any]:
        reader = self.reader
        return self.store.deciding_on(lineage_id(reader.namespace, reader.key, reader.lineage))

    def _own_lineage(self) -> Compaction:
        reader = self.reader
        # Another process may have written to it: what is decided here is decided on what is stored.
        self.store.refresh(lineage_id(reader.namespace, reader.key, reader.lineage))
        return self.store.opened_compaction(reader.namespace, reader.key, reader.lineage)

    def _head(self) -> int:
        chain = self.store.session_chain(self.reader.namespace, self.reader.key)
        return self.store.head(chain)[0]

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


def _reject(compaction: Compaction, request: int | None, refusals: Sequence[Refusal]) -> None:
    for refusal in refusals:
        if refusal.rule is not None:
            compaction.reject(
                request=request,
                reason=refusal.reason,
                rule=refusal.rule,
                summariser=refusal.summariser,
                model=refusal.model,
                usage=refusal.usage,
                cost_usd=refusal.cost_usd,
                latency_s=refusal.latency_s and round(refusal.latency_s, 3),
            )


def _futile(error: BaseException, planned: Planned) -> int | None:
    """Up to where there is nothing to gain, if that is what the error says."""
    return planned.settlement.after if isinstance(error, NothingToCompactError) else None
