"""Reads what calls before a compaction tell about the view after it."""

from collections.abc import Iterator, Mapping
from math import inf
from types import MappingProxyType
from typing import cast

from ...domain.compaction import MAIN_LINEAGE, RECORDED_LINEAGE, CompactionState
from ...domain.compaction_events import CompactBoundary, RecordedCalibration, Summary, Trigger
from ...domain.context_limit import NOTHING_LOGGED, LoggedContext
from ...domain.ranges import Ranges, Run
from ...domain.session_events import ModelCalled
from ...domain.token_estimate import (
    MAX_RATIO,
    MIN_RATIO,
    ContentKind,
    estimate_text,
    make_uniform_ratios,
)
from ...projections.context_usage import EarlierUsage
from ...projections.view_content import RecordedEvent
from .event_log.chain import Chain
from .event_log.event_store import EventStore

BoundaryRecord = tuple[CompactBoundary, Summary | None, bytes]
"""A boundary, its summary, and the summary's digest."""
_MIN_GROWTH_TOKENS = 2_000
"""The smallest growth between two calls, in estimated tokens, that yields a usable ratio."""
_MAX_EVENTS_BACK = 100
"""How many events are searched for the newest call; an agent records one after each answer."""
MAX_RUNS = 16
"""How many runs of kept blocks are looked up; beyond that, the boundary's own figure counts."""


def read_earlier_calls(
    store: EventStore,
    namespace: str,
    key: str,
    position: int,
    *,
    generation: int | None = None,
    known: Mapping[int, RecordedEvent] = MappingProxyType({}),
    served: CompactBoundary | None = None,
) -> EarlierUsage | None:
    """Return what the newest call up to a position, and one before it, say of a later view.

    If the `served` boundary recorded its calibration, and no call came after it, return that.
    Takes a few lookups, whatever the history's length: sizes are differences of the running totals
    stored with events. Events in `known` are not read again.
    """
    chain = store.find_session_chain(namespace, key, generation)
    call = _find_newest_call(store, chain, position, known)
    if served and served.calibration and (call is None or call.position <= served.after):
        return _restore_calibration(store, chain, served.after, served.calibration)
    if call is None or not call.context or call.context < 0:
        return None
    lineage = store.find_lineage_chain(namespace, key, call.lineage, generation)
    active = (
        store.read_lineage_state(lineage, call.lineage_version)[1].active if lineage.segments else 0
    )
    boundary, summary, _ = load_boundary(store, lineage, active) or (None, None, b"")
    after = boundary.after if boundary else 0
    view = estimate_tokens_up_to(store, chain, call.position) - estimate_tokens_up_to(
        store, chain, after
    )
    if boundary is not None:
        view += _estimate_kept(store, chain, boundary, summary)
    ratio = _measure_ratio(store, chain, call, after, known)
    unseen = call.context - ratio * (view + _estimate_overhead(store, chain, call.position))
    ratios = make_uniform_ratios(ratio) if ratio != 1.0 else {}  # else nothing was measured
    return EarlierUsage(call.model, ratios, max(0, round(unseen)))


def _restore_calibration(
    store: EventStore, chain: Chain, after: int, recorded: RecordedCalibration
) -> EarlierUsage:
    overhead = _estimate_overhead(store, chain, after)
    ratios = {kind: recorded.ratios[kind] for kind in ContentKind if kind in recorded.ratios}
    unseen = recorded.request_tokens - ratios.get(ContentKind.REQUEST, 1.0) * overhead
    return EarlierUsage(recorded.model, ratios, max(0, round(unseen)), after)


def read_logged_context(
    store: EventStore, namespace: str, key: str, lineage: str = MAIN_LINEAGE, at: int | None = None
) -> LoggedContext:
    """Read what the newest call, and the last one on the view before, say about the model's window.

    Prompts are largest just before a compaction, so two lookups find the largest.
    """
    chain = store.find_session_chain(namespace, key)
    newest = _find_newest_call(store, chain, at or store.read_head(chain)[0], {})
    if newest is None:
        return NOTHING_LOGGED
    calls = [newest]
    decided = store.find_lineage_chain(namespace, key, lineage)
    state = store.read_lineage_state(decided)[1] if decided.segments else CompactionState()
    filled_at = 0
    if state.switched:
        earlier = _find_newest_call(store, chain, state.effective_from, {})
        if earlier is not None and earlier.model == newest.model:
            calls.append(earlier)
        recorded = store.find_lineage_chain(namespace, key, RECORDED_LINEAGE)
        filled_at = _read_filled_prompt(store, chain, recorded, newest.model)
    return LoggedContext(
        newest.model,
        next((call.context_window for call in calls if call.context_window), None),
        max(call.context or 0 for call in calls),
        filled_at,
    )


