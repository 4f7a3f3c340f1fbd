"""Draws what each setup costs and keeps as Plotly data and layout, one drawing for each limit."""

from collections.abc import Iterable, Sequence
from math import isfinite
from typing import Any

from ....domain.backtest.cell import SetupTotal, restrict_to_shared_sessions
from ....domain.backtest.comparison import (
    IntervalEstimate,
    Metric,
    estimate_metric,
    estimate_tokens_per_call,
    estimate_usd_per_100_calls,
)
from ..pages.templates import show_hidden_characters

Drawing = dict[str, Any]

COLUMN_LABELS = {
    "R": "facts kept (R)",
    "C": "facts kept in context (C)",
    "P": "prose kept (P)",
    "F3": "kept overall (F3)",
    "hard R": "hard facts kept",
    "files": "modified files named",
    "constraints": "constraints kept",
    "invented": "facts invented",
    "written again": "tokens written again",
    "refused": "prompts refused",
    "futile": "compactions that removed nothing",
    "broken": "plans that part calls from results",
    "stood in": "summaries by a stand-in",
    "in": "figure",
    "differs by": "all sessions together [95 %]",
}
"""What the report calls the columns of tables and what it draws."""
# Distinct with any color vision, on light and on dark.
_COLORS = (
    *("#0072b2", "#d55e00", "#009e73", "#cc79a7"),
    *("#e69f00", "#56b4e9", "#8c6bb1", "#7f7f7f"),
)


def draw_cost_and_fidelity(by_limit: Iterable[Sequence[SetupTotal]]) -> tuple[list[Drawing], bool]:
    """Draw cost and fidelity at each limit; also return whether costs are dollars.

    Only sessions that all setups of a limit share are included, so that costs compare. A limit
    without needed facts has no drawing. Costs that are not dollars are tokens.
    """
    totals = [restrict_to_shared_sessions(each) for each in by_limit]
    estimates = [estimate_usd_per_100_calls(one) for each in totals for one in each if one.cells]
    is_priced = None not in estimates
    estimate_cost = estimate_usd_per_100_calls if is_priced else estimate_tokens_per_call
    unit = "US dollars for 100 calls" if is_priced else "prompt tokens a call"
    drawings = []
    for each in totals:
        traces = [
            _draw_point(total.setup.label, cost, kept)
            for total in each
            if (kept := estimate_metric(total, Metric.F3)) and (cost := estimate_cost(total))
        ]
        if traces:
            title = f"<b>limit {each[0].setup.limit:,}</b>"
            drawings.append({"data": traces, "layout": _make_layout(title, unit)})
    return drawings, is_priced


def _make_layout(title: str, unit: str) -> Drawing:
    return {
        "title": {"text": title, "font": {"size": 12}},
        "height": 440,
        "margin": {"l": 60, "r": 20, "t": 40, "b": 60},
        # At the bottom of the drawing, where it never covers an axis title.
        "legend": {"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom"},
        "colorway": _COLORS,
        "hovermode": "closest",
        "showlegend": True,
        "xaxis": {"automargin": True, "title": {"text": unit}},
        "yaxis": {
            "automargin": True,
            "title": {"text": COLUMN_LABELS["F3"]},
            "range": [0, None],
        },
    }


def _draw_point(label: str, cost: IntervalEstimate, kept: IntervalEstimate) -> Drawing:
    return {
        "type": "scatter",
        "mode": "markers",
        # Plotly would interpret tags.
        "name": show_hidden_characters(label).replace("&", "&amp;").replace("<", "&lt;"),
        "x": [cost.value],
        "y": [kept.value],
        "error_x": _make_error_bar(cost),
        "error_y": _make_error_bar(kept),
        "marker": {"size": 11},
    }


def _make_error_bar(estimate: IntervalEstimate) -> Drawing:
    low, high = estimate.interval or (estimate.value, estimate.value)
    # A resample of zero may make a bar infinite.
    above, below = (
        length if isfinite(length) else None
        for length in (high - estimate.value, estimate.value - low)
    )
    bar = {"type": "data", "symmetric": False, "array": [above], "arrayminus": [below]}
    return {**bar, "thickness": 1}
