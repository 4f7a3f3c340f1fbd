"""Sets of positions, run-length: what a boundary keeps, hides and covers."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from operator import le, sub
from typing import Any, Self

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

Run = tuple[int, int]


class Ranges:
    """An immutable set of positive positions, held as sorted, disjoint, inclusive runs.

    `Ranges([(1, 3), (7, 7)])` holds 1, 2, 3 and 7. Runs that overlap or touch are merged,
    so equal sets have equal runs. Stored as `[[1, 3], [7, 7]]`.
    """

    __slots__ = ("runs",)

    def __init__(self, runs: Iterable[Run] = ()) -> None:
        ordered = sorted(runs)
        # What was stored was merged then, and a long session's digest has tens of thousands.
        self.runs: tuple[Run, ...] = tuple(ordered if _is_merged(ordered) else _merged(ordered))

    @classmethod
    def of(cls, positions: Iterable[int]) -> Self:
        """The set of these single positions, in any order."""
        return cls._as_they_are(_single(sorted(positions)))

    @classmethod
    def span(cls, first: int, last: int) -> Self:
        """All positions from `first` to `last`, both included; empty when last < first."""
        return cls._as_they_are([(first, last)] if first <= last else [])

    @classmethod
    def _as_they_are(cls, runs: Iterable[Run]) -> Self:
        """Of runs that are in order and do not touch: most sets are made of others."""
        made = cls.__new__(cls)
        made.runs = tuple(runs)
        return made

    def __or__(self, other: "Ranges") -> "Ranges":
        if not other.runs:
            return self
        return Ranges((*self.runs, *other.runs)) if self.runs else other

    def __sub__(self, other: "Ranges") -> "Ranges":
        if not self.runs or not other.runs:
            return self
        left: list[Run] = []
        holes = iter((*other.runs, (_BEYOND, _BEYOND)))
        hole = next(holes)
        for first, last in self.runs:
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
        return Ranges._as_they_are(left)

    def __and__(self, other: "Ranges") -> "Ranges":
        return self - (self - other)

    def __contains__(self, position: int) -> bool:
        low, high = 0, len(self.runs)
        while low < high:
            middle = (low + high) // 2
            if self.runs[middle][1] < position:
                low = middle + 1
            else:
                high = middle
        return low < len(self.runs) and self.runs[low][0] <= position

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
        """As people write them: `#1-3 #7`."""
        return " ".join(f"#{a}" if a == b else f"#{a}-{b}" for a, b in self.runs)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        runs = core_schema.list_schema(
            core_schema.tuple_positional_schema([core_schema.int_schema(ge=1)] * 2)
        )
        return core_schema.no_info_after_validator_function(
            lambda value: value if isinstance(value, cls) else cls(value),
            # In this order, and each once: which of two fits better takes as long again.
            core_schema.union_schema(
                [core_schema.is_instance_schema(cls), runs], mode="left_to_right"
            ),
            serialization=core_schema.plain_serializer_function_ser_schema(
                lambda value: [list(run) for run in value.runs]
            ),
        )


_BEYOND = 2**63
_NOWHERE = -_BEYOND


def _single(positions: Iterable[int]) -> Iterator[Run]:
    """The runs of positions in order, some of which may come twice."""
    first = last = _NOWHERE
    for position in positions:
        if position > last + 1:
            if last != _NOWHERE:
                yield first, last
            first = position
        last = position
    if last != _NOWHERE:
        yield first, last


def _is_merged(ordered: Sequence[Run]) -> bool:
    """Whether no run ends before it begins, and none overlaps or touches the next."""
    firsts = [first for first, _ in ordered]
    lasts = [last for _, last in ordered]
    gaps = map(sub, islice(firsts, 1, None), lasts)
    return all(map(le, firsts, lasts)) and all(map((1).__lt__, gaps))


def _merged(ordered: Iterable[Run]) -> Iterator[Run]:
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
