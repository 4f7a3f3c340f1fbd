"""Renders the page of a backtest, which holds its data, its drawings and the drawing program."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

from markupsafe import Markup
from plotly.offline import get_plotlyjs

from .....domain.backtest.cell import BacktestResult, Cell, CellOutcome, MissedFact
from .....domain.backtest.comparison import SetupDifference
from .....domain.backtest.totals import (
    ControlTotal,
    SetupTotal,
    compute_control_totals,
    compute_totals,
    list_limits,
)
from .....domain.fidelity.scores import Scores, divide
from .....domain.pricing import format_dollars
from ...pages.templates import render_page
from ..backtest_text import (
    NO_TEXTS,
    NOT_KNOWN,
    describe_calibration,
    format_cell_session,
    format_difference,
    has_texts,
    make_recall_command,
    select_differences,
)
from .curves import make_curves
from .figures import FIGURE_LABELS, assign_styles, draw_cost_and_fidelity, draw_differences

_MAX_FACTS = 15

_Item = TypeVar("_Item")
Value = str | int | float | None
_Columns = Mapping[str, Callable[[_Item], Value]]
"""The columns of a table by their headings; the first one names the row."""


class Table(NamedTuple):
    caption: str
    headings: Sequence[str]
    rows: Sequence[Sequence[Value]]


class MissedOften(NamedTuple):
    """One fact of one session that the view lacked when the agent used it."""

    cell: Cell
    first: MissedFact
    times: int
    """The number of boundary intervals in which it was missed."""


def render_report_page(measured: BacktestResult) -> str:
    totals = compute_totals(measured)
    by_limit = {
        limit: [one for one in totals if one.setup.limit == limit]
        for limit in list_limits(measured)
    }
    scored = {
        limit: texts
        for limit, each in by_limit.items()
        if (texts := [one for one in each if has_texts(one.setup)])
    }
    controls = compute_control_totals(measured)
    differences = select_differences(measured)
    styles = assign_styles(measured.setups)
    front, is_priced = draw_cost_and_fidelity(scored, styles)
    with_texts = [one for each in scored.values() for one in each]
    failed = [cell for cell in measured.cells if cell.outcome is not CellOutcome.DONE]
    return render_page(
        "backtest.html",
        title="Backtest of compaction policies",
        plotly=Markup(get_plotlyjs()),  # noqa: S704 - the program that draws, from its package
        sizes=_measure_run(measured),
        calibration=describe_calibration(measured),
        no_texts="" if scored == by_limit else NO_TEXTS,
        headlines=[table for each in by_limit.values() for table in _make_headlines(each)],
        controls=_tabulate(
            "Controls: what texts score that no policy would write, and the most that any could",
            _CONTROLS,
            controls,
        ),
        scored=scored,
        front=front,
        is_priced=is_priced,
        differences=[
            _tabulate(f"Against {here[0].against.label}, limit {limit:,}", _DIFFERENCES, here)
            for limit in by_limit
            if (here := [one for one in differences if one.setup.limit == limit])
        ],
        differences_drawing=draw_differences(differences, styles),
        curves=make_curves(measured, styles),
        lost_kinds=_count_lost_kinds([one for one in with_texts if one.cells]),
        lost_facts=[(_name_setup(one), table) for one in with_texts if (table := _list_lost(one))],
        trouble=_tabulate("What would have gone wrong", _TROUBLE, totals),
        failed=_tabulate("Failed", _FAILED, failed),
        skipped=Table("Sessions left out", ("session", "why"), list(measured.skipped.items())),
    )


def _tabulate(caption: str, columns: _Columns[_Item], items: Iterable[_Item]) -> Table:
    rows = [[value(item) for value in columns.values()] for item in items]
    return Table(caption, tuple(columns), rows)


def _measure_run(measured: BacktestResult) -> Table:
    # A failed cell may not know how long its session is.
    by_length = sorted(measured.cells, key=lambda cell: cell.calls)
    once = {(cell.namespace, cell.session): cell for cell in by_length}.values()
    rows: dict[str, Value] = {
        "sessions": len(once),
        "calls of a model": sum(cell.calls for cell in once),
        "blocks": sum(cell.blocks for cell in once),
        "setups": len(measured.setups),
        "cells": len(measured.cells),
        "sessions left out": len(measured.skipped),
    }
    return Table("In all", ("", "number"), list(rows.items()))


def _make_headlines(totals: Sequence[SetupTotal]) -> Iterator[Table]:
    """Yield one limit's cost, and its fidelity on the boundaries that all setups share."""
    limit = f"limit {totals[0].setup.limit:,} tokens"
    yield _tabulate(f"What it costs, {limit}", _COSTS, totals)
    if scored := [one for one in totals if has_texts(one.setup)]:
        yield _tabulate(f"What it keeps, {limit}", _FIDELITY, scored)


def _count_lost_kinds(totals: Sequence[SetupTotal]) -> Table:
    counts = [Counter(lost.kind for cell in one.cells for lost in cell.lost) for one in totals]
    kinds = sorted({kind for lost in counts for kind in lost})
    rows: list[Sequence[Value]] = [
        (
            one.setup.label,
            one.setup.limit,
            one.canonical.stakes,
            lost.total(),
            *(lost[kind] for kind in kinds),
        )
        for one, lost in zip(totals, counts, strict=True)
    ]
    return Table("Facts lost, by kind", ("policy", "limit", "at stake", "lost", *kinds), rows)


