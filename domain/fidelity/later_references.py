"""Finds the boundaries on which policies are measured, and hidden facts that were used later."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import inf

from .anchors import HARD_KINDS, AnchorKind
from .generic_keys import GENERIC_KEYS
from .rows import AGENT_KINDS, FidelityRow, RowKind
from .session_reading import SessionReading

RESERVE_TOKENS = 2_000
"""Tokens that are kept free for the system prompt and the answer."""
FRAMING_TOKENS = 4
"""Tokens that each row costs in addition to its text."""
KEPT_SHARE = 0.4
"""The share of the limit that the kept window may fill."""


@dataclass(frozen=True, slots=True)
class RowBoundary:
    """From call `call` on, rows before position `first_kept` are hidden, except system rows."""

    call: int
    first_kept: int


def find_canonical_boundaries(reading: SessionReading, limit: int) -> tuple[RowBoundary, ...]:
    """Return where a plain rule would cut that knows only sizes.

    Before each call: if the tail no longer fits, it is cut to the longest legal one of at most 0.4
    x limit, or else to the shortest legal one.
    """
    rows = reading.rows.rows
    sizes = [0, *accumulate(map(count_row_tokens, rows))]
    legal = find_legal_row_cuts(rows)
    seen = reading.count_rows_seen
    boundaries: list[RowBoundary] = []
    first = 0
    for call in range(1, reading.rows.calls + 1):
        end = seen(call)
        if RESERVE_TOKENS + sizes[end] - sizes[first] <= limit:
            continue
        cut = _find_cut(sizes, legal, end, KEPT_SHARE * limit)
        if cut is not None and cut > first:
            first = cut
            boundaries.append(RowBoundary(call, rows[cut].position))
    return tuple(boundaries)


def find_legal_row_cuts(rows: Sequence[FidelityRow]) -> list[int]:
    """Return the indices of rows with which a kept window may begin, ascending.

    It may not begin with a tool result or inside one call's output, nor separate a tool call from
    its result.
    """
    apart = [0] * (len(rows) + 1)
    for first, last in (*_iter_answer_spans(rows), *_iter_pair_spans(rows)):
        # A cut before any row after the first, up to the last, would separate these.
        apart[first + 1] += 1
        apart[last + 1] -= 1
    depth = accumulate(apart)
    return [
        index
        for index, (row, parted) in enumerate(zip(rows, depth, strict=False))
        if not parted and row.kind not in {RowKind.TOOL_RESULT, RowKind.SYSTEM}
    ]


def count_row_tokens(row: FidelityRow) -> int:
    return 0 if row.kind is RowKind.SYSTEM else row.tokens + FRAMING_TOKENS


def _find_cut(sizes: Sequence[int], legal: Sequence[int], end: int, most: float) -> int | None:
    """Return the legal cut with the largest tail up to `end` that is no larger than `most`."""
    allowed = bisect_left(legal, end)
    if not allowed:
        return None
    smallest = bisect_left(sizes, sizes[end] - most)
    at = bisect_left(legal, smallest)
    return legal[at] if at < allowed else legal[allowed - 1]


def _iter_answer_spans(rows: Sequence[FidelityRow]) -> Iterable[tuple[int, int]]:
    spans: dict[int, tuple[int, int]] = {}
    for index, row in enumerate(rows):
        if row.kind in AGENT_KINDS:
            spans[row.call] = spans.get(row.call, (index, index))[0], index
    return spans.values()


def _iter_pair_spans(rows: Sequence[FidelityRow]) -> Iterable[tuple[int, int]]:
    calls: dict[str | None, int] = {}
    for index, row in enumerate(rows):
        if row.kind is RowKind.TOOL_CALL:
            calls[row.call_id] = index
        elif row.kind is RowKind.TOOL_RESULT and row.call_id in calls:
            yield calls[row.call_id], index


@dataclass(frozen=True, slots=True)
class LaterReference:
    """The first use of a fact in a segment, from one boundary to the next or to the end."""

    key: str
    kind: AnchorKind
    segment: int
    """The index of the boundary."""
    call: int
    """The call that wrote the fact."""
    used_in: int
    """The position of the row with that use."""
    hidden_in: int
    """The position of the newest hidden row that carries it."""

    @property
    def is_hard(self) -> bool:
        return self.kind in HARD_KINDS


def iter_stakes(
    reading: SessionReading, boundaries: Sequence[RowBoundary]
) -> Iterator[LaterReference]:
    """Yield all stakes in the order of use, each once in a segment.

    Keys that sessions of unrelated projects share are none.
    """
    rows, seen = reading.rows.rows, reading.first_calls
    written = reading.agent_rows
    left_out = reading.tool_names | reading.system_keys | GENERIC_KEYS
    for segment, boundary in enumerate(boundaries):
        ends = boundaries[segment + 1].call if segment + 1 < len(boundaries) else inf
        begin, end = bisect_left(written, (boundary.call,)), bisect_left(written, (ends,))
        first_kept = reading.find_index(boundary.first_kept)
        known: set[str] = set()
        for call, index in written[begin:end]:
            for key, kind in reading.facts_by_agent[index].items():
                if key in known:
                    continue
                known.add(key)
                places = reading.places.get(key)
                if not places or places[0] >= first_kept or key in left_out:
                    continue
                carriers = [place for place in places if seen[place] <= call]
                if carriers and carriers[-1] < first_kept:
                    used, hidden = rows[index].position, rows[carriers[-1]].position
                    yield LaterReference(key, kind, segment, call, used, hidden)
