"""What is at stake at a boundary: facts that the agent went on to use and that it hides."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf

from .anchors import HARD, AnchorKind
from .canonical import Boundary
from .generic import GENERIC_KEYS
from .reading import Reading, first_seen
from .rows import Row, Said


@dataclass(frozen=True, slots=True)
class Stake:
    """The first use of a fact in a segment: from one boundary to the next, or to the end."""

    key: str
    kind: AnchorKind
    segment: int
    """Which boundary it is, from 0 on."""
    call: int
    """The call that wrote the fact down."""
    used_in: int
    """Position of the row that it wrote it in."""
    hidden_in: int
    """Position of the newest hidden row that carries it."""
    uses: int
    """In how many rows of the segment the agent wrote it."""
    is_generic: bool = False
    """Whether sessions of unrelated projects have it as well."""
    is_lifted: bool = False
    """Whether a tool result behind the boundary said it again before it was used."""

    @property
    def is_hard(self) -> bool:
        return self.kind in HARD


def stakes_of(reading: Reading, boundaries: Sequence[Boundary]) -> tuple[Stake, ...]:
    """What counts as at stake: generic facts and those that came again are left out."""
    return tuple(
        stake
        for stake in candidates(reading, boundaries)
        if not stake.is_generic and not stake.is_lifted
    )


def candidates(reading: Reading, boundaries: Sequence[Boundary]) -> tuple[Stake, ...]:
    """All that is at stake by any of the counts, in the order of use; each once a segment."""
    return tuple(_candidates(reading, boundaries))


def _candidates(reading: Reading, boundaries: Sequence[Boundary]) -> Iterator[Stake]:
    rows, seen = reading.rows.rows, reading.first_seen
    written, left_out = reading.in_order, reading.tool_names | reading.said_by_system
    for segment, boundary in enumerate(boundaries):
        ends = boundaries[segment + 1].call if segment + 1 < len(boundaries) else inf
        begin, end = bisect_left(written, (boundary.call,)), bisect_left(written, (ends,))
        uses = Counter(key for _, index in written[begin:end] for key in reading.written[index])
        first_kept = reading.index_at(boundary.first_kept)
        known: set[str] = set()
        for call, index in written[begin:end]:
            for key, kind in reading.written[index].items():
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
                if not all(_came_again(row, boundary) for row in since):
                    continue
                yield Stake(
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


def _came_again(row: Row, boundary: Boundary) -> bool:
    """Whether the row is a tool's answer that came once the boundary was drawn."""
    return row.said is Said.TOOL_RESULT and first_seen(row) > boundary.call
