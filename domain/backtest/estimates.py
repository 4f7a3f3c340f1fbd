"""Figures of one setup with how far they would lie elsewhere: what a drawing has as error bars."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..fidelity.scores import ratio
from .cell import Cell
from .comparison import RATIOS, Measure
from .resampling import Interval, interval_of
from .totals import Total


@dataclass(frozen=True, slots=True)
class Estimate:
    """Of the sums over all sessions."""

    value: float
    interval: Interval | None
    """At 95 percent; None where there is one session only."""


def estimate(total: Total, measure: Measure) -> Estimate | None:
    """A ratio of one setup; None where nothing was at stake. Takes no amounts."""
    counts, figure = RATIOS[measure]
    rows = [counts(cell) for cell in total.cells]
    return _estimate([row for row in rows if any(row)], figure)


def usd_per_call(total: Total) -> Estimate | None:
    """Of the sessions whose prices are known."""
    return _per_call(total.priced, lambda cell: cell.bill.usd or 0.0)


def tokens_per_call(total: Total) -> Estimate | None:
    return _per_call(total.cells, lambda cell: cell.bill.prompt_tokens)


def _per_call(cells: Sequence[Cell], amount: Callable[[Cell], float]) -> Estimate | None:
    return _estimate(
        [(amount(cell), cell.calls) for cell in cells], lambda sums: ratio(sums[0], sums[1])
    )


def _estimate(
    rows: Sequence[Sequence[float]], figure: Callable[[Sequence[float]], float | None]
) -> Estimate | None:
    columns = [list(column) for column in zip(*rows, strict=True)]
    value = figure([sum(column) for column in columns]) if columns else None
    return None if value is None else Estimate(value, interval_of(columns, figure))
