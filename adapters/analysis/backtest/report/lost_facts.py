"""The facts that a setup lost, those first that were needed most often."""

from collections.abc import Sequence
from dataclasses import dataclass

from .....domain.backtest.cell import Cell, Lost
from .....domain.backtest.totals import Total


@dataclass(frozen=True)
class LostFact:
    """One fact of one session that the view lacked when the agent went on to use it."""

    cell: Cell
    first: Lost
    times: int
    """Between how many boundaries it was missed."""


def most_missed(total: Total, number: int) -> Sequence[LostFact]:
    """So many, by how often they were missed, then in the order of the sessions."""
    found: dict[tuple[str, str, str], list[tuple[Cell, Lost]]] = {}
    for cell in total.cells:
        for lost in cell.lost:
            found.setdefault((cell.namespace, cell.session, lost.key), []).append((cell, lost))
    facts = [LostFact(each[0][0], each[0][1], len(each)) for each in found.values()]
    return sorted(facts, key=lambda fact: -fact.times)[:number]
