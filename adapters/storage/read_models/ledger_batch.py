"""Builds one batch of compaction decisions: lineages, requests, and the ledger of results."""

from typing import Any
from uuid import UUID

from ....domain.compaction_events import (
    BoundaryActivated,
    CompactBoundary,
    CompactionFailed,
    CompactionOpened,
    CompactionRejected,
    CompactionRequested,
    CompactionReverted,
    PreparationDropped,
    Summary,
)
from ....domain.event import Event
from ....domain.ranges import Ranges
from ....domain.session import derive_session_id
from ....domain.token_estimate import SizeBasis
from ....projections.read_models.timestamps import add_seconds, format_timestamp
from ..compaction_sizes import measure_compactions
from ..event_log.event_store import EventStore
from .row_batch import RowBatch, TouchedLineage, TouchedSession

LINEAGE_TOPICS = {
    event.TOPIC
    for event in (
        CompactionOpened,
        CompactionRequested,
        CompactBoundary,
        Summary,
        BoundaryActivated,
        CompactionRejected,
        CompactionFailed,
        CompactionReverted,
        PreparationDropped,
    )
}
NOTE_SIZES = (
    "UPDATE compactions SET pre_tokens = ?, post_tokens = ?, tokens_basis = ?"
    " WHERE lineage_id = (SELECT id FROM lineages WHERE stream = ?) AND version = ?"
)
_REQUEST_QUERY = (
    "SELECT id, ended_at IS NULL FROM compaction_requests"
    " WHERE lineage_id = ? AND version = coalesce(?, version) ORDER BY version DESC LIMIT 1"
)


class LedgerBatch:
    def __init__(self, rows: RowBatch) -> None:
        self.rows = rows
        self._activated: list[tuple[UUID, int]] = []
        """The boundaries that were activated, by lineage."""

    def add_event(self, number: int, event: Event) -> None:
        if isinstance(event, CompactionOpened):
            self._open(number, event)
        lineage = self.rows.find_lineage(event.originator_id)
        assert lineage is not None, "a lineage's first event opens it"
        is_futile = _is_futile(event, lineage.session)
        lineage.session.row.apply_decision(lineage.name, event, is_futile=is_futile)
        time = format_timestamp(event.timestamp)
        place = {"id": number, "lineage_id": lineage.id, "version": event.originator_version}
        changed: dict[str, Any] = {"version": event.originator_version}
        result: dict[str, Any] = {}
        match event:
            case CompactionRequested():
                self._end_request(self._find_request(lineage.id, is_open=True), time, "taken over")
                self.rows.add("compaction_requests", **place, **_make_request_row(event))
            case CompactBoundary(originator_version=version):
                request = self._find_request(lineage.id, is_open=True)
                self._end_request(request, time, "boundary")
                result = {"request_id": request, **_make_boundary_fields(event)}
                changed["prepared"] = version
            case CompactionRejected(request=asked, reason=reason, rule=rule):
                # A late rejection may follow a newer request; an old one does not name its request.
                result = {"outcome": "rejected", "reason": reason, "rule": rule}
                result["request_id"] = self._find_request(lineage.id, asked)
                result |= _make_cost_fields(event)
            case CompactionFailed(reason=reason, tried=tried, stood_in=stood_in):
                request = self._find_request(lineage.id, is_open=True)
                if stood_in is None:
                    self._end_request(request, time, "failed")
                # By these rules, it does not count as a failed attempt.
                exempt = "cancelled" if event.cancelled else "nothing-gained" if is_futile else None
                result = {"outcome": "failed", "reason": reason, "rule": exempt}
                result |= {"tried": list(tried), "stood_in": stood_in, "request_id": request}
            case Summary(boundary=boundary):
                self._complete(lineage, boundary, _make_summary_fields(event))
            case BoundaryActivated(boundary=boundary, effective_from=effective_from):
                served = {"activated_at": time, "effective_from": effective_from}
                self._complete(lineage, boundary, served)
                self._activated.append((event.originator_id, boundary))
                changed |= {"boundary": boundary, "prepared": None}
            case CompactionReverted(boundary=boundary, to=to, effective_from=effective_from):
                result = {
                    "outcome": "reverted",
                    "boundary": boundary,
                    "previous": to,
                    "effective_from": effective_from,
                }
                self._complete(lineage, boundary, {"reverted_at": time})
                changed |= {"boundary": to, "prepared": None}
            case PreparationDropped(boundary=boundary, reason=reason):
                self._complete(lineage, boundary, {"dropped_at": time, "reason": reason})
                changed["prepared"] = None
            case _:
                pass
        if result:
            session = lineage.session.row.id
            self.rows.add("compactions", **place, session_id=session, recorded_at=time, **result)
        self.rows.complete("lineages", changed, id=lineage.id)

    def measure_boundaries(self, store: EventStore) -> None:
        """Measure the boundaries that this batch may have made measurable.

        Of older boundaries, these are each lineage's newest, whose first call may be in the batch.
        """
        by_stream: dict[UUID, set[int]] = {}
        older = [
            (UUID(stream), boundary)
            for touched in self.rows.sessions
            for stream, boundary in touched.unreported
        ]
        for stream, boundary in self._activated + older:
            by_stream.setdefault(stream, set()).add(boundary)
        for stream, numbers in by_stream.items():
            opened = store.read_lineage_opening(stream)
            chain = store.find_lineage_chain(opened.namespace, opened.key, opened.lineage)
            log = store.read(chain, Ranges.span(1, store.read_lineage_state(chain)[0]))
            decisions = [one.event for one in log if not isinstance(one.event, Summary)]
            for number, sizes in measure_compactions(store, decisions, numbers).items():
                values = (sizes.before, sizes.after, sizes.basis.value, str(stream), number)
                self.rows.execute(NOTE_SIZES, *values)

    def _open(self, number: int, event: CompactionOpened) -> None:
        session = self.rows.find_session(derive_session_id(event.namespace, event.key))
        assert session is not None, "a lineage belongs to a session"
        base = self.rows.find_lineage(event.base.originator_id) if event.base else None
        lineage = TouchedLineage(number, session, event.lineage)
        self.rows.open_lineage(event.originator_id, lineage)
        self.rows.add(
            "lineages",
            id=number,
            stream=str(event.originator_id),
            session_id=session.row.id,
            name=event.lineage,
            base_id=base.id if base else None,
            base_version=event.base.version if event.base else None,
            version=event.originator_version,
            opened_at=format_timestamp(event.timestamp),
        )

    def _find_request(
        self, lineage: int, version: int | None = None, *, is_open: bool = False
    ) -> int | None:
        """Return a lineage's request of that version, or its newest, if that `is_open`."""
        found = self.rows.execute(_REQUEST_QUERY, lineage, version)
        return found[0][0] if found and (found[0][1] or not is_open) else None

    def _end_request(self, request: int | None, time: str, outcome: str) -> None:
        if request is not None:
            ended = {"ended_at": time, "outcome": outcome}
            self.rows.complete("compaction_requests", ended, id=request)

    def _complete(self, lineage: TouchedLineage, boundary: int, columns: dict[str, Any]) -> None:
        """Add columns to the ledger's row of a boundary."""
        self.rows.complete("compactions", columns, lineage_id=lineage.id, version=boundary)


