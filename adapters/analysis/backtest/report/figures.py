"""Draws the figures of a report as Plotly data and layout: panels, each with its own axes."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import isfinite
from typing import Any, NamedTuple

from plotly.subplots import make_subplots

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
    ControlTotal,
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
_LEDGERS = ("random ledger", "frequency ledger", "random lines", "file list")
"""The controls that write a text, and so have a score for each budget."""
_MAX_NAME_CHARACTERS = 40
_PANEL_GAP = 0.1
"""The gap between panels side by side, as a fraction of the drawing."""
_PANEL_HEIGHT, _BOTTOM_MARGIN = 420, 90
"""Pixels of a line of panels, and between two lines, for numbers and headings."""
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


class Panel(NamedTuple):
    title: str
    traces: Sequence[Drawing]


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


def draw_cost_and_fidelity(totals: ByLimit, styles: SetupStyles) -> tuple[Drawing | None, bool]:
    """Draw a panel for each limit, with the Pareto front; also return whether costs are dollars.

    Only sessions that all setups of a limit share are included, so that costs compare. A limit
    without needed facts has no panel; return None if no panel is left. Costs that are not dollars
    are tokens.
    """
    totals = {limit: restrict_to_shared_sessions(each) for limit, each in totals.items()}
    is_priced = all(
        estimate_usd_per_call(one) for each in totals.values() for one in each if one.cells
    )
    panels = []
    for limit, each in totals.items():
        points = [
            (total, _estimate_cost(total, is_priced=is_priced), kept)
            for total in each
            if (kept := estimate_metric(total, Metric.F3))
        ]
        known = [(total, cost, kept) for total, cost, kept in points if cost]
        if not known:
            continue
        traces = [_draw_point(*point, styles[point[0].setup.label]) for point in known]
        front = find_pareto_front([(cost.value, kept.value) for _, cost, kept in known])
        if len(front) > 1:
            traces.append(
                {
                    "mode": "lines",
                    "name": "front: nothing is cheaper and keeps more",
                    "x": [known[number][1].value for number in front],
                    "y": [known[number][2].value for number in front],
                    "line": {"color": _GREY, "dash": "dot", "shape": "hv"},
                    "hoverinfo": "skip",
                }
            )
        panels.append(Panel(f"limit {limit:,}", traces))
    unit = "US dollars for 100 calls" if is_priced else "prompt tokens a call"
    return _draw(panels, x=unit, y=FIGURE_LABELS["F3"], y_range=[0, None]), is_priced


def draw_lost_kinds(totals: ByLimit) -> Drawing | None:
    """Draw a bar for each setup: how many facts of each kind were lost; None if none was."""
    counted = {
        limit: [(total, count_lost_kinds(total)) for total in each if total.cells]
        for limit, each in totals.items()
        if any(map(count_lost_kinds, each))
    }
    found = list(chain.from_iterable(counted.values()))
    kinds = dict.fromkeys(kind for _, counts in found for kind in sorted(counts))
    panels = [
        Panel(
            f"limit {limit:,}",
            [
                {
                    "type": "bar",
                    "orientation": "h",
                    "name": escape_label(kind),
                    "y": [escape_label(total.setup.label) for total, _ in each],
                    "x": [counts[kind] for _, counts in each],
                    "marker": {"color": _COLORS[number % len(_COLORS)]},
                }
                for number, kind in enumerate(kinds)
            ],
        )
        for limit, each in counted.items()
    ]
    rows = list(dict.fromkeys(escape_label(total.setup.label) for total, _ in found))
    height = 240 + 30 * len(rows)
    return _draw(panels, x="facts lost", rows=rows, height=height, barmode="stack")


def count_lost_kinds(total: SetupTotal) -> Counter[str]:
    return Counter(lost.kind for cell in total.cells for lost in cell.lost)


def draw_budgets(
    totals: ByLimit, controls: Sequence[ControlTotal], styles: SetupStyles
) -> Drawing | None:
    """Draw R and F3 by budget, a panel each; return None without budgets or needed facts."""
    panels = []
    for limit, each in totals.items():
        for name, score in (("R", "recall"), ("F3", "f3")):
            lines = [
                _draw_line(
                    policy,
                    [(one.setup.budget, getattr(one.canonical, score)) for one in found],
                    {"color": styles[found[0].setup.label].color},
                )
                for policy, found in _group_by_policy(each).items()
            ]
            if not any(line["x"] for line in lines):
                continue
            for control, scored in _group_by_control(controls, limit, score).items():
                dash = "dash" if control == "bound" else "dot"
                lines.append(_draw_line(control, scored, {"color": _GREY, "dash": dash}))
            title = f"{FIGURE_LABELS[name]}, limit {limit:,}"
            panels.append(Panel(title, [line for line in lines if line["x"]]))
    return _draw(panels, x="tokens a summary may take", y_range=[0, 1.03], columns=2)


def draw_differences(found: Sequence[SetupDifference], styles: SetupStyles) -> Drawing | None:
    """Draw cost and F3 against the first setup, with intervals; one panel each per limit.

    Unknown values have no panel; an unknown cost is replaced by tokens. Infinite values are only in
    the table.
    """
    found = [one for one in found if one.overall is not None and isfinite(sum(one.interval or ()))]
    known = {one.metric for one in found}
    cost = Metric.COST if Metric.COST in known else Metric.TOKENS
    metrics = [one for one in (cost, Metric.F3) if one in known]
    shown = {
        (limit, metric): here
        for limit in dict.fromkeys(one.setup.limit for one in found)
        for metric in metrics
        if (here := [one for one in found if (one.setup.limit, one.metric) == (limit, metric)])
    }
    panels = [
        Panel(
            f"{FIGURE_LABELS.get(metric.value, metric.value)}, limit {limit:,}",
            [_draw_intervals(here, styles)],
        )
        for (limit, metric), here in shown.items()
    ]
    rows = list(dict.fromkeys(name for panel in panels for name in panel.traces[0]["y"]))
    columns = max(1, len(metrics))
    height = (180 + 26 * len(rows)) * -(-len(panels) // columns)
    # Mark zero, where setups are equal, so that the side of each bar is visible.
    formats = ["+.0%" if metric.is_amount else "+.2f" for _, metric in shown]
    x_axes = [{"rangemode": "tozero", "tickformat": form} for form in formats]
    return _draw(panels, columns=columns, rows=rows, height=height, x_axes=x_axes, showlegend=False)


def _draw(
    panels: Sequence[Panel],
    *,
    x: str = "",
    y: str = "",
    y_range: Sequence[float | None] | None = None,
    x_axes: Sequence[Drawing] = (),
    columns: int = 3,
    height: int | None = None,
    rows: Sequence[str] = (),
    **layout: Any,
) -> Drawing | None:
    """Return the panels in lines of `columns`; None without panels.

    `rows` are the names on the vertical axis of each panel if it is not numeric, top first.
    """
    if not panels:
        return None
    across = min(len(panels), columns)
    down = -(-len(panels) // across)
    height = height or _PANEL_HEIGHT * down
    figure = make_subplots(
        rows=down,
        cols=across,
        subplot_titles=[f"<b>{panel.title}</b>" for panel in panels],
        horizontal_spacing=_PANEL_GAP,
        vertical_spacing=min(_BOTTOM_MARGIN / height, 0.5 / down),
    )
    figure.update_layout(
        template="none",
        height=height,
        margin={"l": 60, "r": 20, "t": 40, "b": 60},
        # At the bottom of the drawing, where it never covers an axis title.
        legend={"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom"},
        hovermode="closest",
        **layout,
    )
    figure.update_annotations(font={"size": 12})
    seen: set[str] = set()
    for number, panel in enumerate(panels):
        row, col = number // across + 1, number % across + 1
        is_first, is_last = number % across == 0, number // across == down - 1
        for trace in panel.traces:
            # A name that is in several panels is once in the legend.
            name = trace.get("name", "")
            legend = {"showlegend": name not in seen, "legendgroup": name}
            figure.add_trace({"type": "scatter", **trace, **legend}, row=row, col=col)
            seen.add(name)
        figure.update_xaxes(x_axes[number] if x_axes else {}, row=row, col=col)
        figure.update_xaxes(row=row, col=col, automargin=True, title_text=x if is_last else "")
        figure.update_yaxes(_row_axis(rows, is_first=is_first), row=row, col=col)
        title = y if is_first else ""
        figure.update_yaxes(row=row, col=col, automargin=True, title_text=title, range=y_range)
    return dict(figure.to_dict())


def _row_axis(rows: Sequence[str], *, is_first: bool) -> Drawing:
    """Return an axis that shows long names shortened, and keeps them apart."""
    if not rows:
        return {}
    longest = _MAX_NAME_CHARACTERS
    return {
        "type": "category",
        "categoryorder": "array",
        "categoryarray": list(reversed(rows)),
        "range": [-0.6, len(rows) - 0.4],
        "tickvals": list(rows),
        "ticktext": [row if len(row) <= longest else f"{row[: longest - 1]}…" for row in rows],
        "showticklabels": is_first,
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


def _draw_line(
    name: str, points: Sequence[tuple[int | None, float | None]], style: Drawing
) -> Drawing:
    known = [(x, y) for x, y in points if y is not None]
    return {
        "mode": "lines+markers",
        "name": escape_label(name),
        "x": [x for x, _ in known],
        "y": [y for _, y in known],
        "line": style,
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


def _group_by_policy(totals: Sequence[SetupTotal]) -> dict[str, list[SetupTotal]]:
    """Group setups that differ only in budget, by their label without it."""
    found: dict[str, list[SetupTotal]] = {}
    for total in sorted(totals, key=lambda one: one.setup.budget or 0):
        if total.setup.budget is not None and total.cells:
            policy = total.setup.model_copy(update={"budget": None}).label
            found.setdefault(policy, []).append(total)
    return found


def _group_by_control(
    controls: Sequence[ControlTotal], limit: int, score: str
) -> dict[str, list[tuple[int | None, float | None]]]:
    found: dict[str, list[tuple[int | None, float | None]]] = {}
    for control in sorted(controls, key=lambda one: one.budget or 0):
        is_bound = control.bound is not None and score == "recall"
        if control.limit == limit and control.budget and (is_bound or control.name in _LEDGERS):
            value = control.bound if is_bound else getattr(control.scores, score)
            found.setdefault(control.name, []).append((control.budget, value))
    return found
