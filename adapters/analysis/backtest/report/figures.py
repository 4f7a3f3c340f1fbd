"""Makes the drawings of a report as Plotly data and layout."""

from collections import Counter
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from .....domain.backtest.comparison import Metric, SetupDifference
from .....domain.backtest.estimates import (
    IntervalEstimate,
    estimate_metric,
    estimate_tokens_per_call,
    estimate_usd_per_call,
)
from .....domain.backtest.pareto import find_pareto_front
from .....domain.backtest.totals import ControlTotal, SetupTotal, restrict_to_shared_sessions
from .....domain.fidelity.scores import Scores
from .html_parts import escape_label
from .panels import make_layout, panel_axes
from .setup_styles import STYLE_COLORS, SetupStyle

Drawing = dict[str, Any]
ByLimit = Mapping[int, Sequence[SetupTotal]]
SetupStyles = Mapping[str, SetupStyle]

_CONTROL_NAMES = ("random ledger", "frequency ledger", "random lines", "file list")
"""The controls that write a text, and so have a score for each budget."""


_FIGURE_LABELS = {
    "R": "facts kept (R)",
    "C": "facts kept in context (C)",
    "P": "prose kept (P)",
    "F3": "kept overall (F3)",
    "hard R": "hard facts kept",
}


def label_figure(figure: str) -> str:
    return _FIGURE_LABELS.get(figure, figure)


def draw_cost_and_fidelity(totals: ByLimit, inks: SetupStyles) -> tuple[Drawing | None, bool]:
    """Draw a panel for each limit, with the Pareto front; also return whether costs are dollars.

    Only sessions that all setups of a limit share are included, so that costs compare. A limit
    without needed facts has no panel; return None if no panel is left. Costs that are not dollars
    are tokens.
    """
    totals = {limit: restrict_to_shared_sessions(each) for limit, each in totals.items()}
    is_priced = all(
        estimate_usd_per_call(one) for each in totals.values() for one in each if one.cells
    )
    costed = estimate_usd_per_call if is_priced else estimate_tokens_per_call
    factor = 100 if is_priced else 1
    drawn: list[Drawing] = []
    titles: list[str] = []
    for limit, each in totals.items():
        points = [(costed(one), estimate_metric(one, Metric.F3)) for one in each]
        if not any(cost and kept for cost, kept in points):
            continue
        titles.append(f"limit {limit:,}")
        panel = len(titles)
        for total, (cost, kept) in zip(each, points, strict=True):
            if cost is not None and kept is not None:
                drawn.append(_draw_point(total, _scale(cost, factor), kept, inks, panel))
        on_front = find_pareto_front(
            [(cost.value * factor, kept.value) if cost and kept else None for cost, kept in points]
        )
        if len(on_front) > 1:
            drawn.append(_draw_front([points[number] for number in on_front], factor, panel))
    unit = "US dollars for 100 calls" if is_priced else "prompt tokens a call"
    if not drawn:
        return None, is_priced
    layout = make_layout(titles, x=unit, y=label_figure("F3"), y_range=[0, None])
    return {"data": _keep_first_legend(drawn), "layout": layout}, is_priced


def draw_lost_kinds(totals: ByLimit) -> Drawing:
    """Draw a bar for each setup: how many facts of each kind were lost."""
    counted = {
        limit: [(total, count_lost_kinds(total)) for total in each if total.cells]
        for limit, each in totals.items()
        if any(map(count_lost_kinds, each))
    }
    kinds = list(
        dict.fromkeys(
            kind for each in counted.values() for _, found in each for kind in sorted(found)
        )
    )
    drawn = [
        {
            "type": "bar",
            "orientation": "h",
            "name": escape_label(kind),
            "legendgroup": escape_label(kind),
            "showlegend": panel == 1,
            "y": [_setup_name(total) for total, _ in each],
            "x": [found[kind] for _, found in each],
            "marker": {"color": STYLE_COLORS[number % len(STYLE_COLORS)]},
            **panel_axes(panel),
        }
        for panel, each in enumerate(counted.values(), start=1)
        for number, kind in enumerate(kinds)
    ]
    rows = list(dict.fromkeys(_setup_name(total) for each in counted.values() for total, _ in each))
    layout = make_layout(
        [f"limit {limit:,}" for limit in counted],
        x="facts lost",
        y="",
        height=240 + 30 * len(rows),
        rows=rows,
    )
    return {"data": drawn, "layout": layout | {"barmode": "stack"}}


