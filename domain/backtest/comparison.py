"""Two setups over the same sessions: how far apart they are, and whether it is more than noise."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import inf
from statistics import fmean

from ..fidelity.scores import Scores, ratio
from .cell import Cell, Outcome, Setup
from .resampling import Interval, interval_of
from .result import Measured
from .totals import identity, limits_of, session_of

FEWEST = 6
"""Sessions that bear on a figure before a verdict is given: five that all agree are still no
evidence at 95 percent, two-sided."""
STAKES = 5
"""A session's own ratio counts in a mean over sessions from so many stakes on."""


class Verdict(StrEnum):
    BETTER = "better"
    WORSE = "worse"
    CANNOT_TELL = "cannot tell"


class Measure(StrEnum):
    """What is compared."""

    COST = "cost"
    """US dollars, of the sessions whose prices are known under both setups."""
    TOKENS = "prompt tokens"
    WRITTEN = "written again"
    """Tokens that boundaries and rewinds made to be written again."""
    REFUSED = "prompts refused"
    """Calls whose prompt was larger than the limit."""
    RECALL = "R"
    CONTEXT = "C"
    PROSE = "P"
    F3 = "F3"
    HARD = "hard R"

    @property
    def is_amount(self) -> bool:
        """Whether it is a sum of which less is better; the others are parts of one."""
        return self in AMOUNTS


@dataclass(frozen=True, slots=True)
class Difference:
    """By how much one setup differs from another: positive where it has more."""

    measure: Measure
    setup: Setup
    against: Setup
    sessions: int
    """Those that bear on it: of an amount all, of a ratio those where something was at stake."""
    micro: float | None
    """Of the sums over all sessions: of an amount its relative change, of a ratio the points."""
    interval: Interval | None
    """Of `micro`, at 95 percent."""
    macro: float | None
    """The same as a mean over sessions, each counting as much as any other."""
    macro_interval: Interval | None
    macro_sessions: int
    """Of a ratio, the sessions with at least five stakes."""

    @property
    def verdict(self) -> Verdict:
        """Names no winner unless the whole interval is on one side, and sessions are enough."""
        if self.interval is None or self.sessions < FEWEST:
            return Verdict.CANNOT_TELL
        low, high = self.interval
        if low <= 0 <= high:
            return Verdict.CANNOT_TELL
        is_more = low > 0
        return Verdict.BETTER if is_more != self.measure.is_amount else Verdict.WORSE


Pair = tuple[Cell, Cell]


def differences_of(measured: Measured) -> Iterator[Difference]:
    """At each limit, each setup against the first of that limit, by every measure."""
    cells = _by_setup(measured)
    for limit in limits_of(measured):
        found = [cells.get(identity(one), []) for one in measured.setups if one.limit == limit]
        against, *others = found
        for compared in filter(None, others) if against else ():
            for measure in Measure:
                yield difference(measure, compared, against)


def difference(measure: Measure, cells: Sequence[Cell], against: Sequence[Cell]) -> Difference:
    """How the first differ from the second, paired by session; what is not in both is left out.

    Neither may be empty; each holds the cells of one setup.
    """
    pairs = _paired(cells, against)
    compared = _amounts if measure.is_amount else _ratios
    micro, interval, sessions, each = compared(measure, pairs)
    return Difference(
        measure=measure,
        setup=cells[0].setup,
        against=against[0].setup,
        sessions=sessions,
        micro=micro,
        interval=interval,
        macro=fmean(each) if each else None,
        macro_interval=interval_of([each], lambda sums: sums[0] / len(each)),
        macro_sessions=len(each),
    )


Compared = tuple[float | None, Interval | None, int, list[float]]


