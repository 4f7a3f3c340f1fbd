"""Renders a view as an Anthropic Messages request with cache marks.

Marks are on the last tool, the system prompt and two blocks near the tail: four, the API's maximum.
Apart from them the request equals that of `anthropic`.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from ..view_content import ViewContent
from . import anthropic_messages
from .anthropic_messages import THINKING_TYPES
from .sendable import JsonObject

_BLOCKS_BEFORE_TAIL = 3
"""How many blocks before the end the earlier point is: usually the later point of the previous
call, so that a request finds what the last one wrote."""
_CACHE_MARK = "cache_control"
_SHORT_LIVED_MARK: JsonObject = {"type": "ephemeral"}


def render(view: ViewContent) -> JsonObject:
    """Return the request's body with its marks, and without any recorded ones.

    A mark in the session's settings for the whole request sets the lifetime: it moves to the
    blocks, because the API would count it as a fifth.
    """
    body, ends = anthropic_messages.render_with_places(view)
    asked = body.pop(_CACHE_MARK, None)
    mark = asked if isinstance(asked, dict) and asked else _SHORT_LIVED_MARK
    _clear_marks(body.get("tools", ()))
    for message in body["messages"]:
        _clear_marks(message["content"])
    tools = [tool for tool in body.get("tools", ()) if isinstance(tool, dict)]
    # A tool that is loaded later cannot be marked.
    if at_once := [tool for tool in tools if not tool.get("defer_loading")]:
        at_once[-1][_CACHE_MARK] = dict(mark)
    if "system" in body:
        body["system"] = [{"type": "text", "text": body["system"], _CACHE_MARK: dict(mark)}]
    messages = {entry.position: entry.block.message_id for entry in view.entries}
    pieces = list(ends.values())
    for point in find_cache_points([messages.get(position) for position in ends]):
        # Thinking cannot be marked.
        markable = [end for end in pieces[: point + 1] if end["type"] not in THINKING_TYPES]
        if markable:
            markable[-1][_CACHE_MARK] = dict(mark)
    return body


def find_cache_points(paths: Sequence[str | None]) -> tuple[int, ...]:
    """Return the indices of the blocks with a cache point, in order, given each block's path.

    Adjacent blocks of one path belong together, and the point moves to the last of them. There are
    two points, one if both are on the last block, and none without blocks.
    """
    if not paths:
        return ()
    last = len(paths) - 1
    point = max(last + 1 - _BLOCKS_BEFORE_TAIL, 0)
    while point < last and paths[point] and paths[point + 1] == paths[point]:
        point += 1
    return tuple(sorted({point, last}))


def _clear_marks(pieces: Iterable[Any]) -> None:
    """Remove marks from content, also within results and documents."""
    for piece in pieces:
        if not isinstance(piece, dict):
            continue
        piece.pop(_CACHE_MARK, None)
        for holder in (piece, piece.get("source")):
            content = holder.get("content") if isinstance(holder, dict) else None
            if isinstance(content, list):
                _clear_marks(content)
