"""Lays out panels side by side and below each other, each with its own axes."""

from collections.abc import Sequence
from typing import Any

PANEL_GAP = 0.1
"""The gap between panels side by side, as a fraction of the drawing."""
_MAX_NAME_CHARACTERS = 40
_PANEL_HEIGHT = 420
"""Pixels of a line of panels."""
BOTTOM_MARGIN = 90
"""Pixels between two lines of panels, for numbers and headings."""


def panel_axes(panel: int) -> dict[str, str]:
    """Return the axes of a panel; panels count from 1."""
    number = "" if panel == 1 else str(panel)
    return {"xaxis": f"x{number}", "yaxis": f"y{number}"}


def make_layout(
    titles: Sequence[str],
    *,
    x: str,
    y: str,
    y_range: Sequence[float | None] | None = None,
    columns: int | None = None,
    height: int | None = None,
    rows: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the layout of one panel for each title, in lines of `columns`, or of three.

    `rows` are the names on the vertical axis of each panel if it is not numeric, top first.
    """
    across = max(1, min(len(titles), columns or 3))
    down = max(1, -(-len(titles) // across))
    height = height or _PANEL_HEIGHT * down
    layout: dict[str, Any] = {
        "height": height,
        "margin": {"l": 60, "r": 20, "t": 40, "b": 60},
        # At the bottom of the drawing, where it never covers an axis title.
        "legend": {"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom"},
        "annotations": [],
        "hovermode": "closest",
    }
    for number, title in enumerate(titles):
        across_from, across_to = _panel_domain(number % across, across, PANEL_GAP)
        # Rows count from the top, fractions from the bottom.
        down_from, down_to = _panel_domain(
            down - 1 - number // across, down, BOTTOM_MARGIN / height
        )
        suffix = "" if number == 0 else str(number + 1)
        layout[f"xaxis{suffix}"] = {
            "domain": [across_from, across_to],
            "anchor": f"y{suffix}",
            "title": {"text": x if number // across == down - 1 else ""},
            "automargin": True,
        }
        layout[f"yaxis{suffix}"] = {
            "domain": [down_from, down_to],
            "anchor": f"x{suffix}",
            "title": {"text": y if number % across == 0 else ""},
            "automargin": True,
            **({"range": list(y_range)} if y_range else {}),
            **(_row_axis(rows, is_first=number % across == 0) if rows else {}),
        }
        layout["annotations"].append(
            {
                "text": f"<b>{title}</b>",
                "x": across_from,
                "y": down_to,
                "xref": "paper",
                "yref": "paper",
                "xanchor": "left",
                "yanchor": "bottom",
                "showarrow": False,
            }
        )
    return layout


def _row_axis(rows: Sequence[str], *, is_first: bool) -> dict[str, Any]:
    """Return an axis that shows long names shortened, and keeps them apart."""
    return {
        "type": "category",
        "categoryorder": "array",
        "categoryarray": list(reversed(rows)),
        "range": [-0.6, len(rows) - 0.4],
        "tickvals": list(rows),
        "ticktext": [
            row if len(row) <= _MAX_NAME_CHARACTERS else f"{row[: _MAX_NAME_CHARACTERS - 1]}…"
            for row in rows
        ],
        "showticklabels": is_first,
    }


def _panel_domain(number: int, of: int, gap: float) -> tuple[float, float]:
    width = (1 - gap * (of - 1)) / of
    start = number * (width + gap)
    return round(start, 4), round(min(1.0, start + width), 4)
