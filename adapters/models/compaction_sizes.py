"""Measures compactions: the one definition of their size before and after, for all of the program.

Before is the prompt of the newest call that saw the view which a compaction ended, after that of
the first call that saw what it left, both as the provider counted them. Where either of them is not
reported, both are estimated with the session's calibration: as they stand in the boundary that
cutbank drew, and read from the log for a boundary that was imported, whose source may count
otherwise (Claude Code's `postTokens` is the summary alone).
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, cast

from ...domain.compaction import MAIN, RECORDED
from ...domain.compaction_events import BoundaryActivated, CompactBoundary, CompactionReverted
from ...domain.counting.sizes import Basis, Sizes
from ...domain.event import Event
from ...domain.session_events import ModelCalled
from ..view_reader import ViewReader

FAR = 1_000
"""Events from a compaction among which a call is looked for."""


class Switch(NamedTuple):
    """A boundary that is served from a position on, and the versions of the views beside it."""

    boundary: int
    position: int
    ends: int
    """The version from which on calls saw the view that this switch ended."""
    begins: int
    """The version from which on calls see what it left."""
    until: float = float("inf")
    """The version of the next switch."""


def measure_compactions(
    reader: ViewReader, decisions: Iterable[Event], only: int | None = None
) -> dict[int, Sizes]:
    """Measure the boundaries of a lineage.

    Args:
        reader: The session's, on the lineage whose boundaries these are.
        decisions: All events of the lineage, in order, those that it inherits included.
        only: The number of the one boundary to measure; None for all.

    Returns:
        Sizes by the number of the boundary.
    """
    decisions = list(decisions)
    switches = {switch.boundary: switch for switch in _switches(decisions)}
    return {
        boundary.originator_version: measure_compaction(
            reader, boundary, switches.get(boundary.originator_version)
        )
        for boundary in decisions
        if isinstance(boundary, CompactBoundary) and only in (None, boundary.originator_version)
    }


def measure_compaction(
    reader: ViewReader, boundary: CompactBoundary, switch: Switch | None
) -> Sizes:
    """Measure one boundary; `switch` is None of one that was never served."""
    if switch is not None:
        before = next(_calls(reader, switch, later=False), None)
        after = next(_calls(reader, switch, later=True), None)
        if before is not None and after is not None:
            return Sizes(before, after, Basis.REPORTED)
    if switch is None or boundary.policy != RECORDED:
        return Sizes(boundary.pre_tokens, boundary.post_tokens, Basis.ESTIMATED)
    before, after = (
        reader.history(switch.position, version)[0].use().used
        for version in (switch.begins - 1, switch.begins)
    )
    return Sizes(before, after, Basis.ESTIMATED)


def _switches(decisions: Sequence[Event]) -> Iterator[Switch]:
    """The boundaries of a lineage that were served, in order."""
    found = [one for one in decisions if isinstance(one, BoundaryActivated | CompactionReverted)]
    versions = [0, *(one.originator_version for one in found), float("inf")]
    for number, one in enumerate(found, start=1):
        if isinstance(one, BoundaryActivated):
            yield Switch(
                one.boundary,
                one.effective_from,
                int(versions[number - 1]),
                one.originator_version,
                versions[number + 1],
            )


def _calls(reader: ViewReader, switch: Switch, *, later: bool) -> Iterator[int]:
    """The reported prompts on the view that a switch ended, newest first; or on what it left."""
    first, end = (switch.begins, switch.until) if later else (switch.ends, switch.begins)
    names = {MAIN, RECORDED} if reader.lineage == MAIN else {reader.lineage}
    store, chain = reader.store, reader.store.session_chain(reader.namespace, reader.key)
    left = FAR
    for segment in chain.segments if later else reversed(chain.segments):
        last = segment.last
        low, high = segment.first - 1, last
        if later:
            low = max(low, switch.position)
        else:
            high = switch.position if last is None else min(last, switch.position)
        if not left or (high is not None and high <= low):
            continue
        rows = store.recorder.select_events(
            segment.originator_id, gt=low, lte=high, desc=not later, limit=left
        )
        left -= len(rows)
        for row in rows:
            if row.topic == ModelCalled.TOPIC:
                call = cast(ModelCalled, store.mapper.to_domain_event(row))
                is_on_it = call.lineage in names and first <= call.lineage_version < end
                if is_on_it and call.context:
                    yield call.context
