"""What the page's script knows: of each call and boundary, which blocks have which fate."""

import json
from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

from .....domain.coverage import Fate
from .....domain.ranges import Ranges
from .cuts import Cuts
from .history import numbered
from .markup import Markup
from .story import Story


def marks(story: Story, cuts: Cuts) -> Markup:
    """JSON to stand in a script element; nothing in it can end that."""
    positions = [told.position for told in cuts.blocks]
    names = {told.key: number for number, told in enumerate(story.boundaries)}
    document: dict[str, Any] = {
        "calls": {
            told.call.number: [
                bisect_left(positions, told.call.sees + 1),
                names.get(told.boundary) if told.boundary else None,
                told.call.sees,
            ]
            for told in cuts.calls
        },
        "boundaries": [
            {
                "decided": bisect_left(positions, told.node.boundary.after + 1),
                "fates": {
                    fate.value: _numbers(where, positions)
                    for fate, where in told.fates.items()
                    if fate not in {Fate.VISIBLE, Fate.RETRACTED}
                },
            }
            for told in story.boundaries
        ],
        "retracted": [[at, _numbers(gone, positions)] for at, gone in story.retractions],
    }
    text = json.dumps(document, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c"))


def _numbers(where: Ranges, positions: Sequence[int]) -> list[list[int]]:
    """Positions as runs of the numbers that blocks have on the page."""
    return [list(run) for run in numbered(where, positions)]
