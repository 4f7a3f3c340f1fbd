"""Describes a backtest's results: numbers, differences, and the command to repeat it."""

import json
import shlex
from collections.abc import Iterable
from math import inf

from ....domain.backtest.cell import BacktestResult, Cell, Setup
from ....domain.backtest.comparison import Interval, SetupDifference, compare_setups
from ....domain.backtest.totals import list_limits
from ..replaying.deciders import SIZED_SUMMARIZER
from .grid import FIXED_DECIDERS

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
    return _format_with_interval(found, found.overall, found.interval)


def format_mean_difference(found: SetupDifference) -> str:
    return _format_with_interval(found, found.session_mean, found.session_mean_interval)


def _format_with_interval(
    found: SetupDifference, value: float | None, interval: Interval | None
) -> str:
    if value is None:
        return NOT_KNOWN
    if interval is None:
        return _format_signed(found, value)
    low, high = (_format_signed(found, end) for end in interval)
    return f"{_format_signed(found, value)} [{low}, {high}]"


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


def make_backtest_command(
    measured: BacktestResult, target: str = "all", namespace: str | None = None
) -> str:
    """Return the command that repeats the measurement, for a whole database or another target."""
    setups = measured.setups
    where = [] if namespace is None else ["--namespace", namespace]
    words = ["cutbank", *where, "backtest", target]
    words += ["--policies", ",".join(dict.fromkeys(setup.policy for setup in setups))]
    words += ["--limits", ",".join(map(str, list_limits(measured)))]
    # Setups without summaries have no budget.
    budgets = dict.fromkeys(one.budget for one in setups if one.policy not in FIXED_DECIDERS)
    if set(budgets) - {None}:
        said = ("default" if budget is None else str(budget) for budget in budgets)
        words += ["--budgets", ",".join(said)]
    for name, values in _group_settings(setups):
        words += ["--set", f"{name}={','.join(values)}"]
    for summarizer in dict.fromkeys(setup.summarizer for setup in setups):
        words += ["--summarizer", summarizer] if summarizer != "extractive" else []
    for model in dict.fromkeys(setup.model for setup in setups if setup.model):
        words += ["--model", model]
    return shlex.join(words)


def make_recall_command(cell: Cell, position: int) -> str:
    where = [] if cell.namespace == "default" else ["--namespace", cell.namespace]
    return shlex.join(["cutbank", *where, "recall", cell.session, f"#{position}"])


def _format_signed(found: SetupDifference, value: float) -> str:
    if value == inf:
        return "+∞"
    if found.metric.is_amount:
        return f"{value:+.0%}" if abs(value) >= 0.1 else f"{value:+.1%}"
    return f"{value:+.2f}"


def _group_settings(setups: Iterable[Setup]) -> list[tuple[str, list[str]]]:
    """Group the settings as `--set` accepts them."""
    found: dict[str, list[str]] = {}
    for setup in setups:
        for name, value in sorted(setup.settings.items()):
            values = found.setdefault(f"{setup.policy.partition('@')[0]}.{name}", [])
            said = value if isinstance(value, str) else json.dumps(value)
            if said not in values:
                values.append(said)
    return list(found.items())