def _amounts(measure: Measure, pairs: Sequence[Pair]) -> Compared:
    """Their relative change, in all and of each session."""
    known = [
        (one, other)
        for cell, its in pairs
        if (one := AMOUNTS[measure](cell)) is not None
        and (other := AMOUNTS[measure](its)) is not None
    ]
    ours, theirs = [one for one, _ in known], [other for _, other in known]
    changed = _change([sum(ours), sum(theirs)])
    each = [(one - other) / other for one, other in known if other]
    if not known or changed == inf:
        return None, None, len(known), each
    return changed, interval_of([ours, theirs], _change), len(known), each


def _change(sums: Sequence[float]) -> float:
    """Infinite where there was nothing: a resample that says so counts as any other."""
    ours, theirs = sums
    if theirs:
        return (ours - theirs) / theirs
    return inf if ours else 0.0


def _ratios(measure: Measure, pairs: Sequence[Pair]) -> Compared:
    """The points between them; sessions in which nothing was at stake tell nothing."""
    counts, figure = RATIOS[measure]
    pairs = [pair for pair in pairs if any(counts(pair[0]) + counts(pair[1]))]
    rows = [(*counts(cell), *counts(its)) for cell, its in pairs]
    width = len(rows[0]) // 2 if rows else 0

    def apart(sums: Sequence[float]) -> float | None:
        ours, theirs = figure(sums[:width]), figure(sums[width:])
        return None if ours is None or theirs is None else ours - theirs

    columns = [list(column) for column in zip(*rows, strict=True)]
    each = [
        points
        for (cell, its), row in zip(pairs, rows, strict=True)
        if min(cell.canonical.stakes, its.canonical.stakes) >= STAKES
        and (points := apart(row)) is not None
    ]
    micro = apart([sum(column) for column in columns]) if columns else None
    return micro, interval_of(columns, apart), len(pairs), each


def _paired(cells: Sequence[Cell], against: Sequence[Cell]) -> list[Pair]:
    theirs = {session_of(cell): cell for cell in against if cell.outcome is Outcome.DONE}
    # By name, so that no order in which cells were made shows in an interval.
    return [
        (cell, theirs[session_of(cell)])
        for cell in sorted(cells, key=session_of)
        if cell.outcome is Outcome.DONE and session_of(cell) in theirs
    ]


def _by_setup(measured: Measured) -> dict[str, list[Cell]]:
    cells: dict[str, list[Cell]] = {}
    for cell in measured.cells:
        cells.setdefault(identity(cell.setup), []).append(cell)
    return cells


Figure = Callable[[Sequence[float]], float | None]
Counts = Callable[[Cell], tuple[int, ...]]


def figure_of_f3(counts: Sequence[float]) -> float | None:
    """F3 of stakes, hits, hits in context, pairs and pairs that hit."""
    stakes, hits, in_context, pairs, pair_hits = map(int, counts)
    scores = Scores.model_construct(
        stakes=stakes, hits=hits, context_hits=in_context, pairs=pairs, pair_hits=pair_hits
    )
    return scores.f3


def _part(counts: Sequence[float]) -> float | None:
    part, whole = counts
    return ratio(part, whole)


def _counted(*names: str) -> Counts:
    return lambda cell: tuple(getattr(cell.canonical, name) for name in names)


AMOUNTS: dict[Measure, Callable[[Cell], float | None]] = {
    Measure.COST: lambda cell: cell.bill.usd,
    Measure.TOKENS: lambda cell: cell.bill.prompt_tokens,
    Measure.WRITTEN: lambda cell: cell.bill.rewritten_tokens,
    Measure.REFUSED: lambda cell: cell.refused,
}
RATIOS: dict[Measure, tuple[Counts, Figure]] = {
    Measure.RECALL: (_counted("hits", "stakes"), _part),
    Measure.CONTEXT: (_counted("context_hits", "stakes"), _part),
    Measure.PROSE: (_counted("pair_hits", "pairs"), _part),
    Measure.F3: (
        _counted("stakes", "hits", "context_hits", "pairs", "pair_hits"),
        figure_of_f3,
    ),
    Measure.HARD: (_counted("hard_hits", "hard_stakes"), _part),
}
