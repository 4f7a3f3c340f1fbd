"""Defines artificial texts as a baseline: a score that such a text also reaches means nothing."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b

from ..ranges import Ranges
from ..token_estimate import CHARS_PER_TOKEN
from .later_references import RowBoundary, count_row_tokens
from .rows import WHOLE_HISTORY, RowKind, ViewSegment
from .session_reading import SessionReading

CLEARED_TEXT = "[cleared]"
"""The text of a masked result."""
_MASKED_SHARE = 0.75
"""The size of what stays next to masked results, as a share of the kept window."""

_Views = tuple[ViewSegment, ...]
_Lines = Iterator[Iterable[str]]
"""The ordered lines of each boundary."""


def build_controls(
    reading: SessionReading, boundaries: Sequence[RowBoundary], budgets: Sequence[int]
) -> Iterator[tuple[str, int | None, _Views]]:
    """Yield each control by name, with its budget in tokens, if it has one, and its views.

    The boundaries go forward, as the canonical ones do.
    """
    for name, control in _PLAIN_CONTROLS.items():
        yield name, None, control(reading, boundaries)
    empty = _drop_history(reading, boundaries)
    for name, write in _LINE_CONTROLS.items():
        found: list[list[ViewSegment]] = [[] for _ in budgets]
        for segment, lines in zip(empty, write(reading, boundaries), strict=True):
            ordered = list(lines)
            for segments, budget in zip(found, budgets, strict=True):
                segments.append(replace(segment, summary=_fill_budget(ordered, budget)))
        for budget, segments in zip(budgets, found, strict=True):
            yield name, budget, tuple(segments)


def _fill_budget(lines: Iterable[str], budget: int) -> str:
    room = budget * CHARS_PER_TOKEN + 1
    taken: list[str] = []
    for line in lines:
        if len(line) < room:
            taken.append(line)
            room -= len(line) + 1
            if room <= 1:
                break
    return "\n".join(taken)


# Controls without a text


def _drop_history(reading: SessionReading, boundaries: Sequence[RowBoundary]) -> _Views:
    return tuple(_make_segment(reading, boundary, ()) for boundary in boundaries)


def _mask_results(reading: SessionReading, boundaries: Sequence[RowBoundary]) -> _Views:
    """Replace results with a note; calls and prose stay as far as there is room, newest first.

    Without a limit, the calls and prose of a long session would soon be too large for a model.
    """
    rows = len(reading.rows.rows)
    return tuple(
        _make_segment(reading, boundary, range(_find_first_masked(reading, boundary), rows))
        for boundary in boundaries
    )


def _find_first_masked(reading: SessionReading, boundary: RowBoundary) -> int:
    """Return the index of the first row before a boundary that stays next to masked results."""
    rows, first = reading.rows.rows, reading.find_index(boundary.first_kept)
    window = rows[first : reading.count_rows_seen(boundary.call)]
    room = _MASKED_SHARE * sum(map(count_row_tokens, window))
    while first:
        row = rows[first - 1]
        masked = replace(row, text=CLEARED_TEXT) if row.kind is RowKind.TOOL_RESULT else row
        room -= count_row_tokens(masked)
        if room < 0:
            break
        first -= 1
    return first


def _make_segment(
    reading: SessionReading, boundary: RowBoundary, stays: Sequence[int]
) -> ViewSegment:
    """Return a view without what a boundary hides, except system rows and the indices `stays`."""
    before = reading.rows.rows[: reading.find_index(boundary.first_kept)]
    kept = [row for at, row in enumerate(before) if at in stays or row.kind is RowKind.SYSTEM]
    return ViewSegment(
        call=boundary.call,
        after=boundary.first_kept - 1,
        kept=Ranges.of(row.position for row in kept),
        shown={row.position: CLEARED_TEXT for row in kept if row.kind is RowKind.TOOL_RESULT},
    )


# Controls that replace what leaves with as many lines as fit


def _iter_random_lines(reading: SessionReading, boundaries: Sequence[RowBoundary]) -> _Lines:
    order = _RandomOrder(reading.rows.session)
    known: set[str] = set()
    ordered: list[str] = []
    for _, hidden in _iter_newly_hidden(reading, boundaries):
        texts = (reading.rows.rows[index].text for index in hidden)
        news = {line for text in texts for line in text.split("\n")} - known
        known |= news
        ordered += filter(str.strip, news)
        # Most of it is sorted already.
        ordered.sort(key=order.__getitem__)
        yield ordered


def _iter_random_facts(reading: SessionReading, boundaries: Sequence[RowBoundary]) -> _Lines:
    """Yield the facts that nothing else in the view carries, in random order, one a line."""
    order = _RandomOrder(reading.rows.session)
    for counts in _iter_fact_counts(reading, boundaries):
        yield sorted(counts, key=order.__getitem__)


def _iter_facts_by_frequency(reading: SessionReading, boundaries: Sequence[RowBoundary]) -> _Lines:
    """Yield the same facts, those in the most hidden rows first."""
    order = _RandomOrder(reading.rows.session)
    for counts in _iter_fact_counts(reading, boundaries):
        yield sorted(counts, key=lambda key: (-counts[key], order[key]))


def _iter_fact_counts(
    reading: SessionReading, boundaries: Sequence[RowBoundary]
) -> Iterator[Mapping[str, int]]:
    """Yield how many hidden rows contain each fact that the rest of the view does not carry."""
    counts: Counter[str] = Counter()
    rows = reading.rows.rows
    for boundary, hidden in _iter_newly_hidden(reading, boundaries):
        for index in hidden:
            counts.update(reading.find_facts(rows[index].text).keys())
        cut = reading.find_index(boundary.first_kept)
        kept = {
            key
            for index in range(reading.count_rows_seen(boundary.call))
            if index >= cut or rows[index].kind is RowKind.SYSTEM
            for key in reading.row_keys[index]
        }
        yield {key: count for key, count in counts.items() if key not in kept}


def _iter_newly_hidden(
    reading: SessionReading, boundaries: Sequence[RowBoundary]
) -> Iterator[tuple[RowBoundary, list[int]]]:
    """Yield each boundary with the indices of the rows that it hides and the one before did not."""
    first, rows = 0, reading.rows.rows
    for boundary in boundaries:
        below = min(reading.find_index(boundary.first_kept), reading.count_rows_seen(boundary.call))
        yield boundary, [at for at in range(first, below) if rows[at].kind is not RowKind.SYSTEM]
        first = max(first, below)


class _RandomOrder(dict[str, bytes]):
    """A pseudo-random order of lines that is the same on every machine."""

    def __init__(self, session: str) -> None:
        super().__init__()
        self._seed = blake2b(session.encode("utf-8", "surrogatepass"), digest_size=16).digest()

    def __missing__(self, line: str) -> bytes:
        encoded = line.encode("utf-8", "surrogatepass")
        order = self[line] = blake2b(encoded, digest_size=8, key=self._seed).digest()
        return order


_PLAIN_CONTROLS: dict[str, Callable[[SessionReading, Sequence[RowBoundary]], _Views]] = {
    "full history": lambda _reading, _boundaries: (WHOLE_HISTORY,),
    "drop": _drop_history,
    "masking": _mask_results,
}
_LINE_CONTROLS: dict[str, Callable[[SessionReading, Sequence[RowBoundary]], _Lines]] = {
    "random lines": _iter_random_lines,
    "random ledger": _iter_random_facts,
    "frequency ledger": _iter_facts_by_frequency,
}
