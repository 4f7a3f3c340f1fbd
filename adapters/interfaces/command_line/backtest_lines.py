"""What a backtest measured, as people read it on a terminal."""

import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from ....domain.backtest.cell import Cell, Outcome
from ....domain.backtest.comparison import Difference, Measure
from ....domain.backtest.result import Measured
from ....domain.backtest.totals import Total, control_totals_of, limits_of, totals_of
from ....domain.fidelity.scores import ratio
from ....domain.pricing_in_words import dollars
from ...analysis.backtest.in_words import (
    IN_BRIEF,
    NO_TEXTS,
    NOT_KNOWN,
    apart,
    calibrated_in_words,
    differences_told,
    has_texts,
    named,
    part,
)
from .printing import clipped, counted, say, say_table

WIDE = 160
"""Columns from which on all figures of a setup fit into one line."""
NARROW = 92
"""Columns below which not even the costs fit beside a policy's name."""
LEAST = 16
"""Columns that a policy's name has where the terminal is too narrow for all of it."""
NAMED = 20
"""Rows that are named one by one; the JSON has them all."""
WHY = 200

COMPARED = (Measure.COST, Measure.TOKENS, Measure.REFUSED, Measure.RECALL, Measure.F3)
"""What verdicts are said about; the report has the others."""

One = TypeVar("One")
Cells = dict[str, Callable[[Total], str | int]]


def _cost(total: Total) -> str:
    if total.usd is None:
        return NOT_KNOWN
    # Marked, since it is not of all the sessions that the line counts.
    return dollars(total.usd) + ("" if len(total.priced) == len(total.cells) else "*")


COST: Cells = {
    "sessions": lambda one: f"{len(one.cells)}/{one.sessions}",
    "compactions": lambda one: one.summed("compactions"),
    "tokens a call": lambda one: round(one.tokens_per_call or 0),
    "prompt tokens": lambda one: one.bill.prompt_tokens,
    "cost": _cost,
    "written again": lambda one: one.bill.rewritten_tokens,
}
FIDELITY: Cells = {
    "R": lambda one: part(one.canonical.recall),
    "C": lambda one: part(one.canonical.context),
    "P": lambda one: part(one.canonical.prose),
    "F3": lambda one: part(one.canonical.f3),
    "hard": lambda one: part(ratio(one.canonical.hard_hits, one.canonical.hard_stakes)),
    "files": lambda one: part(ratio(one.canonical.modified_named, one.canonical.modified)),
    "constraints": lambda one: part(
        ratio(one.canonical.constraints_kept, one.canonical.constraints)
    ),
}
TROUBLE: Cells = {
    "refused": lambda one: one.summed("refused"),
    "broken": lambda one: NOT_KNOWN if _is_sized(one) else one.summed("broken"),
    "futile": lambda one: one.summed("futile"),
    "seconds": lambda one: f"{one.seconds:.1f}",
}


def say_measured(measured: Measured) -> None:
    """By limit what each setup came to, what it differs by from the first, and what went wrong."""
    differences = differences_told(measured)
    totals = totals_of(measured)
    sessions = len({(cell.namespace, cell.session) for cell in measured.cells})
    say(f"{counted(sessions, 'session')}, {counted(len(measured.setups), 'setup')}")
    say(calibrated_in_words(measured))
    for limit in limits_of(measured):
        here = [total for total in totals if total.setup.limit == limit]
        say()
        say(f"limit {limit:,} tokens", bold=True)
        _say_totals(here)
        _say_notes(here)
        _say_controls(measured, limit)
        _say_differences([one for one in differences if one.setup.limit == limit])
    _say_rows("failed", _failed(measured))
    _say_rows("remarks", _remarks(measured))
    _say_rows("left out", _left_out(measured))
    say()
    for caveat in IN_BRIEF:
        say(caveat)


