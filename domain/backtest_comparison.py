"""Compares two setups over the same sessions, with confidence intervals by the bootstrap."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache, partial
from hashlib import shake_256
from math import inf, sqrt
from operator import itemgetter
from statistics import NormalDist
from struct import unpack

from .backtest_cell import (
    BacktestResult,
    Cell,
    CellOutcome,
    Setup,
    SetupTotal,
    compute_totals,
    get_session_name,
    list_limits,
)
from .fidelity.rows import Scores, divide

RESAMPLES = 2_000
SEED = b"resamples"
"""Fixed, so that the same sessions always give the same interval."""
_CONFIDENCE = 0.95

Interval = tuple[float, float]
_Figure = Callable[[Sequence[float]], float | None]
"""Returns a figure of sums over sessions; None if it is undefined."""


def bootstrap_interval(columns: Sequence[Sequence[float]], figure: _Figure) -> Interval | None:
    """Return the 95 percent interval of `figure`: resampled percentiles, widened for few sessions.

    Each column holds one number per session, in the same order. `figure` gets the columns' sums
    over a resample, and may return None if it is undefined there. The result is None if it always
    is.
    """
    sessions = len(columns[0]) if columns else 0
    if sessions < 2:
        return None
    found = [
        value
        for draw in _draw_resamples(sessions)
        if (value := figure([sum(draw(column)) for column in columns])) is not None
    ]
    if not found:
        return None
    ordered, left = sorted(found), _compute_tail_share(sessions)
    return _interpolate(ordered, left), _interpolate(ordered, 1 - left)


def _compute_tail_share(sessions: int) -> float:
    """Return the share of resamples beyond either end of the interval: 0.025 for many sessions.

    Resamples of n sessions spread too little by sqrt((n - 1) / n), and their quantiles are normal
    instead of Student's. Hesterberg's expanded percentiles correct both by going further out: for
    six sessions, plain percentiles would be wrong 15 times in 100.
    """
    normal = NormalDist()
    freedom = sessions - 1
    quantile = _student_quantile(normal.inv_cdf((1 + _CONFIDENCE) / 2), freedom)
    return normal.cdf(-sqrt(sessions / freedom) * quantile)


def _student_quantile(z: float, freedom: int) -> float:
    """Return Student's quantile for a normal one, by its expansion in 1 / freedom."""
    return (
        z
        + (z**3 + z) / (4 * freedom)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3)
    )


def _interpolate(ordered: Sequence[float], part: float) -> float:
    place = part * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    if place == low or ordered[low] == ordered[high]:  # both may be infinite
        return ordered[low]
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


@lru_cache(maxsize=8)
def _draw_resamples(sessions: int) -> tuple[Callable[[Sequence[float]], tuple[float, ...]], ...]:
    """Return what picks each resample; the same for all figures, so that figures compare."""
    # Drawn from a digest, so that they are the same on every machine and Python version. The bias
    # from 2**32 not being a multiple of the number of sessions is negligible.
    numbers = unpack(f"<{RESAMPLES * sessions}I", shake_256(SEED).digest(4 * RESAMPLES * sessions))
    drawn = [number % sessions for number in numbers]
    return tuple(
        itemgetter(*drawn[start : start + sessions])
        for start in range(0, RESAMPLES * sessions, sessions)
    )


MIN_SESSIONS = 6
"""The fewest sessions for a verdict: even five that agree are no evidence at 95 percent, two-sided.
"""


class ComparisonVerdict(StrEnum):
    BETTER = "better"
    WORSE = "worse"
    CANNOT_TELL = "cannot tell"


class Metric(StrEnum):
    COST = "cost"
    """US dollars, over the sessions whose prices are known under both setups."""
    TOKENS = "prompt tokens"
    WRITTEN = "written again"
    """Tokens that boundaries and rewinds caused to be written again."""
    REFUSED = "prompts refused"
    """Calls whose prompt was larger than the limit."""
    RECALL = "R"
    CONTEXT = "C"
    PROSE = "P"
    F3 = "F3"
    HARD = "hard R"

    @property
    def is_amount(self) -> bool:
        """Whether it is an amount, where less is better; the others are ratios."""
        return self in _AMOUNTS


@dataclass(frozen=True, slots=True)
class SetupDifference:
    """The difference of one setup from another: positive if it has more."""

    metric: Metric
    setup: Setup
    against: Setup
    sessions: int
    """The sessions that count: for an amount all, for a ratio those with something at stake."""
    overall: float | None
    """From sums over all sessions: an amount's relative change, a ratio's difference in points."""
    interval: Interval | None
    """The interval of `overall`, at 95 percent."""

    @property
    def verdict(self) -> ComparisonVerdict:
        """The verdict; a winner needs enough sessions and an interval wholly on one side."""
        if self.interval is None or self.sessions < MIN_SESSIONS:
            return ComparisonVerdict.CANNOT_TELL
        low, high = self.interval
        if low <= 0 <= high:
            return ComparisonVerdict.CANNOT_TELL
        is_more = low > 0
        is_better = is_more != self.metric.is_amount
        return ComparisonVerdict.BETTER if is_better else ComparisonVerdict.WORSE


def compare_setups(measured: BacktestResult) -> Iterator[SetupDifference]:
    """Yield the difference of each setup from the first with the same limit, in each metric."""
    totals = compute_totals(measured)
    for limit in list_limits(measured):
        found = [(*one.cells, *one.failed) for one in totals if one.setup.limit == limit]
        against, *others = found
        for compared in filter(None, others) if against else ():
            for measure in Metric:
                yield compare_cells(measure, compared, against)


