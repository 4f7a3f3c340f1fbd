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


class LedgerBatch:
    def __init__(self, rows: RowBatch) -> None:
        self.rows = rows
        self._activated: set[tuple[UUID, int]] = set()
        """The boundaries that were activated, by lineage."""

    def add_event(self, number: int, event: Event) -> None:
        if isinstance(event, CompactionOpened):
            self._open(number, event)
        lineage = self.rows.find_lineage(event.originator_id)
        assert lineage is not None, "a lineage's first event opens it"
        is_futile = _is_futile(event, lineage.session)
        lineage.session.row.apply_decision(lineage.name, event, is_futile=is_futile)
        self.rows.complete("lineages", {"version": event.originator_version}, id=lineage.id)
        place = {"id": number, "lineage_id": lineage.id}
        if isinstance(event, CompactionRequested):
            if (request := self._find_request(lineage.id, is_open=True)) is not None:
                self._end_request(request, event, "taken over")
            self.rows.add("compaction_requests", **place, **_make_request_row(event))
        elif found := _make_ledger_row(event):
            request = self._find_answered_request(lineage.id, event)
            if request is not None and _ends_request(event):
                self._end_request(request, event, found["outcome"])
            if isinstance(event, CompactionFailed):
                found["rule"] = _find_exemption(event, is_futile=is_futile)
            more = {"session_id": lineage.session.row.id, "request_id": request}
            self.rows.add("compactions", **place, **more, **found)
        if isinstance(event, BoundaryActivated):
            self._activated.add((event.originator_id, event.boundary))
        if isinstance(event, BoundaryActivated | CompactionReverted):
            active = event.boundary if isinstance(event, BoundaryActivated) else event.to
            self.rows.complete("lineages", {"boundary": active}, id=lineage.id)
        if isinstance(
            event, CompactBoundary | BoundaryActivated | CompactionReverted | PreparationDropped
        ):
            waiting = event.originator_version if isinstance(event, CompactBoundary) else None
            self.rows.complete("lineages", {"prepared": waiting}, id=lineage.id)
        if done := _complete_ledger_row(event):
            boundary, columns = done
            self.rows.complete("compactions", columns, lineage_id=lineage.id, version=boundary)

    def measure_boundaries(self, store: EventStore) -> None:
        """Measure the boundaries that this batch may have made measurable.

        Of older boundaries, these are each lineage's newest, whose first call may be in the batch.
        """
        by_stream: dict[UUID, set[int]] = {}
        for stream, boundary in self._activated:
            by_stream.setdefault(stream, set()).add(boundary)
        for touched in self.rows.sessions:
            for name, boundary in touched.unreported:
                by_stream.setdefault(UUID(name), set()).add(boundary)
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

    def _find_answered_request(self, lineage: int, event: Event) -> int | None:
        match event:
            case CompactionRejected(request=asked) if asked is not None:
                # A late rejection may follow a newer request.
                return self._find_request(lineage, "version = ?", asked)
            case CompactionRejected():
                return self._find_request(lineage)  # from before rejections named their request
            case CompactBoundary() | CompactionFailed():
                return self._find_request(lineage, is_open=True)
            case _:
                return None  # no request leads to a revert

    def _find_request(
        self, lineage: int, condition: str = "true", *values: int, is_open: bool = False
    ) -> int | None:
        """Return the newest request of a lineage that meets the condition, if it `is_open`."""
        found = self.rows.execute(
            "SELECT id, ended_at IS NULL FROM compaction_requests"  # noqa: S608 - our names
            f" WHERE lineage_id = ? AND {condition} ORDER BY version DESC LIMIT 1",
            lineage,
            *values,
        )
        return found[0][0] if found and (found[0][1] or not is_open) else None

    def _end_request(self, request: int, event: Event, outcome: str) -> None:
        ended = {"ended_at": format_timestamp(event.timestamp), "outcome": outcome}
        self.rows.complete("compaction_requests", ended, id=request)


def _is_futile(event: Event, session: TouchedSession) -> bool:
    """Return whether the event says that nothing can be gained from the session as it is.

    A failure repeats the position up to which that was known, which may be old.
    """
    if not isinstance(event, CompactionFailed) or not event.after:
        return False
    newest = session.newest
    position = newest.originator_version if newest else session.row.position
    return event.after >= position


def _find_exemption(event: CompactionFailed, *, is_futile: bool) -> str | None:
    """Return why it does not count as a failed attempt; None if it does."""
    if event.cancelled:
        return "cancelled"
    return "nothing-gained" if is_futile else None


def _ends_request(event: Event) -> bool:
    match event:
        case CompactBoundary():
            return True
        case CompactionFailed(stood_in=stood_in):
            return stood_in is None
        case _:
            return False


def _make_request_row(event: CompactionRequested) -> dict[str, Any]:
    return {
        "version": event.originator_version,
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


def _make_ledger_row(event: Event) -> dict[str, Any] | None:
    """Return an event's row without its location, or None."""
    match event:
        case CompactBoundary():
            found = _make_boundary_fields(event)
        case CompactionReverted(boundary=boundary, to=to, effective_from=effective_from):
            found = {
                "outcome": "reverted",
                "boundary": boundary,
                "previous": to,
                "effective_from": effective_from,
            }
        case CompactionRejected(reason=reason, rule=rule, summarizer=summarizer):
            found = {
                "outcome": "rejected",
                "reason": reason,
                "rule": rule,
                "summariser": summarizer,
                **_make_cost_fields(event),
            }
        case CompactionFailed(reason=reason, tried=tried, stood_in=stood_in):
            found = {
                "outcome": "failed",
                "reason": reason,
                "tried": list(tried),
                "stood_in": stood_in,
            }
        case _:
            return None
    place = {"version": event.originator_version, "recorded_at": format_timestamp(event.timestamp)}
    return {**found, **place}


def _complete_ledger_row(event: Event) -> tuple[int, dict[str, Any]] | None:
    """Return the boundary that an event completes, and the columns it adds, or None."""
    match event:
        case Summary():
            return event.boundary, {
                "summary_tokens": event.tokens,
                "covers": _list_runs(event.covers),
                "cites": _list_runs(event.cites),
                "summariser": event.summarizer,
                **_make_cost_fields(event),
            }
        case BoundaryActivated(boundary=boundary, effective_from=effective_from):
            time = format_timestamp(event.timestamp)
            return boundary, {"activated_at": time, "effective_from": effective_from}
        case CompactionReverted(boundary=boundary):
            return boundary, {"reverted_at": format_timestamp(event.timestamp)}
        case PreparationDropped(boundary=boundary, reason=reason):
            return boundary, {"dropped_at": format_timestamp(event.timestamp), "reason": reason}
        case _:
            return None


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
        "model": event.model,
        "input_tokens": usage.context if usage else None,
        "output_tokens": usage.output if usage else None,
        "cost_usd": event.cost_usd,
        "latency_s": event.latency_s,
    }


def _list_runs(ranges: Ranges) -> list[list[int]]:
    return [list(run) for run in ranges.runs]
