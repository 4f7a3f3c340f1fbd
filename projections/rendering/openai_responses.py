"""Renders a view as the body of an OpenAI Responses request with the whole conversation."""

from ...domain.blocks import BlockKind, Media, Native
from ...domain.native_item import fill_item
from ..rendering import sendable, summary_message
from ..view_content import ViewContent, ViewEntry
from .exchanges import (
    OPENING_TEXT,
    Exchange,
    ExchangeCall,
    find_speaker,
    group_exchanges,
    join_spoken_text,
    list_answer_parts,
    list_block_content,
    read_native_item,
    render_arguments_text,
    render_definitions,
    sanitize_tool_name,
)
from .sendable import JsonObject

_PROVIDER = "openai-responses"
_MAX_ID_CHARS = 64
_MAX_NAME_CHARS = 64

_CALLS = frozenset({"function_call", "custom_tool_call"})
"""Calls whose output has the type `<type>_output` and the same `call_id`."""
_HELD_IN_PLACE = {"reasoning", *_CALLS, *(f"{call}_output" for call in _CALLS)}
"""Items that are only legal in fixed places."""


def render(view: ViewContent) -> JsonObject:
    """Return the request's body; it shares nothing with the view."""
    body: JsonObject = sendable.copy_value(view.request_settings)
    if view.system_prompt and view.system_prompt.strip():
        body["instructions"] = sendable.replace_half_characters(view.system_prompt)
    if view.tool_definitions:
        body["tools"] = render_definitions(view, _PROVIDER)
    items: list[JsonObject] = []
    if view.summary:
        items.append(_make_message("user", [_make_text(summary_message.render_summary(view))]))
    boundary = view.boundary.after if view.boundary else 0
    is_stored = body.get("store") is not False
    sent_ids: set[str] = set()
    for exchange in group_exchanges(view, _MAX_ID_CHARS).exchanges:
        said = _render_model_message(exchange, boundary, sent_ids, is_stored=is_stored)
        kinds = {item["call_id"]: item["type"] for item in said if "call_id" in item}
        items += said
        items += [_render_result(call, kinds[call.id], sent_ids) for call in exchange.calls]
        items += _render_input(exchange.input_entries, sent_ids)
    body["input"] = items or [_make_message("user", [_make_text(OPENING_TEXT)])]
    return body


def _render_model_message(
    exchange: Exchange, boundary: int, sent_ids: set[str], *, is_stored: bool
) -> list[JsonObject]:
    """Return the model's message; reasoning stays directly before the item it led to, or goes."""
    items: list[JsonObject] = []
    thought: JsonObject | None = None
    # Native items refer to the reasoning before them. If that is missing, or a boundary may have
    # hidden it, they are rendered again without their ids.
    whole = bool(exchange.model_entries) and (
        exchange.start > boundary or _is_thinking(exchange.model_entries[0])
    )
    for piece in exchange.model_entries:
        entry = piece.entry if isinstance(piece, ExchangeCall) else piece
        item = _take_native_item(entry, sent_ids) if whole else None
        if _is_thinking(piece):
            # Of several in a row the API accepts the last, since only that one is followed by an
            # item.
            thought = item if item and _is_reasoning(item, is_stored=is_stored) else None
            whole = thought is not None
            continue
        rendered = (
            _render_call(piece, item)
            if isinstance(piece, ExchangeCall)
            else _render_spoken(piece, item)
        )
        if rendered:
            items += [thought, rendered] if thought else [rendered]
            thought = None
    return items


def _is_thinking(piece: ViewEntry | ExchangeCall) -> bool:
    return not isinstance(piece, ExchangeCall) and piece.block.kind is BlockKind.THINKING


def _is_reasoning(item: JsonObject, *, is_stored: bool) -> bool:
    """Check whether the API can read it: by its content, or by its id if the server keeps items."""
    named = isinstance(item.get("id"), str) and is_stored
    return item["type"] == "reasoning" and bool(item.get("encrypted_content") or named)


