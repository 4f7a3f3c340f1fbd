"""Collects the views of a replay as segments, one for each boundary, to measure fidelity."""

from collections.abc import Iterable, Iterator

from ...domain.compaction_events import CompactBoundary
from ...domain.fidelity.segments import ViewSegment
from ...domain.ranges import Ranges
from .replayed_call import ReplayedCall


def collect_segments(served: Iterable[ReplayedCall]) -> tuple[ViewSegment, ...]:
    """Return the segments of a whole replay, in order; empty if there were no calls.

    Reads calls one by one without keeping their views. If a rewind has undone a boundary, a new
    segment begins that equals an earlier one.
    """
    return tuple(_iter_segments(served))


def _iter_segments(served: Iterable[ReplayedCall]) -> Iterator[ViewSegment]:
    before: CompactBoundary | None = None
    is_first = True
    for one in served:
        if is_first or one.boundary is not before:
            yield _make_segment(one)
        before, is_first = one.boundary, False


def _make_segment(served: ReplayedCall) -> ViewSegment:
    boundary, summary = served.boundary, served.summary
    if boundary is None:
        return ViewSegment(call=served.call.number, after=0, kept=Ranges())
    decided = [entry for entry in served.make_view().entries if entry.position <= boundary.after]
    return ViewSegment(
        call=served.call.number,
        after=boundary.after,
        kept=Ranges.of(entry.position for entry in decided),
        shown={entry.position: entry.shown for entry in decided if entry.shown is not None},
        summary=summary.text if summary else "",
        tokens=summary.tokens if summary else 0,
        first_kept=boundary.first_kept,
    )
