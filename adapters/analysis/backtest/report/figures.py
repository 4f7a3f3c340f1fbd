"""Draws the figures of a report as Plotly data and layout, one for each limit."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from .....domain.backtest.cell import Setup
from .....domain.backtest.comparison import (
    IntervalEstimate,
    Metric,
    SetupDifference,
    estimate_metric,
    estimate_tokens_per_call,
    estimate_usd_per_call,
)
from .....domain.backtest.totals import (
    SetupTotal,
    find_pareto_front,
    restrict_to_shared_sessions,
)
from ...pages.templates import show_hidden_characters

Drawing = dict[str, Any]
ByLimit = Mapping[int, Sequence[SetupTotal]]

FIGURE_LABELS = {
    "R": "facts kept (R)",
    "C": "facts kept in context (C)",
    "P": "prose kept (P)",
    "F3": "kept overall (F3)",
    "hard R": "hard facts kept",
}
_MAX_NAME_CHARACTERS = 40
_GREY = "#7f7f7f"
# Distinct with any color vision, on light and on dark.
_COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6bb1", _GREY)
_DASHES = ("solid", "dash", "dot", "dashdot")
_SYMBOLS = ("circle", "diamond", "square", "triangle-up", "cross", "star")


@dataclass(frozen=True)
class SetupStyle:
    """How a setup is drawn, the same in each drawing."""

    color: str
    dash: str
    symbol: str


SetupStyles = Mapping[str, SetupStyle]


def assign_styles(setups: Iterable[Setup]) -> dict[str, SetupStyle]:
    """Assign styles by label, in order; when colors run out, dashes and symbols differ."""
    styles = {}
    for number, label in enumerate(dict.fromkeys(setup.label for setup in setups)):
        lap, color = divmod(number, len(_COLORS))
        styles[label] = SetupStyle(
            _COLORS[color], _DASHES[lap % len(_DASHES)], _SYMBOLS[lap % len(_SYMBOLS)]
        )
    return styles


def escape_label(text: str) -> str:
    """Escape a name in a drawing, where Plotly would interpret tags."""
    return show_hidden_characters(text).replace("&", "&amp;").replace("<", "&lt;")


def make_drawing(title: str, traces: Sequence[Drawing], *, x: Drawing, y: Drawing) -> Drawing:
    """Return a drawing with the layout that all have; `x` and `y` describe its axes."""
    heading = {"text": f"<b>{title}</b>", "font": {"size": 12}} if title else {}
    return {
        "data": [{"type": "scatter", **trace} for trace in traces],
        "layout": {
            "title": heading,
            "height": 440,
            "margin": {"l": 60, "r": 20, "t": 40 if title else 20, "b": 60},
            # At the bottom of the drawing, where it never covers an axis title.
            "legend": {"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom"},
            "hovermode": "closest",
            "xaxis": {"automargin": True, **x},
            "yaxis": {"automargin": True, **y},
        },
    }


def draw_cost_and_fidelity(totals: ByLimit, styles: SetupStyles) -> tuple[list[Drawing], bool]:
    """Draw cost and fidelity with the Pareto front; also return whether costs are dollars.

    Only sessions that all setups of a limit share are included, so that costs compare. A limit
    without needed facts has no drawing. Costs that are not dollars are tokens.
    """
    totals = {limit: restrict_to_shared_sessions(each) for limit, each in totals.items()}
    is_priced = all(
        estimate_usd_per_call(one) for each in totals.values() for one in each if one.cells
    )
    unit = "US dollars for 100 calls" if is_priced else "prompt tokens a call"
    drawings = []
    for limit, each in totals.items():
        known = [
            (total, cost, kept)
            for total in each
            if (kept := estimate_metric(total, Metric.F3))
            and (cost := _estimate_cost(total, is_priced=is_priced))
        ]
        if not known:
            continue
        traces = [_draw_point(*point, styles[point[0].setup.label]) for point in known]
        front = find_pareto_front([(cost.value, kept.value) for _, cost, kept in known])
        if len(front) > 1:
            line = {
                "mode": "lines",
                "name": "front: nothing is cheaper and keeps more",
                "x": [known[number][1].value for number in front],
                "y": [known[number][2].value for number in front],
                "line": {"color": _GREY, "dash": "dot", "shape": "hv"},
                "hoverinfo": "skip",
            }
            traces.append(line)
        x, y = {"title": {"text": unit}}, {"title": {"text": FIGURE_LABELS["F3"]}}
        drawings.append(make_drawing(f"limit {limit:,}", traces, x=x, y={**y, "range": [0, None]}))
    return drawings, is_priced


def draw_differences(found: Sequence[SetupDifference], styles: SetupStyles) -> list[Drawing]:
    """Draw cost and F3 against the first setup, with intervals, for each limit.

    Unknown values are left out; an unknown cost is replaced by tokens. Infinite values are only in
    the table.
    """
    found = [one for one in found if one.overall is not None and isfinite(sum(one.interval or ()))]
    cost = Metric.COST if any(one.metric is Metric.COST for one in found) else Metric.TOKENS
    drawings = []
    for limit in dict.fromkeys(one.setup.limit for one in found):
        for metric in (cost, Metric.F3):
            here = [one for one in found if (one.setup.limit, one.metric) == (limit, metric)]
            if not here:
                continue
            name = FIGURE_LABELS.get(metric.value, metric.value)
            # Mark zero, where setups are equal, so that the side of each bar is visible.
            form = "+.0%" if metric.is_amount else "+.2f"
            x = {"rangemode": "tozero", "tickformat": form}
            traces = [_draw_intervals(here, styles)]
            rows = traces[0]["y"]
            drawing = make_drawing(f"{name}, limit {limit:,}", traces, x=x, y=_name_rows(rows))
            drawing["layout"] |= {"height": 180 + 26 * len(rows), "showlegend": False}
            drawings.append(drawing)
    return drawings


def _name_rows(rows: Sequence[str]) -> Drawing:
    """Return an axis that shows long names shortened, and keeps them apart."""
    longest = _MAX_NAME_CHARACTERS
    return {
        "type": "category",
        "categoryorder": "array",
        "categoryarray": list(reversed(rows)),
        "range": [-0.6, len(rows) - 0.4],
        "tickvals": list(rows),
        "ticktext": [row if len(row) <= longest else f"{row[: longest - 1]}…" for row in rows],
    }


def _draw_point(
    total: SetupTotal, cost: IntervalEstimate, kept: IntervalEstimate, style: SetupStyle
) -> Drawing:
    return {
        "mode": "markers",
        "name": escape_label(total.setup.label),
        "x": [cost.value],
        "y": [kept.value],
        "error_x": _make_error_bars([cost], style.color),
        "error_y": _make_error_bars([kept], style.color),
        "marker": {"color": style.color, "symbol": style.symbol, "size": 11},
    }


def _draw_intervals(found: Sequence[SetupDifference], styles: SetupStyles) -> Drawing:
    estimates = [IntervalEstimate(one.overall or 0.0, one.interval) for one in found]
    return {
        "mode": "markers",
        "x": [one.value for one in estimates],
        "y": [escape_label(one.setup.label) for one in found],
        "error_x": _make_error_bars(estimates, _GREY),
        "marker": {"color": [styles[one.setup.label].color for one in found], "size": 9},
    }


def _make_error_bars(estimates: Sequence[IntervalEstimate], color: str) -> Drawing:
    ends = [(one.value, *(one.interval or (one.value, one.value))) for one in estimates]
    above = [high - value for value, _, high in ends]
    below = [value - low for value, low, _ in ends]
    return {
        "type": "data",
        "symmetric": False,
        # A resample of zero may make a bar infinite.
        "array": [length if isfinite(length) else None for length in above],
        "arrayminus": [length if isfinite(length) else None for length in below],
        "color": color,
        "thickness": 1,
    }


def _estimate_cost(total: SetupTotal, *, is_priced: bool) -> IntervalEstimate | None:
    """Return the dollars of 100 calls, or the prompt tokens of one."""
    if not is_priced:
        return estimate_tokens_per_call(total)
    usd = estimate_usd_per_call(total)
    if usd is None:
        return None
    interval = usd.interval and (usd.interval[0] * 100, usd.interval[1] * 100)
    return IntervalEstimate(usd.value * 100, interval)