def _render_call(call: ExchangeCall, item: JsonObject | None) -> JsonObject:
    if item and item["type"] in _CALLS and item.get("call_id") == call.id:
        return item
    return {
        "type": "function_call",
        "call_id": call.id,
        "name": sanitize_tool_name(call.name, _MAX_NAME_CHARS),
        "arguments": render_arguments_text(call.entry),
    }


def _render_spoken(entry: ViewEntry, item: JsonObject | None) -> JsonObject | None:
    if item and item["type"] not in _HELD_IN_PLACE:
        return item
    words = join_spoken_text(entry)
    return _make_message("assistant", [_make_text(words, "output_text")]) if words.strip() else None


def _render_result(call: ExchangeCall, kind: str, sent_ids: set[str]) -> JsonObject:
    item = _take_native_item(call.result, sent_ids) if call.result else None
    kind = f"{kind}_output"
    if item and item["type"] == kind and item.get("call_id") == call.id and "output" in item:
        return item
    parts = list_answer_parts(call.result, _PROVIDER)
    words = [part for part in parts if isinstance(part, str)]
    is_plain = len(words) == len(parts)
    output = "\n".join(words) if is_plain else [_render_part(part) for part in parts]
    return {"type": kind, "call_id": call.id, "output": output}


def _render_part(part: str | Media | JsonObject) -> JsonObject:
    if isinstance(part, str):
        return _make_text(part)
    return _render_media(part) if isinstance(part, Media) else part


def _render_input(entries: list[ViewEntry], sent_ids: set[str]) -> list[JsonObject]:
    """Join the user's adjacent blocks to one message; developers' and native ones stay separate."""
    items: list[JsonObject] = []
    going_on: list[JsonObject] | None = None
    for entry in entries:
        item = _take_native_item(entry, sent_ids)
        if item and item["type"] not in _HELD_IN_PLACE:
            items.append(item)
            going_on = None
            continue
        content = list_block_content(entry, _make_text, _render_media)
        who = find_speaker(entry)
        if content and who == "user" and going_on:
            going_on += content
        elif content:
            items.append(_make_message(who, content))
            going_on = content if who == "user" else None
    return items


def _render_media(found: Media) -> JsonObject:
    if url := sendable.find_image_url(found):
        return {"type": "input_image", "detail": "auto", "image_url": url}
    if words := sendable.decode_text(found):
        return _make_text(words)
    if found.type == "document" and found.data and sendable.is_file(found):
        name = found.name or "document"
        return {
            "type": "input_file",
            "filename": name,
            "file_data": sendable.make_data_url(found),
        }
    if found.type == "document" and not found.data and (address := sendable.find_address(found)):
        return {"type": "input_file", "file_url": address}
    return _make_text(sendable.describe_media(found))


def _take_native_item(entry: ViewEntry, sent_ids: set[str]) -> JsonObject | None:
    """Return the item as received, but only once, because the API refuses repeated ids."""
    item = read_native_item(entry, _PROVIDER) or _read_given_item(entry)
    name = item.get("id") if item else None
    if isinstance(name, str):
        if name in sent_ids:
            return None
        sent_ids.add(name)
    return item


def _read_given_item(entry: ViewEntry) -> JsonObject | None:
    """Return the item that was appended with the block, if it is all the item says."""
    item = entry.item
    if item is None or item.pieces or entry.shown is not None:
        return None
    text = fill_item(item, [entry.block])
    native = Native(provider=item.provider, item=text) if text is not None else None
    return sendable.parse_native_item(native, _PROVIDER)


def _make_message(role: str, content: list[JsonObject]) -> JsonObject:
    return {"type": "message", "role": role, "content": content}


def _make_text(words: str, kind: str = "input_text") -> JsonObject:
    return {"type": kind, "text": words}
