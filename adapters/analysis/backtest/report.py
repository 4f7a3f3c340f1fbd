"""Writes the results of a backtest: a page with its data and drawings, and JSON for programs."""

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from markupsafe import Markup

from ....domain.backtest.cell import BacktestResult, Cell, CellOutcome, MissedFact
from ....domain.backtest.totals import (
    SetupTotal,
    compute_control_totals,
    compute_totals,
    list_limits,
)
from ....domain.errors import ExportError
from ...storage.private_files import make_folder, open_new
from ..pages.templates import render_page
from .backtest_tables import (
    CONTROL_COLUMNS,
    DIFFERENCE_COLUMNS,
    NO_TEXTS,
    SETUP_COLUMNS,
    CellValue,
    Columns,
    describe_calibration,
    format_cell_session,
    has_texts,
    make_recall_command,
    select_differences,
    tabulate,
)
from .figures import COLUMN_LABELS, draw_cost_and_fidelity

_PLOTLY_MISSING = "--report needs plotly, which is not installed: pip install 'cutbank[backtest]'"
_MAX_FACTS = 15

_Item = TypeVar("_Item")
_COSTS = (
    *("policy", "sessions", "compactions", "tokens a call", "prompt tokens", "cost"),
    *("written again", "refused"),
)
_FIDELITY = ("policy", "R", "C", "P", "F3", "hard R", "files", "constraints", "invented")
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


class Table(NamedTuple):
    caption: str
    headings: Sequence[str]
    rows: Sequence[Sequence[CellValue]]


class MissedOften(NamedTuple):
    """One fact of one session that the view lacked when the agent used it."""

    cell: Cell
    fact: MissedFact
    times: int
    """The number of boundary intervals in which it was missed."""


def render_report(measured: BacktestResult) -> str:
    totals = compute_totals(measured)
    scored = [one for one in totals if has_texts(one.setup)]
    limits = list_limits(measured)
    differences = select_differences(measured)
    differing = DIFFERENCE_COLUMNS | {"in": lambda one: COLUMN_LABELS.get(one.metric, one.metric)}
    drawings, is_priced = draw_cost_and_fidelity(filter(None, _split(scored, limits)))
    failed = [cell for cell in measured.cells if cell.outcome is not CellOutcome.DONE]
    return render_page(
        "backtest.html",
        title="Backtest of compaction policies",
        plotly=Markup(_load_plotly()),  # noqa: S704 - the program that draws, from its package
        calibration=describe_calibration(measured),
        no_texts="" if len(scored) == len(totals) else NO_TEXTS,
        is_scored=bool(scored),
        results=[
            _make_table(
                f"{caption}, limit {here[0].setup.limit:,} tokens", SETUP_COLUMNS, here, names
            )
            for each in _split(totals, limits)
            for caption, names, here in (
                ("What it costs", _COSTS, each),
                ("What it keeps", _FIDELITY, [one for one in each if has_texts(one.setup)]),
            )
            if here
        ],
        controls=_make_table(
            "Controls: what texts score that no policy would write, and the most that any could",
            CONTROL_COLUMNS,
            compute_control_totals(measured),
        ),
        drawings=drawings,
        is_priced=is_priced,
        differences=[
            _make_table(f"Against {here[0].against.label}, limit {limit:,}", differing, here)
            for limit, here in zip(limits, _split(differences, limits), strict=True)
            if here
        ],
        lost=[
            _make_table(f"{one.setup.label}, limit {one.setup.limit:,}", _LOST_FACTS, facts)
            for one in scored
            if (facts := _list_lost(one))
        ],
        trouble=_make_table("What would have gone wrong", SETUP_COLUMNS, totals, _TROUBLE),
        failed=_make_table("Failed", _FAILED, failed),
        skipped=Table("Sessions left out", ("session", "why"), list(measured.skipped.items())),
    )


def _load_plotly() -> str:
    try:
        from plotly.offline import get_plotlyjs  # noqa: PLC0415 - the extra `backtest`
    except ModuleNotFoundError:
        raise ExportError(_PLOTLY_MISSING) from None
    return str(get_plotlyjs())


def _split(found: Iterable[_Item], limits: Iterable[int]) -> list[list[_Item]]:
    """Return what has a setup by its limit."""
    get_limit: Callable[[Any], int] = attrgetter("setup.limit")
    found = list(found)
    return [[one for one in found if get_limit(one) == limit] for limit in limits]


def _make_table(
    caption: str,
    columns: Columns[_Item],
    items: Iterable[_Item],
    names: Sequence[str] | None = None,
) -> Table:
    """Return a table whose headings say in full what the names of columns mean."""
    headings = [COLUMN_LABELS.get(name, name) for name in names or columns]
    rows = [list(row.values()) for row in tabulate(columns, items, names)]
    return Table(caption, headings, rows)


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
    "session": lambda one: format_cell_session(one.cell),
    "used by call": attrgetter("fact.call"),
    "to see it": lambda one: make_recall_command(one.cell, one.fact.position),
}
_FAILED: Columns[Cell] = {
    "session": format_cell_session,
    "policy": attrgetter("setup.label"),
    "limit": attrgetter("setup.limit"),
    "outcome": attrgetter("outcome.value"),
    "why": attrgetter("why"),
}
