"""Makes curves of context usage at each call, for the longest sessions."""

from collections.abc import Mapping, Sequence
from typing import Any

from .....domain.backtest.cell import BacktestResult, Cell, CellOutcome
from .....domain.backtest.totals import list_limits
from ..backtest_text import format_cell_session
from .figures import SetupStyle, escape_label, make_drawing

_MAX_SESSIONS = 12
_MAX_CURVE_POINTS = 400
_MAX_TOTAL_POINTS = 150_000
"""Points of all curves of a page, so that it always opens."""
_MIN_POINTS = 20


def make_curves(
    measured: BacktestResult, styles: Mapping[str, SetupStyle]
) -> dict[str, Any] | None:
    """Make a curve for each setup, per session and limit; return None if no session has calls."""
    found = [
        (limit, cells)
        for session in _longest_sessions(measured)
        for limit in list_limits(measured)
        if (cells := [cell for cell in session if cell.setup.limit == limit])
    ]
    number = sum(len(cells) for _, cells in found)
    if not number:
        return None
    points = max(_MIN_POINTS, min(_MAX_CURVE_POINTS, _MAX_TOTAL_POINTS // number))
    x, y = {"title": {"text": "call"}}, {"title": {"text": "tokens"}, "rangemode": "tozero"}
    layout = make_drawing("", (), x=x, y=y)["layout"]
    return {
        "layout": {**layout, "hovermode": "x", "showlegend": True},
        "sessions": [
            {
                "name": f"{format_cell_session(cells[0])}, limit {limit:,}",
                "limit": limit,
                "curves": [_make_curve(cell, styles[cell.setup.label], points) for cell in cells],
            }
            for limit, cells in found
        ],
    }


def thin_points(values: Sequence[int], points: int) -> list[int]:
    """Return indices of at most `points` values, four at least: the ends, and extremes between."""
    if len(values) <= points:
        return list(range(len(values)))
    pieces = max(1, (points - 2) // 2)
    kept = {0, len(values) - 1}
    for piece in range(pieces):
        start, end = (len(values) * at // pieces for at in (piece, piece + 1))
        inside = range(start, end)
        kept.add(max(inside, key=values.__getitem__))
        kept.add(min(inside, key=values.__getitem__))
    return sorted(kept)


def _longest_sessions(measured: BacktestResult) -> list[list[Cell]]:
    sessions: dict[tuple[str, str], list[Cell]] = {}
    for cell in measured.cells:
        if cell.outcome is CellOutcome.DONE and any(cell.context):
            sessions.setdefault((cell.namespace, cell.session), []).append(cell)
    by_length = sorted(
        sessions.items(), key=lambda one: (-max(len(cell.context) for cell in one[1]), one[0])
    )
    return [cells for _, cells in by_length[:_MAX_SESSIONS]]


def _make_curve(cell: Cell, style: SetupStyle, points: int) -> dict[str, Any]:
    # A value of zero was no call; drawn, it would look like an empty prompt.
    calls = [(number, tokens) for number, tokens in enumerate(cell.context, start=1) if tokens]
    kept = thin_points([tokens for _, tokens in calls], points)
    return {
        "name": escape_label(cell.setup.label),
        "x": [calls[index][0] for index in kept],
        "y": [calls[index][1] for index in kept],
        "color": style.color,
        "dash": style.dash,
    }
