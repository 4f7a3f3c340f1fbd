"""Defines artificial texts as a baseline: a score that such a text also reaches means nothing."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from types import MappingProxyType

from ..ranges import Ranges
from .canonical_boundaries import FRAMING_TOKENS, RowBoundary
from .rows import WHOLE_HISTORY, FidelityRow, RowKind, ViewSegment
from .session_reading import SessionReading

_CHARS_PER_TOKEN = 4
CLEARED_TEXT = "[cleared]"
"""The text of a masked result."""
_MASKED_SHARE = 0.75
"""The size of what stays next to masked results, as a share of the kept window."""

Control = Callable[[SessionReading, Sequence[RowBoundary], int], tuple[ViewSegment, ...]]
"""Returns the views that would be sent, given a session, boundaries and a text's tokens."""


def keep_full_history(
    _: SessionReading, _boundaries: Sequence[RowBoundary], _budget: int
) -> tuple[ViewSegment, ...]:
    return (WHOLE_HISTORY,)


def drop_history(
    reading: SessionReading, boundaries: Sequence[RowBoundary], _budget: int
) -> tuple[ViewSegment, ...]:
    return tuple(_make_segment(reading, boundary) for boundary in boundaries)


def mask_results(
    reading: SessionReading, boundaries: Sequence[RowBoundary], _budget: int
) -> tuple[ViewSegment, ...]:
    """Replace results with a note; calls and prose stay as far as there is room, newest first.

    Without a limit, the calls and prose of a long session would soon be too large for a model.
    """
    return tuple(_make_masked_segment(reading, boundary) for boundary in boundaries)


