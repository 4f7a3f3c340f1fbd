"""Computes the drawings of a session page: the prompt of each call, and the status of blocks.

A drawing is as wide as its page, so horizontal values are percentages; the template writes SVG.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ....domain.ranges import Ranges
from ....domain.settlement import BlockStatus
from ....domain.token_estimate import SizeBasis
from .session_story import PageBoundary, PageStory

ChartData = dict[str, Any]

_HEIGHT = 220
_SPACE_ABOVE, _SPACE_BELOW = 14, 24
"""Room for text above and below the bars."""
_FLOOR = _HEIGHT - _SPACE_BELOW
MAX_NUMBERS = 12
"""The number of compactions whose numbers fit above their lines on a phone."""
_MAX_BARS = 500
_MAX_STRIPES = 24
_ROW_HEIGHT, _ROW_DISTANCE = 14, 18
_MAX_CELLS = 500


def draw_context(story: PageStory) -> ChartData:
    """Draw a bar for each call, as high as its prompt; of many calls, the highest of each group."""
    calls = story.calls
    top = max(1, *(call.tokens for call in calls), 1)
    reported = sum(call.size.basis is SizeBasis.REPORTED for call in calls)
    each = max(1, -(-len(calls) // _MAX_BARS))
    groups = [calls[at : at + each] for at in range(0, len(calls), each)]
    bars, marks = list[ChartData](), list[ChartData]()
    before = None
    for number, group in enumerate(groups):
        x, wide = 100 * number / len(groups), 90 / len(groups)
        tallest = max(group, key=lambda call: call.tokens)
        rects = [_make_bar(x, wide, tallest.tokens / top, tallest.size.basis)]
        if tallest.summary_tokens:
            rects.append(_make_bar(x, wide, tallest.summary_tokens / top, "summary"))
        bars.append({"call": tallest, "rects": rects})
        newest = group[-1]
        if newest.boundary is not None and newest.boundary != before:
            boundary = story.boundaries.get(newest.boundary)
            marks.append({"x": x, "call": newest.number, "boundary": boundary})
        before = newest.boundary
    met = {
        "reported": ("prompt, reported by the provider", reported > 0),
        "estimated": ("prompt, estimated", reported < len(calls)),
        "summary": ("the summary in it, estimated", any(call.summary_tokens for call in calls)),
        "boundary": ("compaction", any(call.boundary for call in calls)),
    }
    return {
        "label": f"Tokens of the prompts of {len(calls):,} calls, {reported:,} of them reported;"
        f" the largest has {top:,}",
        "height": _HEIGHT,
        "floor": _FLOOR,
        "scale": [(_find_height(part), f"{round(top * part):,}") for part in (0.5, 1.0)],
        "bars": bars,
        "marks": marks,
        "is_numbered": len(marks) <= MAX_NUMBERS,
        "legend": [(f"bar-{kind}", words) for kind, (words, is_met) in met.items() if is_met],
    }


def draw_statuses(story: PageStory) -> ChartData:
    """Draw a stripe for each served boundary, as long as the log was then, and one for now."""
    served = [one for one in story.boundaries.values() if one.node.served_from is not None]
    newest = sorted(served, key=lambda one: one.last_position)[-_MAX_STRIPES:]
    lineages = sorted({one.lineage for one in newest})
    rows = list[ChartData]()
    for lineage in lineages:
        rows += [{"title": f"lineage {lineage}"}] if len(lineages) > 1 else []
        rows += [_make_stripe(story, one) for one in newest if one.lineage == lineage]
    if len(lineages) > 1:
        rows.append({"title": f"lineage {story.view.coordinate.lineage}"})
    now = [one.status.status for one in story.blocks]
    rows.append({"label": "now", "boundary": None, "cells": list(_make_cells(now))})
    for number, row in enumerate(rows):
        row["y"] = 2 + number * _ROW_DISTANCE
    met = set(now).union(*(one.statuses for one in story.boundaries.values()))
    return {
        "label": "What had become of each block of the log, at each compaction and now",
        "height": len(rows) * _ROW_DISTANCE + 4,
        "row_height": _ROW_HEIGHT,
        "rows": rows,
        "legend": [(f"fate-{status}", str(status)) for status in BlockStatus if status in met],
    }


def _make_bar(x: float, wide: float, share: float, kind: str) -> ChartData:
    y = _find_height(share)
    return {
        "x": f"{x:.2f}%",
        "y": f"{y:.1f}",
        "width": f"{wide:.2f}%",
        "height": f"{_FLOOR - y:.1f}",
        "class": f"bar-{kind}",
    }


def _find_height(share: float) -> float:
    return _SPACE_ABOVE + (_FLOOR - _SPACE_ABOVE) * (1 - share)


def _make_stripe(story: PageStory, boundary: PageBoundary) -> ChartData:
    statuses = [_find_status(boundary.statuses, one.position) for one in story.blocks]
    label = f"#{boundary.last_position}"
    return {"label": label, "boundary": boundary, "cells": list(_make_cells(statuses))}


def _find_status(statuses: Mapping[BlockStatus, Ranges], position: int) -> BlockStatus | None:
    return next((status for status, where in statuses.items() if position in where), None)


def _make_cells(statuses: Sequence[BlockStatus | None]) -> Iterator[ChartData]:
    """Yield runs of blocks with one status; of many blocks, the most common of each group."""
    each = max(1, -(-len(statuses) // _MAX_CELLS))
    groups = [statuses[at : at + each] for at in range(0, len(statuses), each)]
    seen = [max(group, key=group.count) for group in groups]
    begin = 0
    for at in range(1, len(seen) + 1):
        if at == len(seen) or seen[at] != seen[begin]:
            if (status := seen[begin]) is not None:
                x, width = 100 * begin / len(seen), 100 * (at - begin) / len(seen)
                yield {"status": status, "x": f"{x:.2f}%", "width": f"{width:.2f}%"}
            begin = at
