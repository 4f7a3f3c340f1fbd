"""Records decisions on a lineage, each at the version on which it was decided."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any, TypeVar, cast

from eventsourcing.persistence import IntegrityError

from ....domain.compaction import Compaction, CompactionState, derive_lineage_id
from ....domain.compaction_events import CompactionRequested, Trigger
from ....domain.errors import LeaseHeldError, NotFoundError, StalePlanError
from ....projections.planned_compaction import (
    PlannedCompaction,
    make_boundary_fields,
    make_summary_fields,
)
from ...storage.event_log.log_tables import AppendKey
from ...storage.view_reader import ViewReader
from .options import CompactionRequest
from .summary_chain import AcceptedDraft, DraftRefusal

_T = TypeVar("_T")


class LineageWriter:
    """Records requests, boundaries and their results on one lineage of one session.

    A boundary is stored only on the decision on which it was planned. Requests and failures do not
    depend on other decisions and are stored in any order.
    """

    def __init__(self, reader: ViewReader) -> None:
        self.store = reader.store
        self.reader = reader
        self._id = derive_lineage_id(
            reader.namespace, reader.key, reader.lineage, reader.generation
        )

    def read_state(self) -> CompactionState:
        return self.store.read_lineage_state(self.reader.lineage_chain)[1]

    def read_head(self) -> int:
        return self.store.read_head(self.reader.chain)[0]

    def find_boundary(self, idempotency_key: str) -> int | None:
        """Return the boundary that was recorded under the key; None if there is none."""
        done = self.store.select_key(self._id, idempotency_key)
        return done.first if done else None

    def record_request(self, request: CompactionRequest, planned: PlannedCompaction) -> int:
        """Record that a compaction begins; return the request's version.

        Raises as `check_free` does if the request is made under a lease.
        """
        lease_s = request.chain.max_duration_s if request.lease_s is None else request.lease_s

        def record(lineage: Compaction) -> int:
            if request.by is not None:
                self._check_free(lineage, request)
            return lineage.request(
                trigger=request.trigger,
                policy=request.policy.name,
                settings=asdict(request.policy),
                after=planned.settlement.after,
                instructions=request.instructions,
                idempotency_key=request.idempotency_key,
                by=request.by,
                lease_s=lease_s,
                activate=request.activate,
            )

        return self._record_always(record)

    def is_held(self, requested: int) -> bool:
        return self._find_lease(requested) is not None

    def check_free(self, request: CompactionRequest) -> None:
        """Raise LeaseHeldError if another worker has it, StalePlanError if the session changed."""
        with self._lock():
            self._check_free(self._open_lineage(), request)

    def _check_free(self, lineage: Compaction, request: CompactionRequest) -> None:
        if held := self._find_lease(lineage.state.requested):
            holder, until = held
            raise LeaseHeldError(
                f"{holder or 'an agent in the session'} is compacting it,"
                f" until {until.isoformat(timespec='seconds')} at the longest",
                until,
            )
        if request.found_at is not None and lineage.stored_version > request.found_at:
            raise StalePlanError("it was compacted, or tried, since it was found due")

    def _find_lease(self, requested: int) -> tuple[str | None, datetime] | None:
        """Return the worker with the lease of an open request, and the lease's end; or None."""
        if not requested:
            return None
        request = cast(CompactionRequested, self.reader.read_decision(requested))
        # Requests from before there were leases have none; their processes are long gone.
        until = request.timestamp + timedelta(seconds=request.lease_s or 0.0)
        return (request.by, until) if until > self.store.clock() else None

    def activate(self, prepared: int | None, trigger: Trigger | None) -> int:
        """Serve the boundary that was prepared last; `prepared` demands that it is still that."""
        with self._decide() as compaction:
            boundary = compaction.state.prepared if prepared is None else prepared
            compaction.activate(boundary, self.read_head(), trigger)
        return boundary

    def drop(self, prepared: int, reason: str) -> bool:
        """Give up a prepared boundary; return False if others have served or replaced it."""

        def drop(lineage: Compaction) -> bool:
            if lineage.state.prepared != prepared:
                return False
            lineage.drop(prepared, reason)
            return True

        return self._record_always(drop)

    def revert(self) -> int:
        """Serve the boundary beneath the active one again; return the reverted boundary."""
        with self._decide() as compaction:
            beneath = compaction.state.beneath
            below = self.reader.read_boundary(beneath)[0].previous if beneath else None
            return compaction.revert(self.read_head(), beneath=below or 0)

    def record_boundary(
        self,
        request: CompactionRequest,
        planned: PlannedCompaction,
        written: AcceptedDraft,
        request_version: int,
    ) -> int:
        """Record boundary, summary and activation in one transaction; return the boundary."""
        draft, keys = written.draft, list[AppendKey]()
        with self._decide(keys) as compaction:
            leased_by = request_version if request.by is not None else None
            # Check before recording anything, since the stream cannot be rolled back.
            compaction.check_plan(planned.based_on, leased_by)
            _reject(compaction, request_version, written.refusals)
            if others := [one for one in written.refusals if one.summarizer != written.summarizer]:
                compaction.fail(
                    reason="no draft of those that were tried was fit to serve",
                    tried=tuple(map(str, others)),
                    stood_in=written.summarizer,
                )
            summary = make_summary_fields(planned, draft, written.summarizer)
            if summary is not None and draft.model:
                # A summary without a model takes only local time, not a provider's.
                summary["latency_s"] = round(written.latency_s, 3)
            boundary = compaction.record_boundary(
                make_boundary_fields(planned, request, draft.text),
                summary,
                based_on=planned.based_on,
                activate_at=self.read_head() if request.activate else None,
                leased_by=leased_by,
            )
            if key := request.idempotency_key:
                keys.append(AppendKey(compaction.id, key, boundary, boundary))
        return boundary

    def record_spent(
        self, request_version: int, written: AcceptedDraft, rule: str, why: str
    ) -> None:
        """Record what an unused summary has cost."""
        spent = list(written.refusals)
        if written.draft.model:
            details = written.to_details()
            spent.append(DraftRefusal(details.pop("summarizer"), why, rule, **details))
        self.record_refusals(request_version, spent)

    def record_refusals(
        self, request_version: int | None, refusals: Sequence[DraftRefusal]
    ) -> None:
        """Record the drafts that a rule refused, if no boundary records them."""
        if any(refusal.rule for refusal in refusals):
            self._record_always(lambda lineage: _reject(lineage, request_version, refusals))

    def record_failure(
        self,
        why: str,
        *,
        request_version: int | None = None,
        futile_at: int | None = None,
        cancelled: bool = False,
    ) -> None:
        """Record that a request failed, or an attempt before its request.

        Records nothing if another event has ended the request, or if it would end another worker's.
        A loop does not try again before the session grows past `futile_at`.
        """

        def fail(lineage: Compaction) -> None:
            requested = lineage.state.requested
            if request_version is None:
                is_over = self.is_held(requested)
            else:
                is_over = requested != request_version
            if not is_over:
                after = lineage.state.futile if futile_at is None else futile_at
                lineage.fail(reason=why, after=after, cancelled=cancelled)

        self._record_always(fail)

    def _record_always(self, change: Callable[[Compaction], _T]) -> _T:
        """Record what no other decision can invalidate, again if another process was faster."""
        with self._lock():
            while True:
                compaction = self._open_lineage()
                result = change(compaction)
                try:
                    self.store.save(compaction)
                except IntegrityError:
                    continue  # another process stored an event, so there is progress
                return result

    @contextmanager
    def _decide(self, keys: Sequence[AppendKey] = ()) -> Iterator[Compaction]:
        """Store what is decided in this context; raise StalePlanError if others were faster."""
        with self._lock():
            compaction = self._open_lineage()
            yield compaction
            try:
                self.store.save(compaction, keys=keys)
            except IntegrityError as error:
                raise StalePlanError(
                    "another process decided a boundary at the same time"
                ) from error

    def _lock(self) -> AbstractContextManager[Any]:
        return self.store.lock_streams(self._id)

    def _open_lineage(self) -> Compaction:
        # Another process may have written to the lineage: decide on what is stored.
        self.store.refresh(self._id)
        reader = self.reader
        lineage = self.store.open_compaction(reader.namespace, reader.key, reader.lineage)
        if lineage.state.deleted:  # by another process
            self.store.forget_streams(lineage.id)
        if lineage.state.deleted or lineage.id != self._id:
            raise NotFoundError(f"session {reader.key!r} was deleted while it was compacted")
        return lineage


def _reject(
    compaction: Compaction, request_version: int | None, refusals: Sequence[DraftRefusal]
) -> None:
    for refusal in refusals:
        if refusal.rule is not None:
            details = refusal.to_details() | {"reason": refusal.reason}
            del details["error"]
            details["latency_s"] = refusal.latency_s and round(refusal.latency_s, 3)
            compaction.reject(request=request_version, **details)
