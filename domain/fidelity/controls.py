"""Texts that nobody would write, to compare with: what any list of words scores tells nothing."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from types import MappingProxyType

from ..ranges import Ranges
from .canonical import FRAMING, Boundary
from .reading import Reading
from .rows import Row, Said
from .spells import WHOLE, Spell

CHARACTERS = 4
"""Of one token."""
CLEARED = "[cleared]"
"""What stands for a result that was masked: it says nothing."""
MASKED = 0.75
"""The size of what stays beside masked results, as a part of that of the kept window."""

Control = Callable[[Reading, Sequence[Boundary], int], tuple[Spell, ...]]
"""Given a session, boundaries and the tokens that a text may have: what would have been sent."""


def full_history(_: Reading, _boundaries: Sequence[Boundary], _budget: int) -> tuple[Spell, ...]:
    """Nothing leaves."""
    return (WHOLE,)


def drop(reading: Reading, boundaries: Sequence[Boundary], _budget: int) -> tuple[Spell, ...]:
    """Nothing stands for what leaves."""
    return tuple(_spell(reading, boundary) for boundary in boundaries)


def masking(reading: Reading, boundaries: Sequence[Boundary], _budget: int) -> tuple[Spell, ...]:
    """Results leave, a note stands for each; calls and prose stay, as far as there is room.

    The newest stay: all calls and prose of a long session would soon be too large for a model.
    """
    return tuple(_masked(reading, boundary) for boundary in boundaries)


@dataclass(frozen=True)
class Listed:
    """What leaves is stood for by as many lines as fit, in an order."""

    lines: Callable[[Reading, Sequence[Boundary]], Iterator[Iterable[str]]]
    """Of each boundary all lines, in their order."""

    def __call__(
        self, reading: Reading, boundaries: Sequence[Boundary], budget: int
    ) -> tuple[Spell, ...]:
        return self.at(reading, boundaries, (budget,))[0]

    def at(
        self, reading: Reading, boundaries: Sequence[Boundary], budgets: Sequence[int]
    ) -> list[tuple[Spell, ...]]:
        """The same for several budgets: the lines are put in order once."""
        found: list[list[Spell]] = [[] for _ in budgets]
        for boundary, lines in zip(boundaries, self.lines(reading, boundaries), strict=True):
            ordered = list(lines)
            empty = _spell(reading, boundary)
            for spells, budget in zip(found, budgets, strict=True):
                text = _filled(ordered, budget)
                spells.append(replace(empty, summary=text, tokens=-(-len(text) // CHARACTERS)))
        return [tuple(spells) for spells in found]


def _files(reading: Reading, boundaries: Sequence[Boundary]) -> Iterator[Iterable[str]]:
    """The files that calls touched, the newest first."""
    for boundary in boundaries:
        hidden = (
            at
            for at in reading.touches
            if at.position < boundary.first_kept and at.call < boundary.call
        )
        yield dict.fromkeys(at.key for at in sorted(hidden, key=lambda at: -at.position))


def _lines(reading: Reading, boundaries: Sequence[Boundary]) -> Iterator[Iterable[str]]:
    """Whole lines of hidden history in random order."""
    order = _Order(reading.rows.session)
    hidden = _HiddenLines(reading)
    for boundary in boundaries:
        yield hidden.at(boundary, order)


def _facts(reading: Reading, boundaries: Sequence[Boundary]) -> Iterator[Iterable[str]]:
    """The facts that nothing else in the view carries, in random order, one a line."""
    order = _Order(reading.rows.session)
    counted = _Counted(reading)
    for boundary in boundaries:
        yield sorted(counted.at(boundary), key=order.__getitem__)


def _facts_by_frequency(
    reading: Reading, boundaries: Sequence[Boundary]
) -> Iterator[Iterable[str]]:
    """The same facts, those first that the most hidden rows say."""
    order = _Order(reading.rows.session)
    counted = _Counted(reading)
    for boundary in boundaries:
        counts = counted.at(boundary)
        yield sorted(counts, key=lambda key: (-counts[key], order[key]))


file_list = Listed(_files)
random_lines = Listed(_lines)
random_ledger = Listed(_facts)
frequency_ledger = Listed(_facts_by_frequency)


CONTROLS: Mapping[str, Control] = MappingProxyType(
    {
        "full history": full_history,
        "drop": drop,
        "masking": masking,
        "file list": file_list,
        "random lines": random_lines,
        "random ledger": random_ledger,
        "frequency ledger": frequency_ledger,
    }
)


def _filled(lines: Iterable[str], budget: int) -> str:
    room = budget * CHARACTERS + 1
    taken: list[str] = []
    for line in lines:
        if len(line) < room:
            taken.append(line)
            room -= len(line) + 1
            if room <= 1:
                break
    return "\n".join(taken)


def _spell(reading: Reading, boundary: Boundary) -> Spell:
    rows = reading.rows.rows[: reading.index_at(boundary.first_kept)]
    return Spell(
        call=boundary.call,
        after=boundary.first_kept - 1,
        kept=Ranges.of(row.position for row in rows if row.said is Said.SYSTEM),
        first_kept=boundary.first_kept,
    )


def _masked(reading: Reading, boundary: Boundary) -> Spell:
    rows = reading.rows.rows
    cut = reading.index_at(boundary.first_kept)
    room = MASKED * sum(_tokens(row) for row in rows[cut : reading.seen_by(boundary.call)])
    first = cut
    while first and (row := rows[first - 1]):
        room -= _tokens(replace(row, text=CLEARED) if row.said is Said.TOOL_RESULT else row)
        if room < 0:
            break
        first -= 1
    stays = [row for at, row in enumerate(rows[:cut]) if at >= first or row.said is Said.SYSTEM]
    return Spell(
        call=boundary.call,
        after=boundary.first_kept - 1,
        kept=Ranges.of(row.position for row in stays),
        shown={row.position: CLEARED for row in stays if row.said is Said.TOOL_RESULT},
        first_kept=boundary.first_kept,
    )


def _tokens(row: Row) -> int:
    return 0 if row.said is Said.SYSTEM else row.tokens + FRAMING


def _hidden(reading: Reading, first: int, boundary: Boundary) -> Iterator[int]:
    """Indices from a first one on of what a boundary hides."""
    rows = reading.rows.rows
    below = min(reading.index_at(boundary.first_kept), reading.seen_by(boundary.call))
    for index in range(first, below):
        if rows[index].said is not Said.SYSTEM:
            yield index


class _HiddenLines:
    """The lines that only hidden rows need have, from boundary to boundary."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._known: set[str] = set()
        self._ordered: list[str] = []
        self._first_kept = 0
        self._next = 0

    def at(self, boundary: Boundary, order: "_Order") -> Sequence[str]:
        reading = self._reading
        if boundary.first_kept < self._first_kept:
            # A rewind: less is hidden than before.
            self._known, self._ordered, self._next = set(), [], 0
        rows = reading.rows.rows
        texts = (rows[index].text for index in _hidden(reading, self._next, boundary))
        news = {line for text in texts for line in text.split("\n")} - self._known
        self._known |= news
        self._ordered += filter(str.strip, news)
        # Most of it is in order already.
        self._ordered.sort(key=order.__getitem__)
        self._first_kept = boundary.first_kept
        self._next = min(reading.index_at(boundary.first_kept), reading.seen_by(boundary.call))
        return self._ordered


