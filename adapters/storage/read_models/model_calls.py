"""Computes the context meter: the size of a session's view, and what each call saw of it."""

import re

from ....domain.blocks import UNSENT_KINDS
from ....domain.compaction import MAIN_LINEAGE
from ....domain.context_limit import LoggedContext
from ....domain.errors import NotFoundError
from ....domain.event import parse_source_time
from ....domain.session_events import BlockAppended, ModelCalled, Usage
from ....domain.token_estimate import estimate_text
from ....projections.history_view import HistoryView
from ....projections.read_models.session_row import SessionRow, compute_utilization, name_level
from ....projections.read_models.timestamps import format_timestamp
from ..earlier_calls import read_logged_context
from ..event_log.event_store import EventStore
from ..event_log.stored_row import StoredRow
from ..view_reader import ViewReader
from .row_batch import RowBatch

_PRICE_COLUMNS = ("input_usd", "cached_usd", "cache_write_usd", "output_usd")
_MARK_COPIES = """
    UPDATE model_calls SET copy_of = (
        SELECT min(other.id) FROM model_calls AS other
        WHERE other.call_id = model_calls.call_id AND other.session_id <> model_calls.session_id
            AND other.id < model_calls.id AND other.copy_of IS NULL
            AND other.fingerprint IS NULL AND other.model IS model_calls.model
            AND other.input_tokens IS model_calls.input_tokens
            AND other.cached_tokens IS model_calls.cached_tokens
            AND other.cache_write_tokens IS model_calls.cache_write_tokens
    ) WHERE id = ? AND prompt_tokens IS NOT NULL
"""
"""Files of resumed or forked agents repeat the calls of the file that they continue."""
_UNSENT = re.compile("|".join(f'"{kind}"' for kind in sorted(UNSENT_KINDS)).encode())


def add_call(batch: RowBatch, session: SessionRow, number: int, call: ModelCalled) -> None:
    usage = call.usage or Usage()
    seen = _measure_seen(batch, session, call)
    prompt = usage.context
    shown = prompt if prompt is not None else seen
    called_at = (call.source_time and parse_source_time(call.source_time)) or call.timestamp
    logged = LoggedContext(call.model, call.context_window, prompt or 0)
    limit = batch.limit_of(logged).tokens
    share = compute_utilization(shown, limit) if shown is not None else None
    prices = batch.prices.price_call(call.model, call.usage, called_at)
    session.has_calls = 1
    session.model = call.model or session.model
    batch.execute(
        "UPDATE model_calls SET repeated = 1 WHERE session_id = ? AND call_id = ? AND id < ?",
        session.id,
        call.call_id,
        number,
    )
    batch.add(
        "model_calls",
        id=number,
        session_id=session.id,
        position=call.originator_version,
        call_id=call.call_id,
        repeated=0,
        model=call.model,
        lineage=call.lineage,
        lineage_version=call.lineage_version,
        view_position=call.position,
        renderer=call.renderer,
        fingerprint=call.fingerprint,
        view_tokens=seen,
        prompt_tokens=prompt,
        cached_tokens=usage.cache_read,
        cache_write_tokens=usage.cache_write,
        cache_write_1h_tokens=usage.cache_write_1h,
        input_tokens=usage.input,
        output_tokens=usage.output,
        reasoning_tokens=usage.reasoning,
        utilisation=share,
        level=name_level(share) if share is not None else None,
        cost_usd=call.cost_usd,
        latency_s=call.latency_s,
        stop_reason=call.stop_reason,
        called_at=format_timestamp(called_at),
        **dict(zip(_PRICE_COLUMNS, prices or (), strict=False)),
    )
    if session.source is not None:
        batch.execute(_MARK_COPIES, number)


def measure_session(batch: RowBatch, row: SessionRow) -> None:
    """Measure a session's view, the context in use, and its limit."""
    row.in_use, row.reported = _measure_view(batch, row, row.position), None
    if not row.has_calls:
        return  # without reported usage, the estimate cannot improve
    use = batch.open_reader(row.namespace, row.key).read_history()[0].measure_usage()
    row.in_use, row.reported = use.used_tokens, use.reported_tokens
    found = batch.limit_of(
        read_logged_context(batch.store, row.namespace, row.key, at=row.position)
    )
    row.context_limit, row.limit_source = found.tokens, found.source.value


def _measure_view(batch: RowBatch, row: SessionRow, position: int) -> int:
    """Return the tokens of the view at a session's newest position.

    What is appended is counted; only a view that changed otherwise is read again.
    """
    if row.view_tokens is None:
        view = _read_view(batch, row, MAIN_LINEAGE, position, row.served_version)
        row.view_tokens = view.tokens
        row.system_tokens = estimate_text(view.system_prompt or "")
        tools = view.tool_definitions
        row.tools_tokens = estimate_text(str(tools)) if tools else 0
    return row.view_tokens


def _measure_seen(batch: RowBatch, row: SessionRow, call: ModelCalled) -> int | None:
    if (
        row.is_served(call.lineage)
        and call.lineage_version == row.served_version
        and call.position >= row.steady_from
    ):
        now = _measure_view(batch, row, call.originator_version)
        later = batch.store.recorder.select_events(
            call.originator_id, gt=call.position, lte=call.originator_version
        )
        return now - sum(row.tokens for row in later if not _is_unsent(batch.store, row))
    try:
        return _read_view(batch, row, call.lineage, call.position, call.lineage_version).tokens
    except NotFoundError:
        return None  # an invalid coordinate, which `verify` reports


def _is_unsent(store: EventStore, row: StoredRow) -> bool:
    """Return whether an event is a block that models do not see."""
    # Most blocks are neither a note nor an artifact, which their text shows without parsing it.
    if row.topic != BlockAppended.TOPIC or not _UNSENT.search(store.mapper.read_plaintext(row)):
        return False
    event = store.mapper.to_domain_event(row)
    return isinstance(event, BlockAppended) and event.block.kind in UNSENT_KINDS


def _read_view(
    batch: RowBatch, row: SessionRow, lineage: str, at: int, version: int
) -> HistoryView:
    return ViewReader(batch.store, row.namespace, row.key, lineage).read_view(at, version)
