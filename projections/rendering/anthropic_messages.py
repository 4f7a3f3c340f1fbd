"""Renders a view as the body of an Anthropic Messages request, with cache marks or without.

Marks are on the last tool, the system prompt and two blocks near the tail: four, the API's maximum.
Apart from them both requests are equal.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from ...domain.blocks import BlockKind, Media
from ..rendering import sendable, summary_message
from ..view_content import ViewContent, ViewEntry
from .exchanges import (
    OPENING_TEXT,
    Exchange,
    ExchangeCall,
    ViewConversation,
    find_speaker,
    group_exchanges,
    join_spoken_text,
    list_answer_parts,
    list_block_content,
    read_native_item,
    render_arguments,
    render_definitions,
    sanitize_tool_name,
)
from .sendable import JsonObject

_PROVIDER = "anthropic"
_MAX_ID_CHARS = 64  # the Anthropic API has no limit, but other APIs with the same models do
_MAX_NAME_CHARS = 128

THINKING_TYPES = frozenset({"thinking", "redacted_thinking"})
_HELD_IN_PLACE = THINKING_TYPES | {"tool_use", "tool_result"}
"""Items that are only legal in fixed places."""
_NEVER = 2**63


SUMMARY_PLACE = 0
"""The position that represents the summary, which is not a block."""


def render(view: ViewContent) -> JsonObject:
    """Return the request's body; it shares nothing with the view."""
    return render_with_places(view)[0]


def render_with_places(view: ViewContent) -> tuple[JsonObject, dict[int, JsonObject]]:
    """Return the request's body, and the last piece of content of each block in it.

    The pieces are by position, in the body's order; for an open call it is the stand-in for its
    result.
    """
    body: JsonObject = sendable.copy_value(view.request_settings)
    talk = group_exchanges(view, _MAX_ID_CHARS)
    mode = _find_thinking_mode(body)
    thoughts_since = {"enabled": 0, "disabled": _NEVER}.get(mode, talk.start_of_growth)
    messages, ends = _render_messages(view, talk, thoughts_since)
    if mode == "enabled" and not _begins_with_thinking(messages):
        # The API would refuse the turn; as its error suggests, turn off thinking for this request.
        body["thinking"] = {"type": "disabled"}
        messages, ends = _render_messages(view, talk, _NEVER)
    if view.system_prompt and view.system_prompt.strip():
        body["system"] = sendable.replace_half_characters(view.system_prompt)
    if view.tool_definitions:
        body["tools"] = render_definitions(view, _PROVIDER)
    body["messages"] = messages
    return body, ends


def _render_messages(
    view: ViewContent, talk: ViewConversation, thoughts_since: int
) -> tuple[list[JsonObject], dict[int, JsonObject]]:
    messages: list[JsonObject] = []
    ends: dict[int, JsonObject] = {}
    offered = frozenset(
        tool["name"]
        for tool in render_definitions(view, _PROVIDER)
        if isinstance(tool, dict) and isinstance(tool.get("name"), str)
    )
    if view.summary:
        ends[SUMMARY_PLACE] = _make_text(summary_message.render_summary(view))
        _append_content(messages, "user", [ends[SUMMARY_PLACE]])
    for exchange in talk.exchanges:
        said = _render_model_message(exchange, thoughts_since, ends)
        _append_content(messages, "assistant", said)
        heard: list[JsonObject] = []
        for call in exchange.calls:
            heard.append(_render_result(call, offered))
            if call.result is None:
                del ends[call.entry.position]
            ends[(call.result or call.entry).position] = heard[-1]
        for told in exchange.input_entries:
            if content := _render_input(told):
                heard += content
                ends[told.position] = content[-1]
        _append_content(messages, "user", heard)
    if not messages or messages[0]["role"] == "assistant":
        messages.insert(0, {"role": "user", "content": [_make_text(OPENING_TEXT)]})
    last = messages[-1]["content"]
    if messages[-1]["role"] == "assistant" and last[-1]["type"] == "text":
        # The API refuses trailing white space there. No text follows it, so it is the last end too.
        words: str = last[-1]["text"]
        if words != words.rstrip():
            last[-1] = ends[next(reversed(ends))] = _make_text(words.rstrip())
    return messages, ends


def _append_content(messages: list[JsonObject], role: str, content: list[JsonObject]) -> None:
    if not content:
        return
    if messages and messages[-1]["role"] == role:
        messages[-1]["content"] += content
    else:
        messages.append({"role": role, "content": content})


def _render_model_message(
    exchange: Exchange, thoughts_since: int, ends: dict[int, JsonObject]
) -> list[JsonObject]:
    content: list[JsonObject] = []
    positions: list[int] = []
    whole = True
    for piece in exchange.model_entries:
        if isinstance(piece, ExchangeCall):
            content.append(_render_call(piece))
        elif piece.block.kind is BlockKind.THINKING:
            # A signature is valid only after all earlier thinking: once one is missing, the rest
            # must go.
            whole = whole and piece.position > thoughts_since
            thought = _render_thinking(piece) if whole else None
            if thought:
                content.append(thought)
            whole = thought is not None
        else:
            content += _render_spoken(piece)
        position = piece.entry.position if isinstance(piece, ExchangeCall) else piece.position
        positions += [position] * (len(content) - len(positions))
    # Empty thinking is refused, and so is a message that ends with thinking.
    while content and content[-1]["type"] in THINKING_TYPES:
        content.pop()
    ends.update(zip(positions, content, strict=False))  # thinking at the end has no place
    return content


