"""Makes the data for the page's script: the block statuses at each call and boundary."""

import json
from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

from .....domain.ranges import Ranges
from .....domain.settlement import BlockStatus
from .history import to_block_numbers
from .markup import Markup
from .page_selection import PageSelection
from .page_story import PageStory


def render_page_data(story: PageStory, cuts: PageSelection) -> Markup:
    """Render JSON for a script element; no text in it can end that element."""
    positions = [told.position for told in cuts.blocks]
    names = {told.key: number for number, told in enumerate(story.boundaries)}
    document: dict[str, Any] = {
        "calls": {
            told.call.number: [
                bisect_left(positions, told.call.last_seen_position + 1),
                names.get(told.boundary) if told.boundary else None,
                told.call.last_seen_position,
            ]
            for told in cuts.calls
        },
        "boundaries": [
            {
                "decided": bisect_left(positions, told.node.boundary.after + 1),
                "fates": {
                    fate.value: _to_runs(where, positions)
                    for fate, where in told.statuses.items()
                    if fate not in {BlockStatus.VISIBLE, BlockStatus.RETRACTED}
                },
            }
            for told in story.boundaries
        ],
        "retracted": [[at, _to_runs(gone, positions)] for at, gone in story.retractions],
    }
    text = json.dumps(document, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c"))


def _to_runs(where: Ranges, positions: Sequence[int]) -> list[list[int]]:
    return [list(run) for run in to_block_numbers(where, positions)]
