"""Measures a compaction's size before and after; everything that reports sizes uses this.

"Before" is the prompt of the newest call on the view that the compaction ended, "after" that of the
first call on the new view, both as the provider counted them. If either was not reported, both are
estimated with the session's calibration at that time. The boundary's own figures count only if it
was never served, since an imported one may count differently (Claude Code's `postTokens` is the
summary alone).
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import zip_longest
from math import inf
from typing import NamedTuple

from ...domain.compaction import MAIN_LINEAGE, RECORDED_LINEAGE
from ...domain.compaction_events import BoundaryActivated, CompactBoundary, CompactionReverted
from ...domain.event import Event
from ...domain.session_events import ModelCalled
from ...domain.token_estimate import PromptSizeChange, SizeBasis
from .earlier_calls import iter_calls
from .event_log.event_store import EventStore
from .view_reader import ViewReader

_MAX_EVENTS_READ = 1_000
"""How many events around a compaction are searched for a call."""


class BoundarySwitch(NamedTuple):
    """A boundary that is served from a position on, with the versions of the views around it."""

    boundary: int
    position: int
    ends: int
    """The first version of calls on the view that this switch ended."""
    begins: int
    """The first version of calls on the new view."""
    until: float = inf
    """The version of the next switch."""


def measure_compactions(
    store: EventStore, decisions: Iterable[Event], only: Collection[int] | None = None
) -> dict[int, PromptSizeChange]:
    """Measure the boundaries of a lineage, each on the lineage where it was decided.

    `decisions` are all events of the lineage in order, including inherited ones; `only` limits the
    boundaries by number. Returns sizes by boundary number.
    """
    decisions = list(decisions)
    switches = {switch.boundary: switch for switch in _find_switches(decisions)}
    return {
        event.originator_version: _measure(store, event, switches.get(event.originator_version))
        for event in decisions
        if isinstance(event, CompactBoundary) and (only is None or event.originator_version in only)
    }


def _measure(
    store: EventStore, boundary: CompactBoundary, switch: BoundarySwitch | None
) -> PromptSizeChange:
    if switch is None:  # it was never served
        return PromptSizeChange(boundary.pre_tokens, boundary.post_tokens, SizeBasis.ESTIMATED)
    opened = store.read_lineage_opening(boundary.originator_id)
    reader = ViewReader(store, opened.namespace, opened.key, opened.lineage, opened.generation)
    before = next(_read_prompts(reader, switch, later=False), None)
    after = next(_read_prompts(reader, switch, later=True), None)
    if before is not None and after is not None:
        return PromptSizeChange(before, after, SizeBasis.REPORTED)
    before, after = (
        reader.read_history(switch.position, version)[0].measure_usage().used_tokens
        for version in (switch.begins - 1, switch.begins)
    )
    return PromptSizeChange(before, after, SizeBasis.ESTIMATED)


def _find_switches(decisions: Sequence[Event]) -> Iterator[BoundarySwitch]:
    """Yield the boundaries of a lineage that were served, in order."""
    found = [one for one in decisions if isinstance(one, BoundaryActivated | CompactionReverted)]
    ends = 0
    for one, following in zip_longest(found, found[1:]):
        begins = one.originator_version
        if isinstance(one, BoundaryActivated):
            # Decisions of a lineage that continues this one do not change this one's views.
            until: float = inf
            if following is not None and following.originator_id == one.originator_id:
                until = following.originator_version
            yield BoundarySwitch(one.boundary, one.effective_from, ends, begins, until)
        ends = begins


def _read_prompts(reader: ViewReader, switch: BoundarySwitch, *, later: bool) -> Iterator[int]:
    """Yield the reported prompts on the view that a switch ended, newest first, or on the next."""
    first, end = (switch.begins, switch.until) if later else (switch.ends, switch.begins)
    between = (switch.position + 1, inf) if later else (1, switch.position)
    for call in iter_calls(
        reader.store, reader.chain, *between, limit=_MAX_EVENTS_READ, newest_first=not later
    ):
        if first <= call.lineage_version < end and _is_on_lineage(reader, call) and call.context:
            yield call.context


def _is_on_lineage(reader: ViewReader, call: ModelCalled) -> bool:
    """Return whether a call saw a view of the lineage; `main` continues the recorded one."""
    if (reader.lineage, call.lineage) == (RECORDED_LINEAGE, MAIN_LINEAGE):
        chain = reader.store.find_lineage_chain(
            reader.namespace, reader.key, RECORDED_LINEAGE, reader.generation
        )
        return call.lineage_version <= reader.store.read_lineage_state(chain)[0]
    return call.lineage == reader.lineage or (reader.lineage, call.lineage) == (
        MAIN_LINEAGE,
        RECORDED_LINEAGE,
    )
