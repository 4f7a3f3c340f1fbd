"""Turns the events of a lineage into rows of the compaction ledger, and changes of rows."""

from typing import Any

from ...domain.compaction_events import (
    BoundaryActivated,
    CompactBoundary,
    CompactionFailed,
    CompactionRejected,
    CompactionRequested,
    CompactionReverted,
    PreparationDropped,
    Summary,
)
from ...domain.event import Event
from ...domain.ranges import Ranges
from ...domain.token_estimate import SizeBasis
from .timestamps import add_seconds, format_timestamp

LedgerRow = dict[str, Any]
LEDGER = (CompactBoundary, CompactionReverted, CompactionRejected, CompactionFailed)
"""The events with rows of their own; a boundary's summary and activation complete its row."""


def make_request_row(event: CompactionRequested) -> LedgerRow:
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


def make_ledger_row(event: Event) -> LedgerRow | None:
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
        case CompactionRejected(reason=reason, rule=rule, summariser=summariser):
            found = {
                "outcome": "rejected",
                "reason": reason,
                "rule": rule,
                "summariser": summariser,
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
    return {**dict.fromkeys(LEDGER_COLUMNS), **found, **place}


def complete_ledger_row(event: Event) -> tuple[int, LedgerRow] | None:
    """Return the boundary that an event completes, and the columns it adds, or None."""
    match event:
        case Summary():
            return event.boundary, {
                "summary_tokens": event.tokens,
                "covers": _list_runs(event.covers),
                "cites": _list_runs(event.cites),
                "summariser": event.summariser,
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


def _make_boundary_fields(event: CompactBoundary) -> LedgerRow:
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


def _make_cost_fields(event: Summary | CompactionRejected) -> LedgerRow:
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


LEDGER_COLUMNS = """
version outcome boundary trigger policy after first_kept pre_tokens post_tokens tokens_basis
kept_positions kept pinned hidden trims repairs split_turn previous summariser model input_tokens
output_tokens cost_usd latency_s summary_tokens covers cites reason rule tried stood_in
effective_from activated_at reverted_at dropped_at recorded_at
""".split()  # noqa: SIM905 - a list of forty names, a line each
"""The columns other than the location, which come first."""
