"""Boundaries that all policies are measured on alike, wherever each of them would cut itself."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from .reading import Reading
from .rows import BY_AGENT, Row, Said
from .spells import Spell

RESERVE = 2_000
"""Tokens that are kept free for the system prompt and the answer."""
FRAMING = 4
"""Tokens that each row costs besides its text."""
KEPT = 0.4
"""The part of the limit that the kept window may fill."""


@dataclass(frozen=True, slots=True)
class Boundary:
    """From call `call` on, rows before position `first_kept` are hidden, system rows apart."""

    call: int
    first_kept: int


def canonical(reading: Reading, limit: int) -> tuple[Boundary, ...]:
    """Where a plain rule would cut that knows nothing but sizes.

    Before each call: once the tail no longer fits, it is cut to the longest legal one of at most
    0.4 x limit, or else to the shortest legal one.
    """
    rows = reading.rows.rows
    sizes = [0, *accumulate(map(_size, rows))]
    legal = legal_cuts(rows)
    seen = reading.seen_by
    boundaries: list[Boundary] = []
    first = 0
    for call in range(1, reading.rows.calls + 1):
        end = seen(call)
        if RESERVE + sizes[end] - sizes[first] <= limit:
            continue
        cut = _cut(sizes, legal, end, KEPT * limit)
        if cut is not None and cut > first:
            first = cut
            boundaries.append(Boundary(call, rows[cut].position))
    return tuple(boundaries)


def own_boundaries(spells: Iterable[Spell]) -> tuple[Boundary, ...]:
    """The boundaries of a policy itself: where each of its kept windows begins."""
    return tuple(Boundary(spell.call, spell.first_kept) for spell in spells if spell.first_kept)


def legal_cuts(rows: Sequence[Row]) -> list[int]:
    """Indices of rows that a kept window may begin with, ascending.

    It begins with no tool result and not inside of what one call wrote, and no tool call stands
    before it whose result stands behind.
    """
    apart = [0] * (len(rows) + 1)
    for first, last in (*_answers(rows), *_pairs(rows)):
        # A cut in front of any row behind the first, up to the last, would part these.
        apart[first + 1] += 1
        apart[last + 1] -= 1
    depth = accumulate(apart)
    return [
        index
        for index, (row, parted) in enumerate(zip(rows, depth, strict=False))
        if not parted and row.said not in {Said.TOOL_RESULT, Said.SYSTEM}
    ]


def _size(row: Row) -> int:
    return 0 if row.said is Said.SYSTEM else row.tokens + FRAMING


def _cut(sizes: Sequence[int], legal: Sequence[int], end: int, most: float) -> int | None:
    """The legal cut with the largest tail up to `end` that is no larger than `most`."""
    allowed = bisect_left(legal, end)
    if not allowed:
        return None
    smallest = bisect_left(sizes, sizes[end] - most)
    at = bisect_left(legal, smallest)
    return legal[at] if at < allowed else legal[allowed - 1]


def _answers(rows: Sequence[Row]) -> Iterable[tuple[int, int]]:
    """From the first to the last row that one call wrote."""
    spans: dict[int, tuple[int, int]] = {}
    for index, row in enumerate(rows):
        if row.said in BY_AGENT:
            spans[row.call] = spans.get(row.call, (index, index))[0], index
    return spans.values()


def _pairs(rows: Sequence[Row]) -> Iterable[tuple[int, int]]:
    """From a tool call to its result."""
    calls: dict[str | None, int] = {}
    for index, row in enumerate(rows):
        if row.said is Said.TOOL_CALL:
            calls[row.call_id] = index
        elif row.said is Said.TOOL_RESULT and row.call_id in calls:
            yield calls[row.call_id], index
