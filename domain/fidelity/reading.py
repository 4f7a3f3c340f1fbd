"""A session read for its facts, once: which row carries what, and where each fact stands."""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

from .anchors import Anchor, AnchorKind, carried_by
from .constraints import Constraint, constraints_of
from .context import Contexts
from .files import FileTouch, file_touches
from .plain_words import PlainWords
from .prose import ProsePairs, prose_pairs
from .rereads import FileAgain, files_again
from .rows import BY_AGENT, Row, Rows, Said
from .told import Lines, Told
from .words import Words


class Fact(NamedTuple):
    """A fact that carries several keys, wherever it stands."""

    kind: AnchorKind
    parts: tuple[str, ...]
    """The keys that it carries, its own first."""
    first: int
    """The index of the first row that spells it out."""


class Reading:
    """The facts of each row, by the row's index in `rows.rows`.

    All that is measured reads this and not the text again.
    """

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.words = Words(rows.roots)
        self.plain = PlainWords(rows.roots)
        self.contexts = Contexts(self.plain)
        self._told: dict[str, Told] = {}
        self._facts: dict[str, Mapping[str, AnchorKind]] = {}
        self._carried: dict[str, frozenset[str]] = {}
        self.carried: Sequence[frozenset[str]] = [self.carried_in(row.text) for row in rows.rows]
        """Of each row the keys that some fact in it carries."""

    def carried_in(self, text: str) -> frozenset[str]:
        """The keys that some fact of a text carries that is, or is much like, that of a row."""
        keys = self._carried.get(text)
        if keys is None:
            keys = self._carried[text] = frozenset(self.words.carried(text))
        return keys

    @cached_property
    def places(self) -> Mapping[str, Sequence[int]]:
        """Of each key the indices of the rows that carry it, ascending."""
        places: dict[str, list[int]] = {}
        for index, keys in enumerate(self.carried):
            for key in keys:
                if (known := places.get(key)) is None:
                    places[key] = [index]
                else:
                    known.append(index)
        return places

    @cached_property
    def first_places(self) -> Mapping[str, int]:
        """Of each key the index of the first row that carries it."""
        return {key: places[0] for key, places in self.places.items()}

    @cached_property
    def written(self) -> Mapping[int, Mapping[str, AnchorKind]]:
        """Of each row that the agent wrote the facts that stand in it themselves.

        Of a tool call these are the facts of its values, not that of its name.
        """
        return {
            index: self.words.facts(said_in(row))
            for index, row in enumerate(self.rows.rows)
            if row.said in BY_AGENT and self.carried[index]
        }

    @cached_property
    def in_order(self) -> Sequence[tuple[int, int]]:
        """Of each such row the call that wrote it and its index, in the order of the calls."""
        return sorted((self.rows.rows[index].call, index) for index in self.written)

    @cached_property
    def said_by_system(self) -> frozenset[str]:
        """The keys that system prompts carry, which never leave."""
        rows = zip(self.rows.rows, self.carried, strict=True)
        return frozenset(key for row, keys in rows if row.said is Said.SYSTEM for key in keys)

    @cached_property
    def tool_names(self) -> frozenset[str]:
        return frozenset(row.tool for row in self.rows.rows if row.tool)

    def facts(self, index: int) -> Mapping[str, AnchorKind]:
        """The facts that stand in a row themselves, whoever wrote it."""
        text = self.rows.rows[index].text
        facts = self._facts.get(text)
        if facts is None:
            facts = self._facts[text] = self.words.facts(text)
        return facts

    @cached_property
    def carriers(self) -> Mapping[str, Sequence[Fact]]:
        """Of each key the facts that carry it and others besides, each once."""
        first: dict[tuple[str, AnchorKind], int] = {}
        for index, row in enumerate(self.rows.rows):
            if row.said is not Said.SYSTEM and self.carried[index]:
                for spelled in self.facts(index).items():
                    first.setdefault(spelled, index)
        carriers: dict[str, list[Fact]] = {}
        for (key, kind), index in first.items():
            parts = carried_by(Anchor(key, kind, 0, 0))
            if len(parts) > 1:
                fact = Fact(kind, parts, index)
                for part in parts:
                    carriers.setdefault(part, []).append(fact)
        return carriers

    def seen_by(self, call: int) -> int:
        """How many rows, from the first on, the call was sent."""
        return bisect_right(self._all_seen, call)

    @cached_property
    def first_seen(self) -> Sequence[int]:
        """Of each row the first call that it was sent to."""
        return [first_seen(row) for row in self.rows.rows]

    @cached_property
    def _all_seen(self) -> list[int]:
        """Of each row the first call that all rows up to it could be sent to."""
        return list(accumulate(self.first_seen, max))

    def came_again(self, index: int, call: int) -> bool:
        """Whether a row is a tool's answer that came once a call was under way."""
        return self.rows.rows[index].said is Said.TOOL_RESULT and self.first_seen[index] > call

    def index_at(self, position: int) -> int:
        """The index of the first row at a position or behind it."""
        return bisect_left(self.positions, position)

    @cached_property
    def indices(self) -> Mapping[int, int]:
        """Of each position that has a row the row's index."""
        return {position: index for index, position in enumerate(self.positions)}

    @cached_property
    def positions(self) -> Sequence[int]:
        """Of each row its position."""
        return [row.position for row in self.rows.rows]

    # Beside facts

    @cached_property
    def pairs(self) -> ProsePairs:
        """The pairs of words in prose, and where the agent used them again."""
        return prose_pairs(self.rows, self.plain, self.seen_by)

    @cached_property
    def constraints(self) -> Sequence[Constraint]:
        """What users said of how things must be."""
        return constraints_of(self.rows, self.plain)

    @cached_property
    def touches(self) -> Sequence[FileTouch]:
        """The files that calls read and modified."""
        return file_touches(self.rows, self.words)

    @cached_property
    def files_again(self) -> Sequence[FileAgain]:
        """The files that calls read again."""
        return files_again(self.touches, self._newest_below)

    def _newest_below(self, call: int) -> int:
        below = self.seen_by(call)
        return self.rows.rows[below - 1].position if below else 0

    @cached_property
    def _lines(self) -> Lines:
        """Those of texts that stand for history, which are asked for what prose has again."""
        return Lines(self.plain, {again.pair for again in self.pairs.again})

    def told(self, text: str) -> Told:
        """A text that stands for history, read once: the same summary is asked of many times."""
        told = self._told.get(text)
        if told is None:
            told = self._told[text] = Told(text, self._lines)
        return told


def said_in(row: Row) -> str:
    """What the agent said in a row: of a tool call its values, without the name above them."""
    return row.text.partition("\n")[2] if row.said is Said.TOOL_CALL else row.text


def first_seen(row: Row) -> int:
    """The first call that the row was sent to."""
    return row.call + 1 if row.said in BY_AGENT else row.call
