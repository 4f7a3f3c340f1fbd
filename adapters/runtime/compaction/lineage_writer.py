"""What is decided on a lineage: stored at the version that it was decided on, or not at all."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any, cast

from eventsourcing.persistence import IntegrityError

from ....domain.compaction import Compaction, CompactionState, derive_lineage_id
from ....domain.compaction_events import CompactionRequested, Trigger
from ....domain.errors import LeaseHeldError, NothingToCompactError, StalePlanError
from ....projections.planned_compaction import (
    PlannedCompaction,
    make_boundary_fields,
    make_summary_fields,
)
from ...storage.event_log.event_store import EventStore
from ...storage.event_log.recorder import AppendKey
from ...storage.view_reader import ViewReader
from .compaction_request import CompactionRequest
from .summary_chain import AcceptedDraft, DraftRefusal


class LineageWriter:
    """Requests, boundaries and what came of them, on one lineage of one session.

    A boundary is stored on the decision that it was planned on; what depends on nobody's decision
    (that somebody asked, that an attempt failed) is stored whoever came first.
    """

    def __init__(self, store: EventStore, reader: ViewReader) -> None:
        self.store = store
        self.reader = reader

    def read_state(self) -> CompactionState:
        """What was decided so far, as stored."""
        reader = self.reader
        chain = self.store.find_lineage_chain(reader.namespace, reader.key, reader.lineage)
        return self.store.read_lineage_state(chain)[1]

    # Requests

    def record_request(self, order: CompactionRequest, planned: PlannedCompaction) -> int:
        """Record that a compaction begins; the request's version.

        Raises as `check_free` does, of an order under a lease.
        """
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
                lease_s=order.chain.max_duration_s if order.lease_s is None else order.lease_s,
                activate=order.activate,
            )
            requested.append(version)

        self._record_always(request)
        return requested[-1]

    def is_held(self, requested: int) -> bool:
        until = self.find_lease_end(requested)
        return until is not None and until > self.store.clock()

    def check_free(self, order: CompactionRequest) -> None:
        """Raises LeaseHeldError, or StalePlanError where it was found due on old news."""
        with self._lock():
            self._check_free(self._open_lineage(), order)

    def _check_free(self, lineage: Compaction, order: CompactionRequest) -> None:
        requested = lineage.state.requested
        until = self.find_lease_end(requested)
        if until is not None and until > self.store.clock():
            request = cast(CompactionRequested, self.reader.read_decision(requested))
            raise LeaseHeldError(
                f"{request.by or 'whoever works in the session'} is compacting it,"
                f" until {until.isoformat(timespec='seconds')} at the longest",
                until,
            )
        if order.found_at is not None and lineage.stored_version > order.found_at:
            raise StalePlanError("it was compacted, or tried, since it was found due")

    def find_lease_end(self, requested: int) -> datetime | None:
        """When the lease of an open request runs out; None where there is none."""
        if not requested:
            return None
        request = cast(CompactionRequested, self.reader.read_decision(requested))
        # Requests of before there were leases say nothing: whoever made them is long gone.
        return request.timestamp + timedelta(seconds=request.lease_s or 0.0)

    # Boundaries

    def activate(self, prepared: int | None, trigger: Trigger | None) -> int:
        """Serve the boundary that was prepared last; or `prepared`, if it is that still."""
        with self._lock():
            compaction = self._open_lineage()
            boundary = compaction.state.prepared if prepared is None else prepared
            compaction.activate(boundary, self.read_head(), trigger)
            self._save(compaction)
            return boundary

    def drop(self, prepared: int, reason: str) -> bool:
        """Give up a prepared boundary; False where others have served or replaced it."""
        dropped: list[int] = []

        def drop(lineage: Compaction) -> None:
            dropped.clear()
            if lineage.state.prepared == prepared:
                lineage.drop(prepared, reason)
                dropped.append(prepared)

        self._record_always(drop)
        return bool(dropped)

    def revert(self) -> int:
        """Serve again what the active boundary builds upon; returns the reverted boundary."""
        with self._lock():
            compaction = self._open_lineage()
            beneath = compaction.state.beneath
            below = self.reader.read_boundary(beneath)[0].previous if beneath else None
            reverted = compaction.revert(self.read_head(), beneath=below or 0)
            self._save(compaction)
            return reverted

    def record_boundary(
        self,
        order: CompactionRequest,
        planned: PlannedCompaction,
        written: AcceptedDraft,
        request: int,
    ) -> int:
        """Record boundary, summary and activation in one transaction; the boundary's number."""
        draft = written.draft
        with self._lock():
            compaction = self._open_lineage()
            leased_by = request if order.by is not None else None
            # Before anything is noted in the stream, which is not to be taken back.
            compaction.check_plan(planned.based_on, leased_by)
            self._record_refusal(compaction, request, written)
            summary = make_summary_fields(planned, draft, written.summarizer)
            if summary is not None and draft.model:
                # By rules it takes the processor's time, which says nothing of a provider.
                summary["latency_s"] = round(written.latency_s, 3)
            boundary = compaction.record_boundary(
                make_boundary_fields(planned, order, draft.text),
                summary,
                based_on=planned.based_on,
                activate_at=self.read_head() if order.activate else None,
                leased_by=leased_by,
            )
            keys = []
            if order.idempotency_key:
                keys = [AppendKey(compaction.id, order.idempotency_key, boundary, boundary)]
            self._save(compaction, keys=keys)
            return boundary

    def record_spent(self, request: int, written: AcceptedDraft, rule: str, why: str) -> None:
        """What a summary that is not used has cost: it was spent all the same."""
        draft, took = written.draft, written.latency_s
        spent = list(written.refusals)
        if draft.model:
            spent.append(
                DraftRefusal(
                    written.summarizer, why, rule, draft.model, draft.usage, draft.cost_usd, took
                )
            )
        self.record_refusals(request, spent)

    def record_refusals(self, request: int | None, refusals: Sequence[DraftRefusal]) -> None:
        """The drafts that a rule refused, where nothing else is recorded of them."""
        if any(refusal.rule for refusal in refusals):
            self._record_always(lambda lineage: _reject(lineage, request, refusals))

    def _record_refusal(self, compaction: Compaction, request: int, written: AcceptedDraft) -> None:
        _reject(compaction, request, written.refusals)
        others = [r for r in written.refusals if r.summarizer != written.summarizer]
        if others:
            compaction.fail(
                reason="no draft of those that were tried was fit to serve",
                tried=tuple(map(str, others)),
                stood_in=written.summarizer,
            )

    # What came to nothing

    def record_futile(self, error: NothingToCompactError) -> None:
        """Record that nothing can be gained, so that it is not tried again at the next call."""
        self._record_always(lambda lineage: lineage.fail(reason=str(error), after=self.read_head()))

    def record_failure(self, why: str) -> None:
        """Record that an attempt failed before anything could be requested."""

        def fail(lineage: Compaction) -> None:
            # It would end the request of whoever is at it.
            if not self.is_held(lineage.state.requested):
                lineage.fail(reason=why, after=lineage.state.futile)

        self._record_always(fail)

    def give_up(
        self, request: int, why: str, *, futile_at: int | None = None, cancelled: bool = False
    ) -> None:
        """Record that a request came to nothing, unless another one ended it."""

        def fail(lineage: Compaction) -> None:
            if lineage.state.requested == request:
                after = lineage.state.futile if futile_at is None else futile_at
                lineage.fail(reason=why, after=after, cancelled=cancelled)

        self._record_always(fail)

    # The stream

    def _record_always(self, change: Callable[[Compaction], object]) -> None:
        """Record what depends on nobody's decision: again, where another process came first."""
        with self._lock():
            while True:
                compaction = self._open_lineage()
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

    def _lock(self) -> AbstractContextManager[Any]:
        reader = self.reader
        return self.store.lock_streams(
            derive_lineage_id(reader.namespace, reader.key, reader.lineage)
        )

    def _open_lineage(self) -> Compaction:
        reader = self.reader
        # Another process may have written to it: what is decided here is decided on what is stored.
        self.store.refresh(derive_lineage_id(reader.namespace, reader.key, reader.lineage))
        return self.store.open_compaction(reader.namespace, reader.key, reader.lineage)

    def read_head(self) -> int:
        """The session's newest position."""
        chain = self.store.find_session_chain(self.reader.namespace, self.reader.key)
        return self.store.read_head(chain)[0]


def _reject(compaction: Compaction, request: int | None, refusals: Sequence[DraftRefusal]) -> None:
    for refusal in refusals:
        if refusal.rule is not None:
            compaction.reject(
                request=request,
                reason=refusal.reason,
                rule=refusal.rule,
                summariser=refusal.summarizer,
                model=refusal.model,
                usage=refusal.usage,
                cost_usd=refusal.cost_usd,
                latency_s=refusal.latency_s and round(refusal.latency_s, 3),
            )
