"""Finds the lost facts that were needed most often."""

from collections.abc import Sequence
from dataclasses import dataclass

from .....domain.backtest.cell import Cell, MissedFact
from .....domain.backtest.totals import SetupTotal


@dataclass(frozen=True)
class LostFactCount:
    """One fact of one session that the view lacked when the agent used it."""

    cell: Cell
    first: MissedFact
    times: int
    """The number of boundary intervals in which it was missed."""


def find_most_missed(total: SetupTotal, number: int) -> Sequence[LostFactCount]:
    """Return the `number` most missed facts, then in session order."""
    found: dict[tuple[str, str, str], list[tuple[Cell, MissedFact]]] = {}
    for cell in total.cells:
        for lost in cell.lost:
            found.setdefault((cell.namespace, cell.session, lost.key), []).append((cell, lost))
    facts = [LostFactCount(each[0][0], each[0][1], len(each)) for each in found.values()]
    return sorted(facts, key=lambda fact: -fact.times)[:number]
