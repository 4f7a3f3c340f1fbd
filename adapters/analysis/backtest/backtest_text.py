"""Describes a backtest's results: numbers, differences and their caveats."""

import shlex
from math import inf

from ....domain.backtest.cell import BacktestResult, Cell, Setup
from ....domain.backtest.comparison import SetupDifference, compare_setups
from ..replaying.deciders import SIZED_SUMMARIZER

NOT_KNOWN = "-"
NO_TEXTS = (
    f"by {SIZED_SUMMARIZER}: summaries have a size and no text, so the report shows neither what "
    "is kept nor how plans were repaired"
)
IN_BRIEF = (
    (
        "The agent saw its own views: scores compare policies, they do not predict success, and "
        "favor `recorded`."
    ),
    "Facts are counted word for word; read R with C, P, budget and controls, never alone.",
)
"""The most important limits of the results; the template of the report lists all of them."""


def format_part(value: float | None) -> str:
    """Format a ratio as `0.85`; use a dash if it is undefined."""
    return NOT_KNOWN if value is None else f"{value:.2f}"


def format_difference(found: SetupDifference) -> str:
    """Format a difference: `-55% [-58%, -51%]`, or `-0.31 [-0.40, -0.22]` for a ratio."""
    if found.overall is None:
        return NOT_KNOWN
    if found.interval is None:
        return _format_signed(found, found.overall)
    low, high = (_format_signed(found, end) for end in found.interval)
    return f"{_format_signed(found, found.overall)} [{low}, {high}]"


def describe_calibration(measured: BacktestResult) -> str:
    reports = {(cell.namespace, cell.session): cell.reports for cell in measured.cells}
    known, sessions = sum(count > 0 for count in reports.values()), len(reports)
    if not known:
        return "tokens: estimated, four characters each; no provider reported any"
    calibrated = (
        f"tokens: calibrated by what providers reported, in {known:,} of {sessions:,} sessions "
        f"({sum(reports.values()):,} calls)"
    )
    return calibrated if known == sessions else f"{calibrated}; else four characters each"


def has_texts(setup: Setup) -> bool:
    return setup.summarizer != SIZED_SUMMARIZER


def select_differences(measured: BacktestResult) -> list[SetupDifference]:
    """Select the differences that are known; ratios need texts."""
    return [
        one
        for one in compare_setups(measured)
        if one.metric.is_amount or (has_texts(one.setup) and has_texts(one.against))
    ]


def format_cell_session(cell: Cell) -> str:
    return format_session_name(cell.namespace, cell.session)


def format_session_name(namespace: str, key: str) -> str:
    return key if namespace == "default" else f"{namespace}/{key}"


def make_recall_command(cell: Cell, position: int) -> str:
    where = [] if cell.namespace == "default" else ["--namespace", cell.namespace]
    return shlex.join(["cutbank", *where, "recall", cell.session, f"#{position}"])


def _format_signed(found: SetupDifference, value: float) -> str:
    if value == inf:
        return "+∞"
    if found.metric.is_amount:
        return f"{value:+.0%}" if abs(value) >= 0.1 else f"{value:+.1%}"
    return f"{value:+.2f}"
