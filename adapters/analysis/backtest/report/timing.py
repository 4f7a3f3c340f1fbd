"""Separates measured times from results, which are the same in each run."""

from typing import Any

from .....domain.backtest.result import BacktestResult


def drop_seconds(measured: BacktestResult) -> BacktestResult:
    """Drop times; equal sessions and setups then give equal results on any machine."""
    cells = tuple(cell.model_copy(update={"seconds": 0.0}) for cell in measured.cells)
    return measured.model_copy(update={"cells": cells})


def list_seconds(measured: BacktestResult) -> list[dict[str, Any]]:
    """Return processor seconds, one row for each cell."""
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
