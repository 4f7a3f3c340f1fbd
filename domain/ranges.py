"""Defines sets of positions as runs: what a boundary keeps, hides and covers."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from operator import itemgetter, le, sub
from typing import TYPE_CHECKING, Any, Self

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, SchemaValidator, core_schema

Run = tuple[int, int]


class Ranges:
    """An immutable set of positive positions, held as sorted, disjoint, inclusive runs.

    `Ranges([(1, 3), (7, 7)])` holds 1, 2, 3 and 7. Runs that overlap or touch are merged, so equal
    sets have equal runs. Stored as `[[1, 3], [7, 7]]`.
    """

    __slots__ = ("json_text", "runs")

    json_text: str
    """How a deferred set was stored."""

    def __init__(self, runs: Iterable[Run] = ()) -> None:
        self.runs: tuple[Run, ...] = tuple(_normalize_runs(runs))

    @classmethod
    def defer(cls, text: str) -> Self:
        """Return the set stored as this JSON, which is parsed when its runs are first read.

        Reading them raises ValueError if it is no list of runs.
        """
        made = cls.__new__(cls)
        made.json_text = text
        return made

    if not TYPE_CHECKING:  # it would allow any attribute

        def __getattr__(self, name: str) -> tuple[Run, ...]:
            """Parse the runs of a deferred set; no other attribute is ever missing."""
            if name != "runs":
                raise AttributeError(name)
            self.runs = tuple(_normalize_runs(_RUNS.validate_json(self.json_text)))
            return self.runs

    @classmethod
    def of(cls, positions: Iterable[int]) -> Self:
        """Return the set of single positions, given in any order."""
        return cls._from_ordered(_join_positions(sorted(positions)))

    @classmethod
    def span(cls, first: int, last: int) -> Self:
        """Return all positions from `first` to `last`, both included; empty if last < first."""
        return cls._from_ordered([(first, last)] if first <= last else [])

    @classmethod
    def _from_ordered(cls, runs: Iterable[Run]) -> Self:
        """Make a set of runs that are sorted and do not touch, without checking them."""
        made = cls.__new__(cls)
        made.runs = tuple(runs)
        return made

    def __or__(self, other: "Ranges") -> "Ranges":
        longer, shorter = self._order_by_length(other)
        if not shorter.runs:
            return longer
        begins, ends = longer._find_overlap(shorter)
        between = _normalize_runs((*longer.runs[begins:ends], *shorter.runs))
        return Ranges._from_ordered((*longer.runs[:begins], *between, *longer.runs[ends:]))

    def __sub__(self, other: "Ranges") -> "Ranges":
        if not self.runs or not other.runs:
            return self
        begins, ends = self._find_overlap(other)
        left = list(self.runs[:begins])
        at, upto = other._find_overlap(self)
        holes = iter((*other.runs[at:upto], (_INFINITY, _INFINITY)))
        hole = next(holes)
        for first, last in self.runs[begins:ends]:
            start = first
            while hole[1] < start:
                hole = next(holes)
            while hole[0] <= last:
                if start < hole[0]:
                    left.append((start, hole[0] - 1))
                start = hole[1] + 1
                if hole[1] > last:
                    break
                hole = next(holes)
            if start <= last:
                left.append((start, last))
        left += self.runs[ends:]
        return Ranges._from_ordered(left)

    def _order_by_length(self, other: "Ranges") -> tuple["Ranges", "Ranges"]:
        """Return both, the one with more runs first."""
        return (self, other) if len(self.runs) >= len(other.runs) else (other, self)

    def _find_overlap(self, other: "Ranges") -> tuple[int, int]:
        """Return the slice of runs that overlap or touch the other set's extent."""
        begins = bisect_left(self.runs, other.runs[0][0] - 1, key=_last)
        return begins, bisect_right(self.runs, other.runs[-1][1] + 1, begins, key=_first)

    def __and__(self, other: "Ranges") -> "Ranges":
        longer, shorter = self._order_by_length(other)
        if not shorter.runs:
            return shorter
        begins, ends = longer._find_overlap(shorter)
        near = Ranges._from_ordered(longer.runs[begins:ends])
        return near - (near - shorter)

    def __contains__(self, position: int) -> bool:
        at = bisect_left(self.runs, position, key=_last)
        return at < len(self.runs) and self.runs[at][0] <= position

    def find_run(self, position: int) -> Run | None:
        """Return the run that holds a position; None if it is not in the set."""
        at = bisect_left(self.runs, position, key=_last)
        return self.runs[at] if at < len(self.runs) and self.runs[at][0] <= position else None

    def __iter__(self) -> Iterator[int]:
        for first, last in self.runs:
            yield from range(first, last + 1)

    def __len__(self) -> int:
        return sum(last - first + 1 for first, last in self.runs)

    def __bool__(self) -> bool:
        return bool(self.runs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ranges) and self.runs == other.runs

    def __hash__(self) -> int:
        return hash(self.runs)

    def __repr__(self) -> str:
        return f"Ranges({list(self.runs)})"

    def __str__(self) -> str:
        """Return the runs as users write them: `#1-3 #7`."""
        return " ".join(f"#{a}" if a == b else f"#{a}-{b}" for a, b in self.runs)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(
            lambda value: value if isinstance(value, cls) else cls(value),
            # Try these in order and stop at the first match; comparing matches would double the
            # time.
            core_schema.union_schema(
                [core_schema.is_instance_schema(cls), _RUNS_SCHEMA], mode="left_to_right"
            ),
            serialization=core_schema.plain_serializer_function_ser_schema(
                lambda value: [list(run) for run in value.runs]
            ),
        )


_INFINITY = 2**63
_RUNS_SCHEMA = core_schema.list_schema(
    core_schema.tuple_positional_schema([core_schema.int_schema(ge=1)] * 2)
)
_RUNS = SchemaValidator(_RUNS_SCHEMA)
_first, _last = itemgetter(0), itemgetter(1)


def _join_positions(ordered: Sequence[int]) -> Iterable[Run]:
    """Return the runs of sorted positions, which may repeat."""
    gaps = map(sub, islice(ordered, 1, None), ordered)
    ends = [at for at, gap in enumerate(gaps) if gap > 1]
    firsts = [ordered[at + 1] for at in ends]
    lasts = [ordered[at] for at in ends]
    return zip((*ordered[:1], *firsts), (*lasts, *ordered[-1:]), strict=True)


def _normalize_runs(runs: Iterable[Run]) -> Iterable[Run]:
    """Return the same set as sorted runs that do not touch."""
    ordered = sorted(runs)
    # Stored runs are merged already, and a long session's digest has tens of thousands.
    return ordered if _is_merged(ordered) else _merge_runs(ordered)


def _is_merged(ordered: Sequence[Run]) -> bool:
    firsts = [first for first, _ in ordered]
    lasts = [last for _, last in ordered]
    gaps = map(sub, islice(firsts, 1, None), lasts)
    return all(map(le, firsts, lasts)) and min(gaps, default=2) > 1


def _merge_runs(ordered: Iterable[Run]) -> Iterator[Run]:
    open_run: Run | None = None
    for first, last in ordered:
        if first > last:
            raise ValueError(f"a run ends before it begins: {first}-{last}")
        if open_run is None:
            open_run = (first, last)
        elif first <= open_run[1] + 1:
            open_run = (open_run[0], max(open_run[1], last))
        else:
            yield open_run
            open_run = (first, last)
    if open_run is not None:
        yield open_run