@dataclass(frozen=True)
class LineListControl:
    """A control that replaces what leaves with as many lines as fit, in a given order."""

    lines: Callable[[SessionReading, Sequence[RowBoundary]], Iterator[Iterable[str]]]
    """Yields the ordered lines of each boundary."""

    def __call__(
        self, reading: SessionReading, boundaries: Sequence[RowBoundary], budget: int
    ) -> tuple[ViewSegment, ...]:
        return self.build_for_budgets(reading, boundaries, (budget,))[0]

    def build_for_budgets(
        self, reading: SessionReading, boundaries: Sequence[RowBoundary], budgets: Sequence[int]
    ) -> list[tuple[ViewSegment, ...]]:
        """Return the views for several budgets, ordering the lines only once."""
        found: list[list[ViewSegment]] = [[] for _ in budgets]
        for boundary, lines in zip(boundaries, self.lines(reading, boundaries), strict=True):
            ordered = list(lines)
            empty = _make_segment(reading, boundary)
            for spells, budget in zip(found, budgets, strict=True):
                text = _fill_budget(ordered, budget)
                spells.append(
                    replace(empty, summary=text, tokens=-(-len(text) // _CHARS_PER_TOKEN))
                )
        return [tuple(spells) for spells in found]


def _iter_files(
    reading: SessionReading, boundaries: Sequence[RowBoundary]
) -> Iterator[Iterable[str]]:
    for boundary in boundaries:
        hidden = (
            at
            for at in reading.file_touches
            if at.position < boundary.first_kept and at.call < boundary.call
        )
        yield dict.fromkeys(at.key for at in sorted(hidden, key=lambda at: -at.position))


def _iter_random_lines(
    reading: SessionReading, boundaries: Sequence[RowBoundary]
) -> Iterator[Iterable[str]]:
    order = _RandomOrder(reading.rows.session)
    hidden = _HiddenLines(reading)
    for boundary in boundaries:
        yield hidden.list_at(boundary, order)


def _iter_random_facts(
    reading: SessionReading, boundaries: Sequence[RowBoundary]
) -> Iterator[Iterable[str]]:
    """Yield the facts that nothing else in the view carries, in random order, one a line."""
    order = _RandomOrder(reading.rows.session)
    counted = _FactCounts(reading)
    for boundary in boundaries:
        yield sorted(counted.count_at(boundary), key=order.__getitem__)


def _iter_facts_by_frequency(
    reading: SessionReading, boundaries: Sequence[RowBoundary]
) -> Iterator[Iterable[str]]:
    """Yield the same facts, those in the most hidden rows first."""
    order = _RandomOrder(reading.rows.session)
    counted = _FactCounts(reading)
    for boundary in boundaries:
        counts = counted.count_at(boundary)
        yield sorted(counts, key=lambda key: (-counts[key], order[key]))


file_list = LineListControl(_iter_files)
random_lines = LineListControl(_iter_random_lines)
random_ledger = LineListControl(_iter_random_facts)
frequency_ledger = LineListControl(_iter_facts_by_frequency)


CONTROLS: Mapping[str, Control] = MappingProxyType(
    {
        "full history": keep_full_history,
        "drop": drop_history,
        "masking": mask_results,
        "file list": file_list,
        "random lines": random_lines,
        "random ledger": random_ledger,
        "frequency ledger": frequency_ledger,
    }
)


def _fill_budget(lines: Iterable[str], budget: int) -> str:
    room = budget * _CHARS_PER_TOKEN + 1
    taken: list[str] = []
    for line in lines:
        if len(line) < room:
            taken.append(line)
            room -= len(line) + 1
            if room <= 1:
                break
    return "\n".join(taken)


def _make_segment(reading: SessionReading, boundary: RowBoundary) -> ViewSegment:
    rows = reading.rows.rows[: reading.find_index(boundary.first_kept)]
    return ViewSegment(
        call=boundary.call,
        after=boundary.first_kept - 1,
        kept=Ranges.of(row.position for row in rows if row.kind is RowKind.SYSTEM),
        first_kept=boundary.first_kept,
    )


def _make_masked_segment(reading: SessionReading, boundary: RowBoundary) -> ViewSegment:
    rows = reading.rows.rows
    cut = reading.find_index(boundary.first_kept)
    room = _MASKED_SHARE * sum(
        _count_tokens(row) for row in rows[cut : reading.count_rows_seen(boundary.call)]
    )
    first = cut
    while first and (row := rows[first - 1]):
        room -= _count_tokens(
            replace(row, text=CLEARED_TEXT) if row.kind is RowKind.TOOL_RESULT else row
        )
        if room < 0:
            break
        first -= 1
    stays = [row for at, row in enumerate(rows[:cut]) if at >= first or row.kind is RowKind.SYSTEM]
    return ViewSegment(
        call=boundary.call,
        after=boundary.first_kept - 1,
        kept=Ranges.of(row.position for row in stays),
        shown={row.position: CLEARED_TEXT for row in stays if row.kind is RowKind.TOOL_RESULT},
        first_kept=boundary.first_kept,
    )


def _count_tokens(row: FidelityRow) -> int:
    return 0 if row.kind is RowKind.SYSTEM else row.tokens + FRAMING_TOKENS


def _iter_hidden_rows(reading: SessionReading, first: int, boundary: RowBoundary) -> Iterator[int]:
    """Yield the indices, from `first` on, of rows that a boundary hides."""
    rows = reading.rows.rows
    below = min(reading.find_index(boundary.first_kept), reading.count_rows_seen(boundary.call))
    for index in range(first, below):
        if rows[index].kind is not RowKind.SYSTEM:
            yield index


class _HiddenLines:
    """The lines of hidden rows, extended from boundary to boundary."""

    def __init__(self, reading: SessionReading) -> None:
        self._reading = reading
        self._known: set[str] = set()
        self._ordered: list[str] = []
        self._first_kept = 0
        self._next = 0

    def list_at(self, boundary: RowBoundary, order: "_RandomOrder") -> Sequence[str]:
        reading = self._reading
        if boundary.first_kept < self._first_kept:
            # After a rewind, less is hidden than before.
            self._known, self._ordered, self._next = set(), [], 0
        rows = reading.rows.rows
        texts = (rows[index].text for index in _iter_hidden_rows(reading, self._next, boundary))
        news = {line for text in texts for line in text.split("\n")} - self._known
        self._known |= news
        self._ordered += filter(str.strip, news)
        # Most of it is sorted already.
        self._ordered.sort(key=order.__getitem__)
        self._first_kept = boundary.first_kept
        self._next = min(
            reading.find_index(boundary.first_kept), reading.count_rows_seen(boundary.call)
        )
        return self._ordered


class _FactCounts:
    """How many hidden rows contain each fact that no kept row has, updated at each boundary."""

    def __init__(self, reading: SessionReading) -> None:
        self._reading = reading
        self._counts: Counter[str] = Counter()
        self._first_kept = 0
        self._next = 0

    def count_at(self, boundary: RowBoundary) -> Mapping[str, int]:
        reading = self._reading
        if boundary.first_kept < self._first_kept:
            # After a rewind, less is hidden than before.
            self._counts, self._next = Counter(), 0
        for index in _iter_hidden_rows(reading, self._next, boundary):
            self._counts.update(reading.find_facts(index).keys())
        self._first_kept = boundary.first_kept
        self._next = reading.find_index(boundary.first_kept)
        kept = _collect_kept_keys(reading, boundary)
        return {key: count for key, count in self._counts.items() if key not in kept}


def _collect_kept_keys(reading: SessionReading, boundary: RowBoundary) -> set[str]:
    """Return the keys in the system prompt and the kept window, which a text need not repeat."""
    cut, rows = reading.find_index(boundary.first_kept), reading.rows.rows
    return {
        key
        for index in range(reading.count_rows_seen(boundary.call))
        if index >= cut or rows[index].kind is RowKind.SYSTEM
        for key in reading.carried[index]
    }


class _RandomOrder(dict[str, bytes]):
    """A pseudo-random order of lines that is the same on every machine."""

    def __init__(self, session: str) -> None:
        super().__init__()
        self._seed = blake2b(session.encode("utf-8", "surrogatepass"), digest_size=16).digest()

    def __missing__(self, line: str) -> bytes:
        encoded = line.encode("utf-8", "surrogatepass")
        order = self[line] = blake2b(encoded, digest_size=8, key=self._seed).digest()
        return order