def _read_filled_prompt(store: EventStore, chain: Chain, recorded: Chain, model: str | None) -> int:
    """Return the prompt at which the source of an import compacted by itself; 0 for none.

    Later boundaries of any lineage do not change it.
    """
    state = store.read_lineage_state(recorded)[1] if recorded.segments else CompactionState()
    boundary, *_ = load_boundary(store, recorded, state.active) or (None,)
    if boundary is None or boundary.trigger is not Trigger.THRESHOLD:
        return 0
    call = _find_newest_call(store, chain, state.effective_from, {})
    return call.context or 0 if call is not None and call.model == model else 0


def estimate_tokens_up_to(store: EventStore, chain: Chain, position: int) -> int:
    return store.read_head(chain, position)[1].tokens if position else 0


def _measure_ratio(
    store: EventStore,
    chain: Chain,
    call: ModelCalled,
    after: int,
    known: Mapping[int, RecordedEvent],
) -> float:
    """Return the model's tokens per estimated token, measured on the view's growth."""
    first = _find_newest_call(store, chain, (after + call.position) // 2, known)
    if first is None or first.context is None or call.context is None:
        return 1.0
    if (first.lineage, first.lineage_version) != (call.lineage, call.lineage_version):
        return 1.0
    grown = estimate_tokens_up_to(store, chain, call.position) - estimate_tokens_up_to(
        store, chain, first.position
    )
    if grown < _MIN_GROWTH_TOKENS or call.context <= first.context:
        return 1.0
    return min(MAX_RATIO, max(MIN_RATIO, (call.context - first.context) / grown))


def _estimate_kept(
    store: EventStore, chain: Chain, boundary: CompactBoundary, summary: Summary | None
) -> int:
    """Return the estimated tokens of the blocks with which a view begins."""
    runs: tuple[Run, ...] = boundary.kept.runs
    if len(runs) > MAX_RUNS:
        return boundary.post_tokens
    kept = sum(
        estimate_tokens_up_to(store, chain, b) - estimate_tokens_up_to(store, chain, a - 1)
        for a, b in runs
    )
    return kept + (summary.tokens if summary else 0)


def _estimate_overhead(store: EventStore, chain: Chain, position: int) -> int:
    state = store.read_head(chain, position)[1]
    texts = [
        str(getattr(store.read(chain, Ranges.of([at]))[0].event, name))
        for at, name in ((state.system, "text"), (state.tools, "tools"))
        if at
    ]
    return sum(map(estimate_text, texts))


def _find_newest_call(
    store: EventStore, chain: Chain, position: int, known: Mapping[int, RecordedEvent]
) -> ModelCalled | None:
    """Return the newest call up to a position with a reported size; None if none is near."""
    left = _MAX_EVENTS_BACK
    while left and (recorded := known.get(position)):
        event = recorded.event
        if isinstance(event, ModelCalled) and event.context is not None:
            return event
        left, position = left - 1, position - 1
    calls = iter_calls(store, chain, 1, position, limit=left, newest_first=True)
    return next((call for call in calls if call.context is not None), None)


def iter_calls(
    store: EventStore,
    chain: Chain,
    first: int,
    last: float,
    *,
    limit: int,
    newest_first: bool = False,
) -> Iterator[ModelCalled]:
    """Yield the calls at these positions, after reading at most `limit` events."""
    for segment in reversed(chain.segments) if newest_first else chain.segments:
        low = max(first, segment.first)
        high = last if segment.last is None else min(last, segment.last)
        if low > high or not limit:
            continue
        rows = store.recorder.select_events(
            segment.originator_id,
            gt=low - 1,
            lte=None if high == inf else int(high),
            desc=newest_first,
            limit=limit,
        )
        limit -= len(rows)
        for row in rows:
            if row.topic == ModelCalled.TOPIC:
                yield cast(ModelCalled, store.mapper.to_domain_event(row))


def load_boundary(store: EventStore, lineage: Chain, number: int) -> BoundaryRecord | None:
    """Return a boundary by its number, its summary, and the summary's digest."""
    found = store.read(lineage, Ranges.span(number, number + 1)) if number > 0 else []
    if not found or not isinstance(found[0].event, CompactBoundary):
        return None
    if len(found) > 1 and isinstance(found[1].event, Summary):
        return found[0].event, found[1].event, found[1].digest
    return found[0].event, None, b""