def _is_futile(event: Event, session: TouchedSession) -> bool:
    """Return whether the event says that nothing can be gained from the session as it is.

    A failure repeats the position up to which that was known, which may be old.
    """
    if not isinstance(event, CompactionFailed) or not event.after:
        return False
    newest = session.newest
    position = newest.originator_version if newest else session.row.position
    return event.after >= position


def _make_request_row(event: CompactionRequested) -> dict[str, Any]:
    return {
        "trigger": event.trigger.value,
        "policy": event.policy,
        "settings": event.settings,
        "after": event.after,
        "instructions": event.instructions,
        "idempotency_key": event.idempotency_key,
        "worker": event.by,
        "leased_until": add_seconds(format_timestamp(event.timestamp), event.lease_s or 0.0),
        "requested_at": format_timestamp(event.timestamp),
    }


def _make_summary_fields(event: Summary) -> dict[str, Any]:
    return {
        "summary_tokens": event.tokens,
        "covers": _list_runs(event.covers),
        "cites": _list_runs(event.cites),
        **_make_cost_fields(event),
    }


def _make_boundary_fields(event: CompactBoundary) -> dict[str, Any]:
    return {
        "outcome": "boundary",
        "boundary": event.originator_version,
        "trigger": event.trigger.value,
        "policy": event.policy,
        "after": event.after,
        "first_kept": event.first_kept,
        "pre_tokens": event.pre_tokens,
        "post_tokens": event.post_tokens,
        "tokens_basis": SizeBasis.ESTIMATED.value,
        "kept": _list_runs(event.kept),
        "kept_positions": len(event.kept),
        "pinned": _list_runs(event.pinned),
        "hidden": _list_runs(event.hidden),
        "trims": len(event.trims),
        "repairs": [repair.model_dump(mode="json") for repair in event.repairs],
        "split_turn": event.split_turn.turn if event.split_turn else None,
        "previous": event.previous,
    }


def _make_cost_fields(event: Summary | CompactionRejected) -> dict[str, Any]:
    usage = event.usage
    return {
        "summariser": event.summarizer,
        "model": event.model,
        "input_tokens": usage.context if usage else None,
        "output_tokens": usage.output if usage else None,
        "cost_usd": event.cost_usd,
        "latency_s": event.latency_s,
    }


def _list_runs(ranges: Ranges) -> list[list[int]]:
    return [list(run) for run in ranges.runs]
