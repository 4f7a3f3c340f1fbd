"""Writes the results of a backtest: a page with its data and drawings, and JSON for programs."""

import json
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from math import isfinite
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup

from ....domain.backtest_cell import (
    BacktestResult,
    Cell,
    MissedFact,
    SetupTotal,
    compute_totals,
    list_limits,
    restrict_to_shared_sessions,
)
from ....domain.backtest_comparison import (
    IntervalEstimate,
    Metric,
    estimate_metric,
    estimate_tokens_per_call,
    estimate_usd_per_100_calls,
)
from ....domain.errors import ExportError
from ...storage.private_files import make_folder, open_new
from ..page_templates import render_page, show_hidden_characters
from .backtest_tables import (
    SETUP_COLUMNS,
    Columns,
    Table,
    describe_calibration,
    format_session_name,
    make_control_table,
    make_difference_tables,
    make_failure_table,
    make_recall_command,
    make_result_tables,
    make_table,
)

_PLOTLY_MISSING = "--report needs plotly, which is not installed: pip install 'cutbank[backtest]'"
_MAX_FACTS = 15

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


_RESULTS = {
    "What it costs": (
        *("policy", "sessions", "compactions", "tokens a call", "prompt tokens", "cost"),
        *("written again", "refused"),
    ),
    "What it keeps": (
        *("policy", "R", "C", "P", "F3", "hard R", "files", "constraints", "invented"),
    ),
}
_TROUBLE = ("policy", "limit", "futile", "broken", "stood in", "largest prompt")


# Files


def check_report(folder: Path) -> None:
    """Raise ExportError if no report can be written there, before hours of measuring."""
    if find_spec("plotly") is None:
        raise ExportError(_PLOTLY_MISSING)
    nearest = next(path for path in (folder, *folder.parents) if path.exists())
    if not nearest.is_dir():
        raise ExportError(f"{folder}: no report can be written there: {nearest} is a file")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise ExportError(f"{folder}: cannot be written: nothing may be made in {nearest}")


def write_report(measured: BacktestResult, folder: Path) -> list[Path]:
    """Write `report.html` and `measured.json`, which hold no times: equal results, equal bytes.

    Existing files are replaced. Returns the paths. Raises ExportError if a file cannot be written,
    or if plotly is not installed.
    """
    cells = tuple(cell.model_copy(update={"seconds": 0.0}) for cell in measured.cells)
    timeless = measured.model_copy(update={"cells": cells})
    page = render_report(timeless)
    tables = json.dumps(timeless.model_dump(mode="json"), ensure_ascii=True, indent=1)
    contents = {"report.html": page.encode(), "measured.json": f"{tables}\n".encode()}
    try:
        make_folder(folder)
        return _write_files({folder / name: content for name, content in contents.items()})
    except OSError as error:
        raise ExportError(f"{folder}: cannot be written: {error.strerror or error}") from None


def _write_files(contents: dict[Path, bytes]) -> list[Path]:
    """Write all files or none; existing ones are replaced at the end."""
    beside = {target: target.with_name(f".{target.name}.{os.getpid()}.part") for target in contents}
    try:
        for target, content in contents.items():
            with open_new(beside[target]) as file:
                file.write(content)
        return [beside[target].replace(target) for target in contents]
    finally:
        for part in beside.values():
            part.unlink(missing_ok=True)


# The page


class MissedOften(NamedTuple):
    """One fact of one session that the view lacked when the agent used it."""

    cell: Cell
    fact: MissedFact
    times: int
    """The number of boundary intervals in which it was missed."""


def render_report(measured: BacktestResult) -> str:
    totals = compute_totals(measured)
    by_limit = [
        [one for one in totals if one.setup.limit == limit] for limit in list_limits(measured)
    ]
    drawings, is_priced = draw_cost_and_fidelity(filter(None, by_limit))
    return render_page(
        "backtest.html",
        title="Backtest of compaction policies",
        plotly=Markup(_load_plotly()),  # noqa: S704 - the program that draws, from its package
        calibration=describe_calibration(measured),
        labels=COLUMN_LABELS,
        results=make_result_tables(measured, _RESULTS),
        controls=make_control_table(measured),
        drawings=drawings,
        is_priced=is_priced,
        differences=make_difference_tables(measured),
        lost=[
            make_table(f"{one.setup.label}, limit {one.setup.limit:,}", _LOST_FACTS, facts)
            for one in totals
            if (facts := _list_lost(one))
        ],
        trouble=make_table("What would have gone wrong", SETUP_COLUMNS, totals, _TROUBLE),
        failed=make_failure_table(measured),
        skipped=Table("Sessions left out", ("session", "why"), list(measured.skipped.items())),
    )


def _load_plotly() -> str:
    try:
        from plotly.offline import get_plotlyjs  # noqa: PLC0415 - the extra `backtest`
    except ModuleNotFoundError:
        raise ExportError(_PLOTLY_MISSING) from None
    return str(get_plotlyjs())


def _list_lost(total: SetupTotal) -> list[MissedOften]:
    """Return the most missed facts of a setup."""
    first: dict[tuple[str, str, str], tuple[Cell, MissedFact]] = {}
    times = Counter[tuple[str, str, str]]()
    for cell in total.cells:
        for lost in cell.lost:
            key = (cell.namespace, cell.session, lost.key)
            first.setdefault(key, (cell, lost))
            times[key] += 1
    return [MissedOften(*first[key], often) for key, often in times.most_common(_MAX_FACTS)]


_LOST_FACTS: Columns[MissedOften] = {
    "fact": attrgetter("fact.key"),
    "kind": attrgetter("fact.kind"),
    "missed": attrgetter("times"),
    "session": lambda one: format_session_name(one.cell.namespace, one.cell.session),
    "used by call": attrgetter("fact.call"),
    "to see it": lambda one: make_recall_command(one.cell, one.fact.position),
}


# Drawings


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
