"""Figures as tables: for the terminal, and in Markdown for docs/performance.md."""

import re
from collections.abc import Iterable, Sequence

from rich.table import Table

from .figure import Figure

AT_SIZE = re.compile(r"(.*) at ([\d,]+)$")
GREW = "growth: "
COMPRESSED = ", compressed"
MET = {None: "", True: "met", False: "missed"}


def printed(figures: Iterable[Figure]) -> Table:
    table = Table("what", "unit", "cutbank", "raw", "ratio", "target", "")
    for figure in figures:
        numbers = map(_number, (figure.cutbank, figure.raw, figure.ratio))
        table.add_row(figure.what, figure.unit, *numbers, figure.target, MET[figure.met])
    return table


def markdown(figures: Sequence[Figure]) -> str:
    """Each figure on one line with what it is with compression; then what grows, by size."""
    growing = [figure for figure in figures if _grows(figure)]
    steady = [figure for figure in figures if not _grows(figure)]
    tables = ([_steady(steady)] if steady else []) + ([_growth(growing)] if growing else [])
    return "\n".join(tables)


def _grows(figure: Figure) -> bool:
    return figure.what.startswith(GREW) or AT_SIZE.match(figure.what) is not None


def _steady(figures: Sequence[Figure]) -> str:
    compressed = {f.what.replace(COMPRESSED, ""): f for f in figures if COMPRESSED in f.what}
    rows = [["what", "cutbank", "raw", "ratio", "compressed", "ratio", "target", ""]]
    for figure in figures:
        if COMPRESSED in figure.what:
            continue
        ours, raw = (_with_unit(value, figure.unit) for value in (figure.cutbank, figure.raw))
        row = [figure.what, ours, raw, _number(figure.ratio)]
        target, met = figure.target, MET[figure.met]
        if packed := compressed.get(figure.what):
            row += [_with_unit(packed.cutbank, figure.unit), _number(packed.ratio)]
            if packed.target:
                target, met = f"{target}; {packed.target}", f"{met}; {MET[packed.met]}"
        else:
            row += ["", ""]
        rows.append([*row, target, met])
    return _lines(rows)


def _growth(figures: Sequence[Figure]) -> str:
    sizes: dict[str, None] = {}
    found: dict[str, dict[str, Figure]] = {}
    for figure in figures:
        if at := AT_SIZE.match(figure.what):
            sizes[at[2]] = None
            found.setdefault(at[1], {})[at[2]] = figure
    grew = {f.what.removeprefix(GREW): f for f in figures if f.what.startswith(GREW)}
    rows = [["us", *sizes, "exponent", "target", ""]]
    for what, by_size in found.items():
        row = [what, *(_beside_raw(by_size[size]) if size in by_size else "" for size in sizes)]
        exponent = grew.get(what)
        row += (
            [f"{exponent.cutbank:.2f}", exponent.target, MET[exponent.met]]
            if exponent
            else [""] * 3
        )
        rows.append(row)
    return _lines(rows)


def _beside_raw(figure: Figure) -> str:
    ours = _number(figure.cutbank)
    return f"{ours} ({_number(figure.raw)})" if figure.raw else ours


def _lines(rows: Sequence[Sequence[str]]) -> str:
    head, *rest = rows
    return "".join(f"| {' | '.join(row)} |\n" for row in (head, ["---"] * len(head), *rest))


def _with_unit(value: float | None, unit: str) -> str:
    return "" if value is None else f"{_number(value)} {unit}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}" if value >= 1_000 else f"{value:.3g}"