def count_lost_kinds(total: SetupTotal) -> Counter[str]:
    return Counter(lost.kind for cell in total.cells for lost in cell.lost)


def draw_budgets(
    totals: ByLimit, controls: Sequence[ControlTotal], inks: SetupStyles
) -> Drawing | None:
    """Draw R and F3 by budget, a panel each; return None without budgets or needed facts."""
    drawn: list[Drawing] = []
    titles: list[str] = []
    for limit, each in totals.items():
        for name in ("R", "F3"):
            panel = len(titles) + 1
            lines: list[Drawing] = []
            for policy, found in _group_by_policy(each).items():
                points = [(one.setup.budget, _get_score(one.canonical, name)) for one in found]
                ink = inks[found[0].setup.label]
                lines.append(_draw_line(policy, points, panel, {"color": ink.color}))
            if not any(line["x"] for line in lines):
                continue
            titles.append(f"{label_figure(name)}, limit {limit:,}")
            for control, scored in _group_by_control(controls, limit, name).items():
                style = {"color": "#7f7f7f", "dash": "dash" if control == "bound" else "dot"}
                lines.append(_draw_line(control, scored, panel, style))
            drawn += [line for line in lines if line["x"]]
    if not drawn:
        return None
    layout = make_layout(titles, x="tokens a summary may take", y="", y_range=[0, 1.03], columns=2)
    return {"data": _keep_first_legend(drawn), "layout": layout}


def draw_differences(found: Sequence[SetupDifference], inks: SetupStyles) -> Drawing | None:
    """Draw cost and F3 against the first setup, with intervals; one panel each per limit.

    Unknown values have no panel; an unknown cost is replaced by tokens. Infinite values are only in
    the table.
    """
    found = [one for one in found if _is_drawable(one)]
    known = {one.metric for one in found}
    cost = Metric.COST if Metric.COST in known else Metric.TOKENS
    measures = [one for one in (cost, Metric.F3) if one in known]
    limits = dict.fromkeys(one.setup.limit for one in found)
    drawn: list[Drawing] = []
    titles: list[str] = []
    shown: list[Metric] = []
    for limit in limits:
        for measure in measures:
            here = [one for one in found if one.metric is measure and one.setup.limit == limit]
            if here:
                shown.append(measure)
                titles.append(f"{label_figure(measure.value)}, limit {limit:,}")
                drawn.append(_draw_intervals(here, inks, len(titles)))
    if not drawn:
        return None
    rows = list(dict.fromkeys(name for one in drawn for name in one["y"]))
    height = (180 + 26 * len(rows)) * -(-len(titles) // len(measures))
    layout = make_layout(titles, x="", y="", columns=len(measures), height=height, rows=rows)
    for panel, measure in enumerate(shown):
        # Mark zero, where setups are equal, so that the side of each bar is visible.
        layout[f"xaxis{panel + 1 if panel else ''}"] |= {
            "rangemode": "tozero",
            "tickformat": "+.0%" if measure.is_amount else "+.2f",
        }
    return {"data": drawn, "layout": layout | {"showlegend": False}}


def _draw_point(
    total: SetupTotal, cost: IntervalEstimate, kept: IntervalEstimate, inks: SetupStyles, panel: int
) -> Drawing:
    name = escape_label(total.setup.label)
    ink = inks[total.setup.label]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "legendgroup": name,
        "x": [cost.value],
        "y": [kept.value],
        "error_x": _make_error_bars([cost], ink.color),
        "error_y": _make_error_bars([kept], ink.color),
        "marker": {"color": ink.color, "symbol": ink.mark, "size": 11},
        **panel_axes(panel),
    }


