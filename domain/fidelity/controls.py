"""Texts that nobody would write, to compare with: what any list of words scores tells nothing."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from types import MappingProxyType

from ..ranges import Ranges
from .canonical import Boundary
from .reading import Reading
from .rows import Said
from .spells import WHOLE, Spell

CHARACTERS = 4
"""Of one token."""
CLEARED = "[cleared]"
"""What stands for a result that was masked: it says nothing."""

Control = Callable[[Reading, Sequence[Boundary], int], tuple[Spell, ...]]
"""Given a session, boundaries and the tokens that a text may have: what would have been sent."""


def full_history(_: Reading, _boundaries: Sequence[Boundary], _budget: int) -> tuple[Spell, ...]:
    """Nothing leaves."""
    return (WHOLE,)


def drop(reading: Reading, boundaries: Sequence[Boundary], _budget: int) -> tuple[Spell, ...]:
    """Nothing stands for what leaves."""
    return tuple(_spell(reading, boundary) for boundary in boundaries)


def masking(reading: Reading, boundaries: Sequence[Boundary], _budget: int) -> tuple[Spell, ...]:
    """Results leave, a note stands for each; calls and prose stay."""
    return tuple(_masked(reading, boundary) for boundary in boundaries)


def file_list(reading: Reading, boundaries: Sequence[Boundary], budget: int) -> tuple[Spell, ...]:
    """The files that calls touched, the newest first."""

    def newest_first(boundary: Boundary) -> Iterable[str]:
        hidden = (at for at in reading.touches if at.position < boundary.first_kept)
        return dict.fromkeys(at.key for at in sorted(hidden, key=lambda at: -at.position))

    return _written(reading, boundaries, budget, newest_first)


def random_lines(
    reading: Reading, boundaries: Sequence[Boundary], budget: int
) -> tuple[Spell, ...]:
    """Whole lines of hidden history in random order."""

    def shuffled(boundary: Boundary) -> Iterable[str]:
        lines = {
            line: None
            for index in _hidden(reading, boundary)
            for line in reading.rows.rows[index].text.split("\n")
            if line.strip()
        }
        return _shuffled(lines, reading, boundary)

    return _written(reading, boundaries, budget, shuffled)


def random_ledger(
    reading: Reading, boundaries: Sequence[Boundary], budget: int
) -> tuple[Spell, ...]:
    """The facts of hidden history in random order, one a line."""

    def shuffled(boundary: Boundary) -> Iterable[str]:
        return _shuffled(_counts(reading, boundary), reading, boundary)

    return _written(reading, boundaries, budget, shuffled)


def frequency_ledger(
    reading: Reading, boundaries: Sequence[Boundary], budget: int
) -> tuple[Spell, ...]:
    """The facts of hidden history, those first that the most rows say."""

    def often_first(boundary: Boundary) -> Iterable[str]:
        counts = _counts(reading, boundary)
        return sorted(counts, key=lambda key: (-counts[key], _order(key, reading, boundary)))

    return _written(reading, boundaries, budget, often_first)


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


def _written(
    reading: Reading,
    boundaries: Sequence[Boundary],
    budget: int,
    lines_at: Callable[[Boundary], Iterable[str]],
) -> tuple[Spell, ...]:
    """What leaves at each boundary is stood for by as many of the lines as fit, in order."""
    return tuple(
        _spell(reading, boundary, _filled(lines_at(boundary), budget)) for boundary in boundaries
    )


def _filled(lines: Iterable[str], budget: int) -> str:
    room = budget * CHARACTERS + 1
    taken: list[str] = []
    for line in lines:
        if len(line) < room:
            taken.append(line)
            room -= len(line) + 1
    return "\n".join(taken)


def _spell(reading: Reading, boundary: Boundary, summary: str = "") -> Spell:
    rows = reading.rows.rows[: reading.index_at(boundary.first_kept)]
    return Spell(
        call=boundary.call,
        after=boundary.first_kept - 1,
        kept=Ranges.of(row.position for row in rows if row.said is Said.SYSTEM),
        summary=summary,
        tokens=-(-len(summary) // CHARACTERS),
        first_kept=boundary.first_kept,
    )


def _masked(reading: Reading, boundary: Boundary) -> Spell:
    rows = reading.rows.rows[: reading.index_at(boundary.first_kept)]
    return Spell(
        call=boundary.call,
        after=boundary.first_kept - 1,
        kept=Ranges.of(row.position for row in rows),
        shown={row.position: CLEARED for row in rows if row.said is Said.TOOL_RESULT},
        first_kept=boundary.first_kept,
    )


def _hidden(reading: Reading, boundary: Boundary) -> Iterator[int]:
    rows = reading.rows.rows
    for index in range(reading.index_at(boundary.first_kept)):
        if rows[index].said is not Said.SYSTEM:
            yield index


def _counts(reading: Reading, boundary: Boundary) -> dict[str, int]:
    """Of each fact of hidden history how many rows say it."""
    counts: dict[str, int] = {}
    for index in _hidden(reading, boundary):
        for key in reading.facts(index):
            counts[key] = counts.get(key, 0) + 1
    return counts


def _shuffled(lines: Iterable[str], reading: Reading, boundary: Boundary) -> list[str]:
    return sorted(lines, key=lambda line: _order(line, reading, boundary))


def _order(line: str, reading: Reading, boundary: Boundary) -> bytes:
    """As good as random, and the same wherever it is reckoned."""
    seed = f"{reading.rows.session}\0{boundary.call}\0{line}"
    return blake2b(seed.encode("utf-8", "surrogatepass"), digest_size=8).digest()