def compare_cells(
    metric: Metric, cells: Sequence[Cell], against: Sequence[Cell]
) -> SetupDifference:
    """Return how the first cells differ from the second, ignoring sessions that only one has.

    Each argument holds the cells of one setup, and at least one cell. Sessions do not count whose
    amount is not known under both setups, or that have nothing at stake.
    """
    pairs = _pair_cells(cells, against)
    rows: list[tuple[float, ...]]
    figure: _Figure
    if metric.is_amount:
        amount = _AMOUNTS[metric]
        found = [(amount(cell), amount(its)) for cell, its in pairs]
        rows = [(one, other) for one, other in found if one is not None and other is not None]
        figure = _compute_relative_change
    else:
        names, ratio = RATIOS[metric]
        both = [(*_get_counts(cell, names), *_get_counts(its, names)) for cell, its in pairs]
        rows, figure = [row for row in both if any(row)], partial(_subtract_ratios, ratio)
    overall = _compute_figure(rows, figure)
    return SetupDifference(
        metric=metric,
        setup=cells[0].setup,
        against=against[0].setup,
        sessions=len(rows),
        overall=None if overall is None or overall.value == inf else overall.value,
        interval=None if overall is None or overall.value == inf else overall.interval,
    )


def _pair_cells(cells: Sequence[Cell], against: Sequence[Cell]) -> list[tuple[Cell, Cell]]:
    theirs = {get_session_name(cell): cell for cell in against if cell.outcome is CellOutcome.DONE}
    # Sorted by name, so that the order of the cells does not affect an interval.
    return [
        (cell, theirs[get_session_name(cell)])
        for cell in sorted(cells, key=get_session_name)
        if cell.outcome is CellOutcome.DONE and get_session_name(cell) in theirs
    ]


# Figures


@dataclass(frozen=True, slots=True)
class IntervalEstimate:
    """A figure of the sums over all sessions."""

    value: float
    interval: Interval | None
    """At 95 percent; None for a single session."""


def estimate_metric(total: SetupTotal, metric: Metric) -> IntervalEstimate | None:
    """Return a ratio of one setup; None if nothing was at stake. Does not accept amounts."""
    names, figure = RATIOS[metric]
    rows = [_get_counts(cell, names) for cell in total.cells]
    return _compute_figure([row for row in rows if any(row)], figure)


def estimate_usd_per_100_calls(total: SetupTotal) -> IntervalEstimate | None:
    """Return the cost of a hundred calls over the sessions with known prices."""
    rows = [(100 * (cell.bill.usd or 0.0), cell.calls) for cell in total.priced_cells]
    return _compute_figure(rows, _divide)


def estimate_tokens_per_call(total: SetupTotal) -> IntervalEstimate | None:
    rows = [(cell.bill.prompt_tokens, cell.calls) for cell in total.cells]
    return _compute_figure(rows, _divide)


def _compute_figure(rows: Sequence[Sequence[float]], figure: _Figure) -> IntervalEstimate | None:
    """Return the figure of the sums of the rows, one a session; None if it is undefined."""
    columns = [list(column) for column in zip(*rows, strict=True)]
    value = figure([sum(column) for column in columns]) if columns else None
    return None if value is None else IntervalEstimate(value, bootstrap_interval(columns, figure))


def _get_counts(cell: Cell, names: Sequence[str]) -> tuple[int, ...]:
    return tuple(getattr(cell.canonical, name) for name in names)


def _compute_relative_change(sums: Sequence[float]) -> float:
    """Return the relative change; infinite from zero, which a resample may be too."""
    ours, theirs = sums
    if theirs:
        return (ours - theirs) / theirs
    return inf if ours else 0.0


def _subtract_ratios(ratio: _Figure, sums: Sequence[float]) -> float | None:
    width = len(sums) // 2
    ours, theirs = ratio(sums[:width]), ratio(sums[width:])
    return None if ours is None or theirs is None else ours - theirs


def _divide(counts: Sequence[float]) -> float | None:
    return divide(*counts)


def _compute_f3(counts: Sequence[float]) -> float | None:
    stakes, hits, in_context, pairs, pair_hits = map(int, counts)
    scores = Scores.model_construct(
        stakes=stakes, hits=hits, context_hits=in_context, pairs=pairs, pair_hits=pair_hits
    )
    return scores.f3


_AMOUNTS: dict[Metric, Callable[[Cell], float | None]] = {
    Metric.COST: lambda cell: cell.bill.usd,
    Metric.TOKENS: lambda cell: cell.bill.prompt_tokens,
    Metric.WRITTEN: lambda cell: cell.bill.rewritten_tokens,
    Metric.REFUSED: lambda cell: cell.refused,
}
RATIOS: dict[Metric, tuple[Sequence[str], _Figure]] = {
    Metric.RECALL: (("hits", "stakes"), _divide),
    Metric.CONTEXT: (("context_hits", "stakes"), _divide),
    Metric.PROSE: (("pair_hits", "pairs"), _divide),
    Metric.F3: (("stakes", "hits", "context_hits", "pairs", "pair_hits"), _compute_f3),
    Metric.HARD: (("hard_hits", "hard_stakes"), _divide),
}
"""The counts of a cell's scores, and the figure of their sums."""
