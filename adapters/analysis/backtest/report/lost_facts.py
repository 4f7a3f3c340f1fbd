"""The facts that a setup lost, those first that were needed most often."""

from collections.abc import Sequence
from dataclasses import dataclass

from .....domain.backtest.cell import Cell, MissedFact
from .....domain.backtest.totals import SetupTotal


@dataclass(frozen=True)
class LostFactCount:
    """One fact of one session that the view lacked when the agent went on to use it."""

    cell: Cell
    first: MissedFact
    times: int
    """Between how many boundaries it was missed."""


def find_most_missed(total: SetupTotal, number: int) -> Sequence[LostFactCount]:
    """So many, by how often they were missed, then in the order of the sessions."""
    found: dict[tuple[str, str, str], list[tuple[Cell, MissedFact]]] = {}
    for cell in total.cells:
        for lost in cell.lost:
            found.setdefault((cell.namespace, cell.session, lost.key), []).append((cell, lost))
    facts = [LostFactCount(each[0][0], each[0][1], len(each)) for each in found.values()]
    return sorted(facts, key=lambda fact: -fact.times)[:number]
