"""Computes the drawing of a session page: the prompt of each call.

It is as wide as its page, so horizontal values are percentages; the template writes SVG.
"""

from typing import Any

from ....domain.token_estimate import SizeBasis
from .session_story import PageStory

ChartData = dict[str, Any]

_HEIGHT = 220
_SPACE_ABOVE, _SPACE_BELOW = 14, 24
"""Room for text above and below the bars."""
_FLOOR = _HEIGHT - _SPACE_BELOW
MAX_NUMBERS = 12
"""The number of compactions whose numbers fit above their lines on a phone."""
_MAX_BARS = 500


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
