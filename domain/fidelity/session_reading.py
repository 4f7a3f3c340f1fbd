"""Reads a session for its facts, once: which keys each row carries, and where each fact occurs."""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import accumulate
from typing import NamedTuple

from ..cached_property import cached_property
from .anchors import Anchor, AnchorKind, list_carried_keys
from .rows import AGENT_KINDS, FidelityRow, RowKind, SessionRows
from .stakes import (
    Constraint,
    FileTouch,
    ProsePairs,
    SummaryContent,
    find_constraints,
    find_file_touches,
    find_prose_pairs,
)
from .words import WordContexts, WordPair, WordReader


class CarrierFact(NamedTuple):
    """A fact that carries several keys."""

    kind: AnchorKind
    parts: tuple[str, ...]
    """The keys that it carries, its own first."""
    first: int
    """The index of the first row that contains it."""


class SessionReading:
    """The facts of each row, by the row's index in `rows.rows`.

    All measures read this instead of the text.
    """

    def __init__(self, rows: SessionRows) -> None:
        self.rows = rows
        self.words = WordReader(rows.roots)
        self.contexts = WordContexts(self.words)
        self.find_carried_keys = cache(self.words.find_carried_keys)
        """Returns the keys that the facts of a text carry."""
        self.find_facts = cache(self.words.find_facts)
        """Returns the facts written in a text, with their kinds."""
        self.read_summary = cache(self._read_summary)
        """Returns the content of a summary, each of which is read many times."""

    @cached_property
    def row_keys(self) -> Sequence[frozenset[str]]:
        """The keys that each row carries."""
        return [self.find_carried_keys(row.text) for row in self.rows.rows]

    @cached_property
    def places(self) -> Mapping[str, Sequence[int]]:
        """The indices of the rows that carry each key, ascending."""
        places: dict[str, list[int]] = {}
        for index, keys in enumerate(self.row_keys):
            for key in keys:
                if (known := places.get(key)) is None:
                    places[key] = [index]
                else:
                    known.append(index)
        return places

    @cached_property
    def facts_by_agent(self) -> Mapping[int, Mapping[str, AnchorKind]]:
        """The facts written in each of the agent's rows.

        For a tool call, these are the facts in its values, not its name.
        """
        return {
            index: self.words.find_facts(read_agent_text(row))
            for index, row in enumerate(self.rows.rows)
            if row.kind in AGENT_KINDS and self.row_keys[index]
        }

    @cached_property
    def agent_rows(self) -> Sequence[tuple[int, int]]:
        """The call and the index of each such row, in the order of the calls."""
        return sorted((self.rows.rows[index].call, index) for index in self.facts_by_agent)

    @cached_property
    def system_keys(self) -> frozenset[str]:
        rows = zip(self.rows.rows, self.row_keys, strict=True)
        return frozenset(key for row, keys in rows if row.kind is RowKind.SYSTEM for key in keys)

    @cached_property
    def tool_names(self) -> frozenset[str]:
        return frozenset(row.tool for row in self.rows.rows if row.tool)

    @cached_property
    def carriers(self) -> Mapping[str, Sequence[CarrierFact]]:
        """The facts that carry each key along with others, each once."""
        first: dict[tuple[str, AnchorKind], int] = {}
        for index, row in enumerate(self.rows.rows):
            if row.kind is not RowKind.SYSTEM and self.row_keys[index]:
                for spelled in self.find_facts(row.text).items():
                    first.setdefault(spelled, index)
        carriers: dict[str, list[CarrierFact]] = {}
        for (key, kind), index in first.items():
            parts = list_carried_keys(Anchor(key, kind, 0, 0))
            if len(parts) > 1:
                fact = CarrierFact(kind, parts, index)
                for part in parts:
                    carriers.setdefault(part, []).append(fact)
        return carriers

    def count_rows_seen(self, call: int) -> int:
        """Return how many rows, from the first on, the call was sent."""
        return bisect_right(self._first_complete_calls, call)

    @cached_property
    def first_calls(self) -> Sequence[int]:
        return [find_first_call(row) for row in self.rows.rows]

    @cached_property
    def _first_complete_calls(self) -> list[int]:
        """The first call that could be sent all rows up to each row."""
        return list(accumulate(self.first_calls, max))

    def find_index(self, position: int) -> int:
        """Return the index of the first row at or after a position."""
        return bisect_left(self.positions, position)

    @cached_property
    def indices(self) -> Mapping[int, int]:
        return {position: index for index, position in enumerate(self.positions)}

    @cached_property
    def positions(self) -> Sequence[int]:
        return [row.position for row in self.rows.rows]

    # Other measures

    @cached_property
    def pairs(self) -> ProsePairs:
        return find_prose_pairs(self.rows, self.words, self.count_rows_seen)

    @cached_property
    def constraints(self) -> Sequence[Constraint]:
        return find_constraints(self.rows, self.words)

    @cached_property
    def file_touches(self) -> Sequence[FileTouch]:
        return find_file_touches(self.rows, self.words)

    @cached_property
    def _asked_pairs(self) -> frozenset[WordPair]:
        """The pairs that prose uses again."""
        return frozenset(again.pair for again in self.pairs.repeated)

    def _read_summary(self, text: str) -> SummaryContent:
        return SummaryContent(text, self.words, self._asked_pairs)


def read_agent_text(row: FidelityRow) -> str:
    """Return the agent's own text in a row: for a tool call its values, without the name."""
    return row.text.partition("\n")[2] if row.kind is RowKind.TOOL_CALL else row.text


def find_first_call(row: FidelityRow) -> int:
    """Return the first call that the row was sent to."""
    return row.call + 1 if row.kind in AGENT_KINDS else row.call
