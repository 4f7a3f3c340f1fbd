"""Makes the tables of a backtest's results, for the report and for terminals, and their caveats."""

import shlex
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from math import inf
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

from ....domain.backtest_cell import (
    BacktestResult,
    Cell,
    CellOutcome,
    ControlTotal,
    SetupTotal,
    compute_control_totals,
    compute_totals,
    list_limits,
)
from ....domain.backtest_comparison import Metric, SetupDifference, compare_setups
from ....domain.fidelity.rows import Scores, divide
from ....domain.pricing import format_dollars

_Item = TypeVar("_Item")
CellValue = str | int | float | None
Columns = Mapping[str, Callable[[_Item], CellValue]]
"""The columns of a table by their headings; the first one names the row."""

NOT_KNOWN = "-"
IN_BRIEF = (
    (
        "The agent saw its own views: scores compare policies, they do not predict success, and "
        "favor `recorded`."
    ),
    "Facts are counted word for word; read R with C, P, budget and controls, never alone.",
)
"""The most important limits of the results; the template of the report lists all of them."""


class Table(NamedTuple):
    caption: str
    names: Sequence[str]
    """The names of the columns, which are their headings."""
    rows: Sequence[Sequence[CellValue]]


def make_table(
    caption: str,
    columns: Columns[_Item],
    items: Iterable[_Item],
    names: Iterable[str] | None = None,
) -> Table:
    """Return a table with a row for each item, and all columns or those that are named."""
    chosen = tuple(columns if names is None else names)
    return Table(caption, chosen, [[columns[name](item) for name in chosen] for item in items])


def make_result_tables(measured: BacktestResult, named: Mapping[str, Sequence[str]]) -> list[Table]:
    """Return the tables of each limit: for each caption of `named`, those columns of all setups."""
    totals = compute_totals(measured)
    return [
        make_table(f"{caption}, limit {limit:,} tokens", SETUP_COLUMNS, shown, names)
        for limit in list_limits(measured)
        for caption, names in named.items()
        if (shown := [one for one in totals if one.setup.limit == limit])
    ]


def make_control_table(measured: BacktestResult) -> Table:
    controls = compute_control_totals(measured)
    is_at_stake = any(one.scores.stakes for one in controls)
    return make_table(
        "Controls: what texts score that no policy would write, and the most that any could",
        CONTROL_COLUMNS,
        controls if is_at_stake else (),
    )


def make_difference_tables(
    measured: BacktestResult, metrics: Container[Metric] = tuple(Metric)
) -> list[Table]:
    """Return a table of each limit: how the other setups differ from the first."""
    differences = [one for one in compare_setups(measured) if one.metric in metrics]
    return [
        make_table(f"Against {here[0].against.label}, limit {limit:,}", DIFFERENCE_COLUMNS, here)
        for limit in list_limits(measured)
        if (here := [one for one in differences if one.setup.limit == limit])
    ]


def make_failure_table(measured: BacktestResult) -> Table:
    failed = [cell for cell in measured.cells if cell.outcome is not CellOutcome.DONE]
    return make_table("Failed", _FAILED_COLUMNS, failed)


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


# Columns


def _format_cost(total: SetupTotal) -> str:
    if total.usd is None:
        return NOT_KNOWN
    priced = len(total.priced_cells)
    return format_dollars(total.usd) + (f" of {priced:,}" if priced < len(total.cells) else "")


def _sum(name: str) -> Callable[[SetupTotal], CellValue]:
    return lambda one: one.sum_field(name)


def _score_columns(get: Callable[[Any], Scores]) -> Columns[Any]:
    return {
        "C": lambda one: get(one).context,
        "P": lambda one: get(one).prose,
        "F3": lambda one: get(one).f3,
        "hard R": lambda one: divide(get(one).hard_hits, get(one).hard_stakes),
    }


SETUP_COLUMNS: Columns[SetupTotal] = {
    "policy": attrgetter("setup.label"),
    "limit": attrgetter("setup.limit"),
    "sessions": lambda one: f"{len(one.cells)}/{one.sessions}",
    "compactions": _sum("compactions"),
    "tokens a call": lambda one: (
        None if one.tokens_per_call is None else round(one.tokens_per_call)
    ),
    "prompt tokens": attrgetter("bill.prompt_tokens"),
    "cost": _format_cost,
    "written again": attrgetter("bill.rewritten_tokens"),
    "refused": _sum("refused"),
    "R": attrgetter("canonical.recall"),
    **_score_columns(attrgetter("canonical")),
    "files": lambda one: divide(one.canonical.modified_named, one.canonical.modified),
    "constraints": lambda one: divide(one.canonical.constraints_kept, one.canonical.constraints),
    "invented": attrgetter("canonical.novel"),
    "futile": _sum("futile"),
    "broken": _sum("broken"),
    "stood in": _sum("stood_in"),
    "largest prompt": lambda one: max((cell.peak_tokens for cell in one.cells), default=0),
    "seconds": lambda one: f"{one.seconds:.1f}",
}
CONTROL_COLUMNS: Columns[ControlTotal] = {
    "control": attrgetter("name"),
    "limit": attrgetter("limit"),
    "budget": attrgetter("budget"),
    "R": attrgetter("recall"),
    **_score_columns(attrgetter("scores")),
}
_FAILED_COLUMNS: Columns[Cell] = {
    "session": lambda one: format_session_name(one.namespace, one.session),
    "policy": attrgetter("setup.label"),
    "limit": attrgetter("setup.limit"),
    "outcome": attrgetter("outcome.value"),
    "why": attrgetter("why"),
}
DIFFERENCE_COLUMNS: Columns[SetupDifference] = {
    "policy": attrgetter("setup.label"),
    "in": attrgetter("metric.value"),
    "differs by": format_difference,
    "verdict": attrgetter("verdict.value"),
    "sessions": attrgetter("sessions"),
}
