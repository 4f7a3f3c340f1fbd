"""Finds the stakes at a boundary: hidden facts that the agent used later."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf

from .anchors import HARD_KINDS, AnchorKind
from .canonical_boundaries import RowBoundary
from .generic_keys import GENERIC_KEYS
from .rows import FidelityRow, RowKind
from .session_reading import SessionReading, find_first_call


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
    uses: int
    """The number of rows in the segment in which the agent wrote it."""
    is_generic: bool = False
    """Whether sessions of unrelated projects share it."""
    is_lifted: bool = False
    """Whether a tool result after the boundary repeated it before that use."""

    @property
    def is_hard(self) -> bool:
        return self.kind in HARD_KINDS


def list_stakes(
    reading: SessionReading, boundaries: Sequence[RowBoundary]
) -> tuple[LaterReference, ...]:
    return tuple(
        stake
        for stake in list_candidate_stakes(reading, boundaries)
        if not stake.is_generic and not stake.is_lifted
    )


def list_candidate_stakes(
    reading: SessionReading, boundaries: Sequence[RowBoundary]
) -> tuple[LaterReference, ...]:
    """Return all candidate stakes in the order of use, each once in a segment."""
    return tuple(_iter_candidate_stakes(reading, boundaries))


def _iter_candidate_stakes(
    reading: SessionReading, boundaries: Sequence[RowBoundary]
) -> Iterator[LaterReference]:
    rows, seen = reading.rows.rows, reading.first_calls
    written, left_out = reading.agent_rows, reading.tool_names | reading.system_keys
    for segment, boundary in enumerate(boundaries):
        ends = boundaries[segment + 1].call if segment + 1 < len(boundaries) else inf
        begin, end = bisect_left(written, (boundary.call,)), bisect_left(written, (ends,))
        uses = Counter(
            key for _, index in written[begin:end] for key in reading.facts_by_agent[index]
        )
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
                hidden = bisect_left(carriers, first_kept)
                if not hidden:
                    continue
                since = [rows[place] for place in carriers[hidden:]]
                if not all(_is_late_answer(row, boundary) for row in since):
                    continue
                yield LaterReference(
                    key,
                    kind,
                    segment,
                    call,
                    used_in=rows[index].position,
                    hidden_in=rows[carriers[hidden - 1]].position,
                    uses=uses[key],
                    is_generic=key in GENERIC_KEYS,
                    is_lifted=bool(since),
                )


def _is_late_answer(row: FidelityRow, boundary: RowBoundary) -> bool:
    """Check whether the row is a tool's answer that came after the boundary."""
    return row.kind is RowKind.TOOL_RESULT and find_first_call(row) > boundary.call
