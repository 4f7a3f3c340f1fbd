"""Prints the results of a backtest on a terminal."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from ....domain.backtest.cell import BacktestResult, CellOutcome
from ....domain.backtest.comparison import Metric, SetupDifference
from ....domain.backtest.totals import (
    ControlTotal,
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
    print_list,
    print_rows,
    print_text,
)

MAX_NAMED_ROWS = 20
"""Rows that are listed; the JSON has them all."""
_REASON_CHARACTERS = 200

_COMPARED_MEASURES = (Metric.COST, Metric.TOKENS, Metric.REFUSED, Metric.RECALL, Metric.F3)
"""The measures whose differences are printed; the report has the others."""


def print_backtest(measured: BacktestResult) -> None:
    """Print by limit the result of each setup, its difference from the first, and the failures."""
    differences = [one for one in select_differences(measured) if one.metric in _COMPARED_MEASURES]
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
    print_rows([_cost_row(one) for one in totals])
    # Without summary texts, all of these would be unknown.
    print_rows([_kept_row(one) for one in totals if not _is_by_tokens(one)])
    print_rows([_trouble_row(one) for one in totals])


def _cost_row(total: SetupTotal) -> dict[str, object]:
    # Marked, because it does not cover all sessions of the line.
    mark = "" if len(total.priced_cells) == len(total.cells) else "*"
    return {
        "policy": total.setup.label,
        "tokens a call": round(total.tokens_per_call or 0),
        "prompt tokens": total.bill.prompt_tokens,
        "cost": NOT_KNOWN if total.usd is None else format_dollars(total.usd) + mark,
        "written again": total.bill.rewritten_tokens,
    }


def _kept_row(total: SetupTotal) -> dict[str, object]:
    scores = total.canonical
    parts = {
        "R": scores.recall,
        "C": scores.context,
        "P": scores.prose,
        "F3": scores.f3,
        "hard": divide(scores.hard_hits, scores.hard_stakes),
        "files": divide(scores.modified_named, scores.modified),
        "constraints": divide(scores.constraints_kept, scores.constraints),
    }
    return {"policy": total.setup.label, **{name: format_part(of) for name, of in parts.items()}}


def _trouble_row(total: SetupTotal) -> dict[str, object]:
    return {
        "policy": total.setup.label,
        "sessions": f"{len(total.cells)}/{total.sessions}",
        "compactions": total.sum_field("compactions"),
        "refused": total.sum_field("refused"),
        "broken": NOT_KNOWN if _is_by_tokens(total) else total.sum_field("broken"),
        "futile": total.sum_field("futile"),
        "seconds": f"{total.seconds:.1f}",
    }


def _print_controls(measured: BacktestResult, limit: int) -> None:
    controls = [one for one in compute_control_totals(measured) if one.limit == limit]
    if controls and not any(one.scores.stakes for one in controls):
        print_text(
            "\nnothing was at stake: no call used a fact that would have been hidden at this limit"
        )
        return
    print_rows([_control_row(one) for one in controls], "controls")


def _control_row(control: ControlTotal) -> dict[str, object]:
    scores = control.scores
    return {
        "control": control.name,
        "budget": NOT_KNOWN if control.budget is None else control.budget,
        "R": format_part(control.recall),
        "C": format_part(scores.context),
        "P": format_part(scores.prose),
        "F3": format_part(scores.f3),
        "hard": format_part(divide(scores.hard_hits, scores.hard_stakes)),
    }


def _print_differences(differences: Sequence[SetupDifference]) -> None:
    rows: list[dict[str, object]] = [
        {
            "policy": one.setup.label,
            "in": one.metric.value,
            "differs by": format_difference(one),
            "verdict": one.verdict.value,
            "sessions": one.sessions,
        }
        for one in differences
    ]
    if rows:
        print_rows(rows, f"against {differences[0].against.label}")


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