def _render_spoken(entry: ViewEntry) -> list[JsonObject]:
    if item := _get_standalone_item(entry):
        return [item]
    words = join_spoken_text(entry)
    return [_make_text(words)] if words.strip() else []


def _render_thinking(entry: ViewEntry) -> JsonObject | None:
    """Return thinking as received, with its signature; None if it cannot be sent again."""
    match read_native_item(entry, _PROVIDER) or {}:
        case {"type": "thinking", "thinking": str(), "signature": str(signed)} as item if signed:
            return item
        case {"type": "redacted_thinking", "data": str(data)} as item if data:
            return item
        case _:
            return None


def _render_call(call: ExchangeCall) -> JsonObject:
    match read_native_item(call.entry, _PROVIDER) or {}:
        case {"type": "tool_use", "id": call.id, "name": str(), "input": dict()} as item:
            return item
        case _:
            return {
                "type": "tool_use",
                "id": call.id,
                "name": sanitize_tool_name(call.name, _MAX_NAME_CHARS),
                "input": render_arguments(call.entry),
            }


def _render_result(call: ExchangeCall, offered: frozenset[str]) -> JsonObject:
    match (read_native_item(call.result, _PROVIDER) if call.result else None) or {}:
        case {"type": "tool_result", "tool_use_id": call.id, "content": content} as item if content:
            return item
        case _:
            parts = list_answer_parts(call.result, _PROVIDER)
            content = [_render_part(part, offered) for part in parts]
            result = {"type": "tool_result", "tool_use_id": call.id, "content": content}
            return {**result, "is_error": True} if call.is_error else result


def _render_part(part: str | Media | JsonObject, offered: frozenset[str]) -> JsonObject:
    if isinstance(part, str):
        return _make_text(part)
    if isinstance(part, Media):
        return _render_media(part)
    if part["type"] == "tool_reference" and part.get("tool_name") not in offered:
        # The API refuses references to tools that the request does not offer.
        return _make_text(f"[tool {part.get('tool_name')}]")
    return part


def _render_input(entry: ViewEntry) -> list[JsonObject]:
    if find_speaker(entry) == "user":
        item = _get_standalone_item(entry)
        return [item] if item else list_block_content(entry, _make_text, _render_media)
    words = sendable.replace_half_characters(entry.text)
    if not words.strip():
        return []
    is_marked = words.startswith("<system-reminder>")
    return [_make_text(words if is_marked else f"<system-reminder>\n{words}\n</system-reminder>")]


def _render_media(found: Media) -> JsonObject:
    source: JsonObject | None = None
    is_readable = (
        found.mime in sendable.SENDABLE_IMAGES
        if found.type == "image"
        else found.mime == sendable.PDF_TYPE
    )
    if found.data and is_readable:
        data = sendable.encode_base64(found)
        source = {"type": "base64", "media_type": found.mime, "data": data}
    elif words := sendable.decode_text(found):
        source = {"type": "text", "media_type": "text/plain", "data": words}
    elif not found.data and (address := sendable.find_address(found)):
        source = {"type": "url", "url": address}
    if source is None:
        return _make_text(sendable.describe_media(found))
    title = {"title": found.name} if found.type == "document" and found.name else {}
    return {"type": found.type, "source": source, **title}


def _get_standalone_item(entry: ViewEntry) -> JsonObject | None:
    item = read_native_item(entry, _PROVIDER)
    if item is None or item["type"] in _HELD_IN_PLACE:
        return None
    is_blank = item["type"] == "text" and not str(item.get("text", "")).strip()
    return None if is_blank else item


def _make_text(words: str) -> JsonObject:
    return {"type": "text", "text": words}


def _find_thinking_mode(settings: JsonObject) -> str:
    thinking = settings.get("thinking")
    return str(thinking.get("type")) if isinstance(thinking, dict) else "unsaid"


def _begins_with_thinking(messages: list[JsonObject]) -> bool:
    """Check whether the current turn begins with thinking; results of calls do not end a turn."""
    first = None
    for message in reversed(messages):
        if message["role"] == "assistant":
            first = message["content"][0]["type"]
        elif all(block["type"] != "tool_result" for block in message["content"]):
            break
    return first is None or first in THINKING_TYPES


_BLOCKS_BEFORE_TAIL = 3
"""How many blocks before the end the earlier point is: usually the later point of the previous
call, so that a request finds what the last one wrote."""
_CACHE_MARK = "cache_control"
_SHORT_LIVED_MARK: JsonObject = {"type": "ephemeral"}


def render_cached(view: ViewContent) -> JsonObject:
    """Return the request's body with its marks, and without any recorded ones.

    A mark in the session's settings for the whole request sets the lifetime: it moves to the
    blocks, because the API would count it as a fifth.
    """
    body, ends = render_with_places(view)
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