def _say_totals(totals: Sequence[Total]) -> None:
    is_wide = not sys.stdout.isatty() or shutil.get_terminal_size().columns >= WIDE
    # Where no summary has a text, columns of dashes would say nothing.
    kept = {} if all(map(_is_sized, totals)) else FIDELITY
    parts = [COST | kept | TROUBLE] if is_wide else [COST, kept, TROUBLE]
    if not is_wide and shutil.get_terminal_size().columns < NARROW:
        cost = list(COST.items())
        parts = [dict(cost[:3]), dict(cost[3:]), kept, TROUBLE]
    for columns in filter(None, parts):
        say_table(
            ["policy", *columns],
            ([total.setup.label, *(of(total) for of in columns.values())] for total in totals),
            {"policy": LEAST},
        )


def _say_controls(measured: Measured, limit: int) -> None:
    controls = [one for one in control_totals_of(measured) if one.limit == limit]
    if not controls:
        return
    say()
    if not any(one.scores.stakes for one in controls):
        say("nothing was at stake: no call used a fact that would have been hidden at this limit")
        return
    say_table(
        ["control", "budget", "R", "C", "P", "F3", "hard"],
        (
            [
                one.name,
                NOT_KNOWN if one.budget is None else one.budget,
                part(one.recall),
                *(
                    part(value)
                    for value in (
                        one.scores.context,
                        one.scores.prose,
                        one.scores.f3,
                        ratio(one.scores.hard_hits, one.scores.hard_stakes),
                    )
                ),
            ]
            for one in controls
        ),
    )


def _say_differences(differences: Sequence[Difference]) -> None:
    compared = [one for one in differences if one.measure in COMPARED]
    if not compared:
        return
    say()
    say(f"against {compared[0].against.label}")
    say_table(
        ["policy", "in", "differs by", "verdict", "sessions"],
        (
            [one.setup.label, one.measure.value, apart(one), one.verdict.value, one.sessions]
            for one in compared
        ),
        {"policy": LEAST},
    )


def _say_notes(totals: Sequence[Total]) -> None:
    for priced, of in dict.fromkeys((len(one.priced), len(one.cells)) for one in totals):
        if 0 < priced < of:
            say(f"* of {priced:,} of {counted(of, 'session')}: prices of the others are not known")
    if any(map(_is_sized, totals)):
        say(NO_TEXTS)
    if any(one.summed("refused") for one in totals):
        say("refused: prompts larger than the limit; they count as if they had been sent")


def _is_sized(total: Total) -> bool:
    return not has_texts(total.setup)


def _say_rows(heading: str, rows: Iterable[str]) -> None:
    rows = list(rows)
    if not rows:
        return
    say()
    say(heading, bold=True)
    for row in rows[:NAMED]:
        say(f"  {clipped(row, WHY)}")
    if len(rows) > NAMED:
        say(f"  and {len(rows) - NAMED:,} more")


def _failed(measured: Measured) -> Iterable[str]:
    for cell in measured.cells:
        if cell.outcome is not Outcome.DONE:
            yield (
                f"{named(cell)} under {cell.setup.label} at {cell.setup.limit:,}: "
                f"{cell.outcome.value}: {cell.why}"
            )


def _remarks(measured: Measured) -> Iterable[str]:
    """One a setup: of many sessions, the first says what it is about."""
    by_setup: dict[str, list[Cell]] = {}
    for cell in measured.cells:
        if cell.outcome is Outcome.DONE and cell.why:
            where = f"{cell.setup.label} at {cell.setup.limit:,}"
            by_setup.setdefault(where, []).append(cell)
    for where, cells in by_setup.items():
        yield f"{where}, {_as_of(cells, lambda cell: f'{named(cell)}: {cell.why}')}"


def _left_out(measured: Measured) -> Iterable[str]:
    """One a reason."""
    by_reason: dict[str, list[str]] = {}
    for name, why in measured.skipped.items():
        by_reason.setdefault(why, []).append(name)
    for why, names in by_reason.items():
        yield f"{_as_of(names, str)}: {why}"


def _as_of(found: Sequence[One], said: Callable[[One], str]) -> str:
    return said(found[0]) if len(found) == 1 else f"{len(found):,} sessions, as {said(found[0])}"
