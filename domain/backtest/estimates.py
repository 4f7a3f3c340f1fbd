"""Estimates the ratios of one setup with their intervals, for the error bars of a chart."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..fidelity.scores import divide
from .cell import Cell
from .comparison import RATIO_METRICS, Interval, Metric, bootstrap_interval
from .totals import SetupTotal


@dataclass(frozen=True, slots=True)
class IntervalEstimate:
    """A ratio of the sums over all sessions."""

    value: float
    interval: Interval | None
    """At 95 percent; None for a single session."""


def estimate_metric(total: SetupTotal, metric: Metric) -> IntervalEstimate | None:
    """Return a ratio of one setup; None if nothing was at stake. Does not accept amounts."""
    counts, figure = RATIO_METRICS[metric]
    rows = [counts(cell) for cell in total.cells]
    return _estimate([row for row in rows if any(row)], figure)


def estimate_usd_per_call(total: SetupTotal) -> IntervalEstimate | None:
    """Return the cost per call over the sessions with known prices."""
    return _estimate_per_call(total.priced_cells, lambda cell: cell.bill.usd or 0.0)


def estimate_tokens_per_call(total: SetupTotal) -> IntervalEstimate | None:
    return _estimate_per_call(total.cells, lambda cell: cell.bill.prompt_tokens)


def _estimate_per_call(
    cells: Sequence[Cell], amount: Callable[[Cell], float]
) -> IntervalEstimate | None:
    return _estimate(
        [(amount(cell), cell.calls) for cell in cells], lambda sums: divide(sums[0], sums[1])
    )


def _estimate(
    rows: Sequence[Sequence[float]], figure: Callable[[Sequence[float]], float | None]
) -> IntervalEstimate | None:
    columns = [list(column) for column in zip(*rows, strict=True)]
    value = figure([sum(column) for column in columns]) if columns else None
    return None if value is None else IntervalEstimate(value, bootstrap_interval(columns, figure))
