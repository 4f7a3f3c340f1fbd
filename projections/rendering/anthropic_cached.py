"""Renders a view as an Anthropic Messages request with cache marks.

Marks are on the last tool, the system prompt and two blocks near the tail: four, the API's maximum.
Apart from them the request equals that of `anthropic`.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from ..view_content import ViewContent
from . import anthropic_messages
from .anthropic_messages import THINKING_TYPES
from .sendable_json import JsonObject

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
    laid_out = anthropic_messages.render_with_places(view)
    body = laid_out.body
    asked = body.pop(_CACHE_MARK, None)
    mark = asked if isinstance(asked, dict) and asked else _SHORT_LIVED_MARK
    _clear_marks(body.get("tools", ()))
    for message in body["messages"]:
        _clear_marks(message["content"])
    if tool := _find_last_tool(body.get("tools", ())):
        tool[_CACHE_MARK] = dict(mark)
    if "system" in body:
        body["system"] = [{"type": "text", "text": body["system"], _CACHE_MARK: dict(mark)}]
    messages = {entry.position: entry.block.message_id for entry in view.entries}
    ends = list(laid_out.ends.values())
    for point in find_cache_points([messages.get(position) for position in laid_out.ends]):
        if end := _find_markable(ends[: point + 1]):
            end[_CACHE_MARK] = dict(mark)
    return body


def find_cache_points(paths: Sequence[str | None]) -> tuple[int, ...]:
    """Return the indices of the blocks with a cache point, in order, given each block's path.

    Adjacent blocks of one path belong together, and the point moves to the last of them. There are
    two points, one if both are on the last block, and none without blocks.
    """
    if not paths:
        return ()
    last = len(paths) - 1
    return tuple(sorted({_find_run_end(paths, max(last + 1 - _BLOCKS_BEFORE_TAIL, 0)), last}))


def _find_run_end(paths: Sequence[str | None], index: int) -> int:
    """Return the last of the adjacent blocks with the same path."""
    while paths[index] and index + 1 < len(paths) and paths[index + 1] == paths[index]:
        index += 1
    return index


def _find_markable(ends: Sequence[JsonObject]) -> JsonObject | None:
    """Return the last item that may carry a mark; thinking may not."""
    return next((end for end in reversed(ends) if end["type"] not in THINKING_TYPES), None)


def _find_last_tool(tools: Sequence[Any]) -> JsonObject | None:
    """Return the last tool that is loaded immediately; a deferred one cannot be marked."""
    return next(
        (
            tool
            for tool in reversed(tools)
            if isinstance(tool, dict) and not tool.get("defer_loading")
        ),
        None,
    )


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