class _Counted:
    """Of each fact that only hidden rows say how many do, from boundary to boundary."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._counts: Counter[str] = Counter()
        self._first_kept = 0
        self._next = 0

    def at(self, boundary: Boundary) -> Mapping[str, int]:
        reading = self._reading
        if boundary.first_kept < self._first_kept:
            # A rewind: less is hidden than before.
            self._counts, self._next = Counter(), 0
        for index in _hidden(reading, self._next, boundary):
            self._counts.update(reading.facts(index).keys())
        self._first_kept = boundary.first_kept
        self._next = reading.index_at(boundary.first_kept)
        kept = _kept(reading, boundary)
        return {key: count for key, count in self._counts.items() if key not in kept}


def _kept(reading: Reading, boundary: Boundary) -> set[str]:
    """The keys that the system prompt and the kept window carry: to say them again is no use."""
    cut, rows = reading.index_at(boundary.first_kept), reading.rows.rows
    return {
        key
        for index in range(reading.seen_by(boundary.call))
        if index >= cut or rows[index].said is Said.SYSTEM
        for key in reading.carried[index]
    }


class _Order(dict[str, bytes]):
    """Where each line comes in an order that is as good as random, and anywhere the same."""

    def __init__(self, session: str) -> None:
        super().__init__()
        self._seed = blake2b(session.encode("utf-8", "surrogatepass"), digest_size=16).digest()

    def __missing__(self, line: str) -> bytes:
        encoded = line.encode("utf-8", "surrogatepass")
        order = self[line] = blake2b(encoded, digest_size=8, key=self._seed).digest()
        return order
