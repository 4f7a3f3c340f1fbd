"""Prints the results of a backtest on a terminal."""

import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from ....domain.backtest.cell import BacktestResult, CellOutcome
from ....domain.backtest.comparison import Metric, SetupDifference
from ....domain.backtest.totals import (
    SetupTotal,
    compute_control_totals,
    compute_totals,
    list_limits,
)
from ....domain.fidelity.scores import divide
from ....domain.pricing import format_dollars
from ...analysis.backtest.backtest_text import (
    IN_BRIEF,
    NO_TEXTS,
    NOT_KNOWN,
    describe_calibration,
    format_cell_session,
    format_difference,
    format_part,
    has_texts,
    select_differences,
)
from ..command_line.printing import (
    clip_text,
    format_count,
    get_width,
    print_list,
    print_table,
    print_text,
)

_LINE_CELLS = 160
"""Columns needed to show all figures of a setup in one line."""
MAX_NAMED_ROWS = 20
"""Rows that are listed; the JSON has them all."""
_REASON_CHARACTERS = 200

_COMPARED_MEASURES = (Metric.COST, Metric.TOKENS, Metric.REFUSED, Metric.RECALL, Metric.F3)
"""The measures whose differences are printed; the report has the others."""

_Columns = dict[str, Callable[[SetupTotal], str | int]]


def _format_cost(total: SetupTotal) -> str:
    if total.usd is None:
        return NOT_KNOWN
    # Marked, because it does not cover all sessions of the line.
    return format_dollars(total.usd) + ("" if len(total.priced_cells) == len(total.cells) else "*")


COST_COLUMNS: _Columns = {
    "sessions": lambda one: f"{len(one.cells)}/{one.sessions}",
    "compactions": lambda one: one.sum_field("compactions"),
    "tokens a call": lambda one: round(one.tokens_per_call or 0),
    "prompt tokens": lambda one: one.bill.prompt_tokens,
    "cost": _format_cost,
    "written again": lambda one: one.bill.rewritten_tokens,
}


FIDELITY_COLUMNS: _Columns = {
    "R": lambda one: format_part(one.canonical.recall),
    "C": lambda one: format_part(one.canonical.context),
    "P": lambda one: format_part(one.canonical.prose),
    "F3": lambda one: format_part(one.canonical.f3),
    "hard": lambda one: format_part(divide(one.canonical.hard_hits, one.canonical.hard_stakes)),
    "files": lambda one: format_part(divide(one.canonical.modified_named, one.canonical.modified)),
    "constraints": lambda one: format_part(
        divide(one.canonical.constraints_kept, one.canonical.constraints)
    ),
}
TROUBLE_COLUMNS: _Columns = {
    "refused": lambda one: one.sum_field("refused"),
    "broken": lambda one: NOT_KNOWN if _is_by_tokens(one) else one.sum_field("broken"),
    "futile": lambda one: one.sum_field("futile"),
    "seconds": lambda one: f"{one.seconds:.1f}",
}


def print_backtest(measured: BacktestResult) -> None:
    """Print by limit the result of each setup, its difference from the first, and the failures."""
    differences = select_differences(measured)
    totals = compute_totals(measured)
    sessions = len({(cell.namespace, cell.session) for cell in measured.cells})
    print_text(
        f"{format_count(sessions, 'session')}, {format_count(len(measured.setups), 'setup')}"
    )
    print_text(describe_calibration(measured))
    for limit in list_limits(measured):
        here = [total for total in totals if total.setup.limit == limit]
        print_text()
        print_text(f"limit {limit:,} tokens", bold=True)
        _print_totals(here)
        _print_notes(here)
        _print_controls(measured, limit)
        _print_differences([one for one in differences if one.setup.limit == limit])
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
    # Without summary texts, these columns would hold only dashes.
    kept = {} if all(map(_is_by_tokens, totals)) else FIDELITY_COLUMNS
    cost = list(COST_COLUMNS.items())
    parts = [dict(cost[:3]), dict(cost[3:]), kept, TROUBLE_COLUMNS]
    if not sys.stdout.isatty() or get_width() >= _LINE_CELLS:
        parts = [COST_COLUMNS | kept | TROUBLE_COLUMNS]
    for columns in filter(None, parts):
        print_table(
            ["policy", *columns],
            ([total.setup.label, *(of(total) for of in columns.values())] for total in totals),
        )


def _print_controls(measured: BacktestResult, limit: int) -> None:
    controls = [one for one in compute_control_totals(measured) if one.limit == limit]
    if not controls:
        return
    print_text()
    if not any(one.scores.stakes for one in controls):
        print_text(
            "nothing was at stake: no call used a fact that would have been hidden at this limit"
        )
        return
    rows = []
    for one in controls:
        scores = one.scores
        hard = divide(scores.hard_hits, scores.hard_stakes)
        parts = (one.recall, scores.context, scores.prose, scores.f3, hard)
        budget = NOT_KNOWN if one.budget is None else one.budget
        rows.append([one.name, budget, *map(format_part, parts)])
    print_table(["control", "budget", "R", "C", "P", "F3", "hard"], rows)


def _print_differences(differences: Sequence[SetupDifference]) -> None:
    compared = [one for one in differences if one.metric in _COMPARED_MEASURES]
    if not compared:
        return
    print_text()
    print_text(f"against {compared[0].against.label}")
    rows = [
        [one.setup.label, one.metric.value, format_difference(one), one.verdict.value, one.sessions]
        for one in compared
    ]
    headings = ["policy", "in", "differs by", "verdict", "sessions"]
    print_table(headings, rows)


def _print_notes(totals: Sequence[SetupTotal]) -> None:
    for priced, of in dict.fromkeys((len(one.priced_cells), len(one.cells)) for one in totals):
        if 0 < priced < of:
            print_text(
                f"* of {priced:,} of {format_count(of, 'session')}: prices of the others are "
                "not known"
            )
    if any(map(_is_by_tokens, totals)):
        print_text(NO_TEXTS)
    if any(one.sum_field("refused") for one in totals):
        print_text("refused: prompts larger than the limit; they count as if they had been sent")


def _is_by_tokens(total: SetupTotal) -> bool:
    return not has_texts(total.setup)


def _failure_lines(measured: BacktestResult) -> Iterable[str]:
    for cell in measured.cells:
        if cell.outcome is not CellOutcome.DONE:
            yield (
                f"{format_cell_session(cell)} under {cell.setup.label} at {cell.setup.limit:,}: "
                f"{cell.outcome.value}: {cell.why}"
            )


def _remark_lines(measured: BacktestResult) -> Iterable[str]:
    """Yield a remark for each setup, with the first session as the example."""
    by_setup: dict[str, list[str]] = defaultdict(list)
    for cell in measured.cells:
        if cell.outcome is CellOutcome.DONE and cell.why:
            where = f"{cell.setup.label} at {cell.setup.limit:,}"
            by_setup[where].append(f"{format_cell_session(cell)}: {cell.why}")
    for where, reasons in by_setup.items():
        yield f"{where}, {_format_group(reasons)}"


def _skipped_lines(measured: BacktestResult) -> Iterable[str]:
    by_reason: dict[str, list[str]] = defaultdict(list)
    for name, why in measured.skipped.items():
        by_reason[why].append(name)
    for why, names in by_reason.items():
        yield f"{_format_group(names)}: {why}"


def _format_group(found: Sequence[str]) -> str:
    return found[0] if len(found) == 1 else f"{len(found):,} sessions, as {found[0]}"