def _draw_front(
    points: Sequence[tuple[IntervalEstimate | None, IntervalEstimate | None]],
    factor: float,
    panel: int,
) -> Drawing:
    known = [(cost, kept) for cost, kept in points if cost and kept]
    return {
        "type": "scatter",
        "mode": "lines",
        "name": "front: nothing is cheaper and keeps more",
        "legendgroup": "front",
        "x": [cost.value * factor for cost, _ in known],
        "y": [kept.value for _, kept in known],
        "line": {"color": "#7f7f7f", "dash": "dot", "shape": "hv"},
        "hoverinfo": "skip",
        **panel_axes(panel),
    }


def _is_drawable(found: SetupDifference) -> bool:
    return found.overall is not None and isfinite(sum(found.interval or ()))


def _draw_intervals(found: Sequence[SetupDifference], inks: SetupStyles, panel: int) -> Drawing:
    estimates = [IntervalEstimate(one.overall or 0.0, one.interval) for one in found]
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [one.value for one in estimates],
        "y": [escape_label(one.setup.label) for one in found],
        "error_x": _make_error_bars(estimates, "#7f7f7f"),
        "marker": {"color": [inks[one.setup.label].color for one in found], "size": 9},
        **panel_axes(panel),
    }


def _make_error_bars(estimates: Sequence[IntervalEstimate], color: str) -> Drawing:
    ends = [one.interval or (one.value, one.value) for one in estimates]
    return {
        "type": "data",
        "symmetric": False,
        "array": [
            _clip_bar(high - one.value) for one, (_, high) in zip(estimates, ends, strict=True)
        ],
        "arrayminus": [
            _clip_bar(one.value - low) for one, (low, _) in zip(estimates, ends, strict=True)
        ],
        "color": color,
        "thickness": 1,
    }


def _clip_bar(length: float) -> float | None:
    """Return the length; None if a resample of zero makes it infinite."""
    return length if isfinite(length) else None


def _scale(found: IntervalEstimate, factor: float) -> IntervalEstimate:
    interval = found.interval
    return IntervalEstimate(
        found.value * factor,
        None if interval is None else (interval[0] * factor, interval[1] * factor),
    )


def _group_by_policy(totals: Sequence[SetupTotal]) -> dict[str, list[SetupTotal]]:
    """Group setups that differ only in budget, by their label without it."""
    found: dict[str, list[SetupTotal]] = {}
    for total in sorted(totals, key=lambda one: one.setup.budget or 0):
        if total.setup.budget is not None and total.cells:
            policy = total.setup.model_copy(update={"budget": None}).label
            found.setdefault(policy, []).append(total)
    return found


def _group_by_control(
    controls: Sequence[ControlTotal], limit: int, name: str
) -> dict[str, list[tuple[int | None, float | None]]]:
    found: dict[str, list[tuple[int | None, float | None]]] = {}
    for control in sorted(controls, key=lambda one: one.budget or 0):
        if control.limit != limit or control.budget is None:
            continue
        if control.bound is not None and name == "R":
            found.setdefault(control.name, []).append((control.budget, control.bound))
        elif control.name in _CONTROL_NAMES:
            found.setdefault(control.name, []).append(
                (control.budget, _get_score(control.scores, name))
            )
    return found


def _get_score(scores: Scores, name: str) -> float | None:
    return scores.recall if name == "R" else scores.f3


def _draw_line(
    name: str, points: Sequence[tuple[int | None, float | None]], panel: int, style: Drawing
) -> Drawing:
    known = [(x, y) for x, y in points if y is not None]
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": escape_label(name),
        "legendgroup": escape_label(name),
        "x": [x for x, _ in known],
        "y": [y for _, y in known],
        "line": style,
        **panel_axes(panel),
    }


def _keep_first_legend(drawn: Sequence[Drawing]) -> list[Drawing]:
    """Show each name once in the legend, whatever number of panels it is in."""
    told: set[str] = set()
    found = []
    for line in drawn:
        found.append(line | {"showlegend": line["name"] not in told})
        told.add(line["name"])
    return found


def _setup_name(total: SetupTotal) -> str:
    return escape_label(total.setup.label)
