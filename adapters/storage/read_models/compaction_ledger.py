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
from ....domain.event import EVENT_CLASSES, Event
from ....domain.ranges import Ranges
from ....domain.session import derive_session_id
from ....domain.session_events import Usage
from ....domain.token_estimate import SizeBasis
from ....projections.timestamps import add_seconds, format_timestamp
from ..compaction_sizes import measure_compactions
from .row_batch import RowBatch, TouchedLineage, copy_fields

LINEAGE_TOPICS = {
    topic
    for topic, event_class in EVENT_CLASSES.items()
    if event_class.__module__ == CompactionOpened.__module__
}
_NOTE_SIZES = (
    "UPDATE compactions SET pre_tokens = ?, post_tokens = ?, tokens_basis = ?"
    " WHERE lineage_id = (SELECT id FROM lineages WHERE stream = ?) AND version = ?"
)
_REQUEST_QUERY = (
    "SELECT id, ended_at IS NULL FROM compaction_requests"
    " WHERE lineage_id = ? AND version = coalesce(?, version) ORDER BY version DESC LIMIT 1"
)


def add_decision(batch: RowBatch, number: int, event: Event) -> None:
    """Add one event of a lineage."""
    if isinstance(event, CompactionOpened):
        _open_lineage(batch, number, event)
    lineage = batch.find_lineage(event.originator_id)
    if lineage is None:
        return  # its session was deleted
    session = lineage.session.row
    # A failure repeats the position up to which nothing could be gained, which may be old.
    is_futile = (
        isinstance(event, CompactionFailed) and event.after > 0 and event.after >= session.position
    )
    session.apply_decision(lineage.name, event, is_futile=is_futile)
    time = format_timestamp(event.timestamp)
    place = {"id": number, "lineage_id": lineage.id, "version": event.originator_version}
    changed: dict[str, Any] = {"version": event.originator_version}
    result: dict[str, Any] = {}
    match event:
        case CompactionRequested():
            _end_request(batch, lineage.id, time, "taken over")
            batch.add("compaction_requests", **place, **_make_request_row(event))
        case CompactBoundary(originator_version=version):
            result = _make_boundary_fields(event)
            result["request_id"] = _end_request(batch, lineage.id, time, "boundary")
            changed["prepared"] = version
        case CompactionRejected(request=asked, reason=reason, rule=rule):
            # A late rejection may follow a newer request; an old one does not name its request.
            result = {"outcome": "rejected", "reason": reason, "rule": rule}
            found = batch.execute(_REQUEST_QUERY, lineage.id, asked)
            result["request_id"] = found[0][0] if found else None
            result |= _make_cost_fields(event)
        case CompactionFailed(reason=reason, tried=tried, stood_in=stood_in):
            request = _end_request(batch, lineage.id, time, None if stood_in else "failed")
            # By these rules, it does not count as a failed attempt.
            exempt = "cancelled" if event.cancelled else "nothing-gained" if is_futile else None
            result = {
                "outcome": "failed",
                "reason": reason,
                "rule": exempt,
                "tried": list(tried),
                "stood_in": stood_in,
                "request_id": request,
            }
        case Summary(boundary=boundary):
            written = {"summary_tokens": event.tokens}
            _complete(batch, lineage, boundary, written | _make_cost_fields(event))
        case BoundaryActivated(boundary=boundary, effective_from=effective_from):
            served = {"activated_at": time, "effective_from": effective_from}
            _complete(batch, lineage, boundary, served)
            batch.activated.append((event.originator_id, boundary))
            changed |= {"boundary": boundary, "prepared": None}
        case CompactionReverted(boundary=boundary, to=to, effective_from=effective_from):
            result = {"outcome": "reverted", "boundary": boundary, "previous": to}
            result["effective_from"] = effective_from
            _complete(batch, lineage, boundary, {"reverted_at": time})
            changed |= {"boundary": to, "prepared": None}
        case PreparationDropped(boundary=boundary, reason=reason):
            _complete(batch, lineage, boundary, {"dropped_at": time, "reason": reason})
            changed["prepared"] = None
        case _:
            pass
    if result:
        batch.add("compactions", **place, session_id=session.id, recorded_at=time, **result)
    batch.complete("lineages", changed, id=lineage.id)


def measure_boundaries(batch: RowBatch) -> None:
    """Measure the boundaries that this batch may have made measurable.

    Of older boundaries, these are each lineage's newest, whose first call may be in the batch.
    """
    store = batch.store
    by_stream: dict[UUID, set[int]] = {}
    for touched in batch.sessions:
        for stream, boundary in touched.unreported:
            by_stream.setdefault(UUID(stream), set()).add(boundary)
    for lineage, boundary in batch.activated:
        by_stream.setdefault(lineage, set()).add(boundary)
    for lineage, numbers in by_stream.items():
        opened = store.read_lineage_opening(lineage)
        chain = store.find_lineage_chain(
            opened.namespace, opened.key, opened.lineage, opened.generation
        )
        log = store.read(chain, Ranges.span(1, store.read_lineage_state(chain)[0]))
        decisions = [one.event for one in log if not isinstance(one.event, Summary)]
        for number, sizes in measure_compactions(store, decisions, numbers).items():
            values = (sizes.before, sizes.after, sizes.basis.value, str(lineage), number)
            batch.execute(_NOTE_SIZES, *values)


def _open_lineage(batch: RowBatch, number: int, event: CompactionOpened) -> None:
    session = batch.find_session(derive_session_id(event.namespace, event.key, event.generation))
    if session is None:
        return  # it was deleted
    base = batch.find_lineage(event.base.originator_id) if event.base else None
    batch.lineages[event.originator_id] = TouchedLineage(number, session, event.lineage)
    batch.add(
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


def _end_request(batch: RowBatch, lineage: int, time: str, outcome: str | None) -> int | None:
    """Return a lineage's open request, and give it an outcome."""
    found = batch.execute(_REQUEST_QUERY, lineage, None)
    if not found or not found[0][1]:
        return None
    request: int = found[0][0]
    if outcome is not None:
        batch.complete("compaction_requests", {"ended_at": time, "outcome": outcome}, id=request)
    return request


def _complete(
    batch: RowBatch, lineage: TouchedLineage, boundary: int, columns: dict[str, Any]
) -> None:
    """Add columns to the ledger's row of a boundary."""
    batch.complete("compactions", columns, lineage_id=lineage.id, version=boundary)


def _make_request_row(event: CompactionRequested) -> dict[str, Any]:
    requested_at = format_timestamp(event.timestamp)
    return {
        **copy_fields(event, "policy settings after instructions idempotency_key"),
        "trigger": event.trigger.value,
        "worker": event.by,
        "leased_until": add_seconds(requested_at, event.lease_s or 0.0),
        "requested_at": requested_at,
    }


def _make_boundary_fields(event: CompactBoundary) -> dict[str, Any]:
    return {
        **copy_fields(event, "policy after pre_tokens post_tokens previous"),
        "outcome": "boundary",
        "boundary": event.originator_version,
        "trigger": event.trigger.value,
        "tokens_basis": SizeBasis.ESTIMATED.value,
        "kept_positions": len(event.kept),
    }


def _make_cost_fields(event: Summary | CompactionRejected) -> dict[str, Any]:
    usage = event.usage or Usage()
    return {
        **copy_fields(event, "model cost_usd latency_s"),
        "summariser": event.summarizer,
        "input_tokens": usage.context,
        "cached_tokens": usage.cache_read,
        "cache_write_tokens": usage.cache_write,
        "cache_write_1h_tokens": usage.cache_write_1h,
        "output_tokens": usage.output,
    }
