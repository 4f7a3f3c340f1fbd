"""Parts the time that a backtest took from what it measured, which is the same each time."""

from typing import Any

from .....domain.backtest.result import BacktestResult


def drop_seconds(measured: BacktestResult) -> BacktestResult:
    """The same for the same sessions and setups, whatever machine measured them."""
    cells = tuple(cell.model_copy(update={"seconds": 0.0}) for cell in measured.cells)
    return measured.model_copy(update={"cells": cells})


def list_seconds(measured: BacktestResult) -> list[dict[str, Any]]:
    """Seconds of one processor, a row a cell."""
    return [
        {
            "namespace": cell.namespace,
            "session": cell.session,
            "policy": cell.setup.label,
            "limit": cell.setup.limit,
            "seconds": cell.seconds,
        }
        for cell in measured.cells
    ]