def _list_lost(total: SetupTotal) -> Table | None:
    """Return the most missed facts of a setup, with the commands that show them."""
    found: dict[tuple[str, str, str], list[tuple[Cell, MissedFact]]] = {}
    for cell in total.cells:
        for lost in cell.lost:
            found.setdefault((cell.namespace, cell.session, lost.key), []).append((cell, lost))
    facts = [MissedOften(*each[0], len(each)) for each in found.values()]
    often = sorted(facts, key=lambda fact: -fact.times)[:_MAX_FACTS]
    return _tabulate(f"Lost under {_name_setup(total)}", _LOST_FACTS, often) if often else None


def _name_setup(total: SetupTotal) -> str:
    return f"{total.setup.label}, limit {total.setup.limit:,}"


def _format_cost(total: SetupTotal) -> str:
    if total.usd is None:
        return NOT_KNOWN
    priced = len(total.priced_cells)
    return format_dollars(total.usd) + (f" of {priced:,}" if priced < len(total.cells) else "")


def _sum(name: str, *, needs_texts: bool = False) -> Callable[[SetupTotal], Value]:
    return lambda one: (
        NOT_KNOWN if needs_texts and not has_texts(one.setup) else one.sum_field(name)
    )


def _share(part: str, whole: str) -> Callable[[Any], Value]:
    """Return what computes the ratio of two counts of some scores."""
    counts = attrgetter(part, whole)
    return lambda scores: divide(*counts(scores))


def _of(path: str, columns: _Columns[Any]) -> _Columns[Any]:
    """Return the columns of what is at a path of attributes."""
    get = attrgetter(path)

    def read(value: Callable[[Any], Value]) -> Callable[[Any], Value]:
        return lambda one: value(get(one))

    return {name: read(value) for name, value in columns.items()}


_COSTS: _Columns[SetupTotal] = {
    "policy": attrgetter("setup.label"),
    "sessions": lambda one: f"{len(one.cells)}/{one.sessions}",
    "compactions": _sum("compactions"),
    "tokens a call": lambda one: (
        None if one.tokens_per_call is None else round(one.tokens_per_call)
    ),
    "prompt tokens": attrgetter("bill.prompt_tokens"),
    "cost": _format_cost,
    "tokens written again": attrgetter("bill.rewritten_tokens"),
    "prompts refused": _sum("refused"),
}
_SCORES: _Columns[Scores] = {
    FIGURE_LABELS["C"]: attrgetter("context"),
    FIGURE_LABELS["P"]: attrgetter("prose"),
    FIGURE_LABELS["F3"]: attrgetter("f3"),
    FIGURE_LABELS["hard R"]: _share("hard_hits", "hard_stakes"),
}
_FILES_AND_FACTS: _Columns[Scores] = {
    "modified files named": _share("modified_named", "modified"),
    "read files named": _share("read_named", "read"),
    "constraints kept": _share("constraints_kept", "constraints"),
    "re-reads named": _share("rereads_named", "rereads"),
    "facts invented": attrgetter("novel"),
    "facts that were needed": attrgetter("precision"),
}
_FIDELITY: _Columns[SetupTotal] = {
    "policy": attrgetter("setup.label"),
    FIGURE_LABELS["R"]: attrgetter("canonical.recall"),
    **_of("canonical", {**_SCORES, **_FILES_AND_FACTS}),
}
_CONTROLS: _Columns[ControlTotal] = {
    "control": attrgetter("name"),
    "limit": attrgetter("limit"),
    "budget": attrgetter("budget"),
    FIGURE_LABELS["R"]: attrgetter("recall"),
    **_of("scores", _SCORES),
}
_DIFFERENCES: _Columns[SetupDifference] = {
    "policy": attrgetter("setup.label"),
    "figure": lambda one: FIGURE_LABELS.get(one.metric.value, one.metric.value),
    "all sessions together [95 %]": format_difference,
    "verdict": attrgetter("verdict.value"),
    "sessions it bears on": attrgetter("sessions"),
}
_LOST_FACTS: _Columns[MissedOften] = {
    "fact": attrgetter("first.key"),
    "kind": attrgetter("first.kind"),
    "missed": attrgetter("times"),
    "session": lambda one: format_cell_session(one.cell),
    "handle": lambda one: f"#{one.first.position}",
    "used by call": attrgetter("first.call"),
    "to see it": lambda one: make_recall_command(one.cell, one.first.position),
}
_TROUBLE: _Columns[SetupTotal] = {
    "policy": attrgetter("setup.label"),
    "limit": attrgetter("setup.limit"),
    "calls": _sum("calls"),
    "came to nothing": _sum("futile"),
    "plans that part calls from results": _sum("broken", needs_texts=True),
    "calls and results parted": _sum("orphaned", needs_texts=True),
    "summaries by a stand-in": _sum("stood_in", needs_texts=True),
    "largest prompt": lambda one: max((cell.peak_tokens for cell in one.cells), default=0),
}
_FAILED: _Columns[Cell] = {
    "session": format_cell_session,
    "policy": attrgetter("setup.label"),
    "limit": attrgetter("setup.limit"),
    "outcome": attrgetter("outcome.value"),
    "why": attrgetter("why"),
}
