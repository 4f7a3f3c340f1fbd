"""Prints the results of a backtest on a terminal."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from ....domain.backtest.cell import BacktestResult, CellOutcome
from ....domain.backtest.comparison import Metric
from ....domain.backtest.totals import (
    ControlTotal,
    SetupTotal,
    compute_control_totals,
    compute_totals,
    list_limits,
)
from ...analysis.backtest.backtest_tables import (
    CONTROL_COLUMNS,
    DIFFERENCE_COLUMNS,
    IN_BRIEF,
    NO_TEXTS,
    SETUP_COLUMNS,
    CellValue,
    describe_calibration,
    format_cell_session,
    has_texts,
    select_differences,
    tabulate,
)
from ...analysis.pages.templates import format_cell
from ..command_line.printing import (
    clip_text,
    format_count,
    print_list,
    print_rows,
    print_text,
)

MAX_NAMED_ROWS = 20
"""Rows that are listed; the JSON has them all."""
_REASON_CHARACTERS = 200
_COSTS = ("policy", "tokens a call", "prompt tokens", "cost", "written again")
_FIDELITY = ("policy", "R", "C", "P", "F3", "hard R", "files", "constraints")
_TROUBLE = ("policy", "sessions", "compactions", "refused", "broken", "futile", "seconds")

_COMPARED_MEASURES = (Metric.COST, Metric.TOKENS, Metric.REFUSED, Metric.RECALL, Metric.F3)
"""The measures whose differences are printed; the report has the others."""


def print_backtest(measured: BacktestResult) -> None:
    """Print by limit the result of each setup, its difference from the first, and the failures."""
    differences = [one for one in select_differences(measured) if one.metric in _COMPARED_MEASURES]
    totals, controls = compute_totals(measured), compute_control_totals(measured)
    sessions = len({(cell.namespace, cell.session) for cell in measured.cells})
    print_text(
        f"{format_count(sessions, 'session')}, {format_count(len(measured.setups), 'setup')}"
    )
    print_text(describe_calibration(measured))
    for limit in list_limits(measured):
        print_text()
        print_text(f"limit {limit:,} tokens", bold=True)
        _print_totals([total for total in totals if total.setup.limit == limit])
        _print_controls([one for one in controls if one.limit == limit])
        if here := [one for one in differences if one.setup.limit == limit]:
            _print_table(tabulate(DIFFERENCE_COLUMNS, here), f"against {here[0].against.label}")
    lists = {
        "failed": _failure_lines(measured),
        "remarks": _remark_lines(measured),
        "left out": _skipped_lines(measured),
    }
    for heading, lines in lists.items():
        shown = [clip_text(line, _REASON_CHARACTERS) for line in lines]
        print_list(heading, shown, MAX_NAMED_ROWS)
    print_text()
    for caveat in IN_BRIEF:
        print_text(caveat)


def _print_totals(totals: Sequence[SetupTotal]) -> None:
    _print_table(tabulate(SETUP_COLUMNS, totals, _COSTS))
    # Without summary texts, all of these would be unknown.
    with_texts = [one for one in totals if has_texts(one.setup)]
    _print_table(tabulate(SETUP_COLUMNS, with_texts, _FIDELITY))
    _print_table(tabulate(SETUP_COLUMNS, totals, _TROUBLE))
    if len(with_texts) < len(totals):
        print_text(NO_TEXTS)
    if any(one.sum_field("refused") for one in totals):
        print_text("refused: prompts larger than the limit; they count as if they had been sent")


def _print_controls(controls: Sequence[ControlTotal]) -> None:
    if controls and not any(one.scores.stakes for one in controls):
        print_text(
            "\nnothing was at stake: no call used a fact that would have been hidden at this limit"
        )
    else:
        names = [name for name in CONTROL_COLUMNS if name != "limit"]
        _print_table(tabulate(CONTROL_COLUMNS, controls, names), "controls")


def _print_table(rows: Iterable[Mapping[str, CellValue]], title: str = "") -> None:
    print_rows([{name: format_cell(row[name]) for name in row} for row in rows], title)


def _failure_lines(measured: BacktestResult) -> Iterable[str]:
    for cell in measured.cells:
        if cell.outcome is not CellOutcome.DONE:
            yield (
                f"{format_cell_session(cell)} under {cell.setup.label} at {cell.setup.limit:,}: "
                f"{cell.outcome.value}: {cell.why}"
            )


def _remark_lines(measured: BacktestResult) -> Iterable[str]:
    """Yield a remark for each setup, with the first session as the example."""
    remarks = [
        (f"{cell.setup.label} at {cell.setup.limit:,}", f"{format_cell_session(cell)}: {cell.why}")
        for cell in measured.cells
        if cell.outcome is CellOutcome.DONE and cell.why
    ]
    return (f"{where}, {reasons}" for where, reasons in _group_lines(remarks))


def _skipped_lines(measured: BacktestResult) -> Iterable[str]:
    skipped = ((why, name) for name, why in measured.skipped.items())
    return (f"{names}: {why}" for why, names in _group_lines(skipped))


def _group_lines(found: Iterable[tuple[str, str]]) -> Iterable[tuple[str, str]]:
    """Yield each first value once, with its second one, or their number and the first of them."""
    groups: dict[str, list[str]] = defaultdict(list)
    for first, second in found:
        groups[first].append(second)
    for first, every in groups.items():
        yield first, every[0] if len(every) == 1 else f"{len(every):,} sessions, as {every[0]}"
