"""Prints figures as a table."""

from collections.abc import Iterable

from rich.table import Table

from .figure import Figure

MET = {None: "", True: "met", False: "missed"}


def printed(figures: Iterable[Figure]) -> Table:
    table = Table("what", "unit", "cutbank", "raw", "ratio", "target", "")
    for figure in figures:
        numbers = map(_number, (figure.cutbank, figure.raw, figure.ratio))
        table.add_row(figure.what, figure.unit, *numbers, figure.target, MET[figure.met])
    return table


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}" if value >= 1_000 else f"{value:.3g}"
