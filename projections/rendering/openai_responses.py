"""A view as the body of an OpenAI Responses request, which holds the whole conversation."""

from ...domain.blocks import Block, Kind, Media
from ..history_view import Entry, HistoryView
from . import media, sendable, summary_message, tool_calls, tool_definitions
from .exchanges import OPENING, Call, Exchange, conversation, speaker, spoken_text
from .sendable import JsonObject

PROVIDER = "openai-responses"
LONGEST_ID = 64
LONGEST_NAME = 64

_CALLS = frozenset({"function_call", "custom_tool_call"})
"""Calls whose output is `<type>_output`, tied to them by `call_id`."""
_HELD_IN_PLACE = {"reasoning", *_CALLS, *(f"{call}_output" for call in _CALLS)}
"""Items that are only legal where their own rules put them."""


def render(view: HistoryView) -> JsonObject:
    """The request's body; it shares nothing with the view."""
    body: JsonObject = sendable.own(view.request_settings)
    if view.system_prompt and view.system_prompt.strip():
        body["instructions"] = sendable.text(view.system_prompt)
    if view.tool_definitions:
        body["tools"] = tool_definitions.definitions(view, tool_definitions.OPENAI_RESPONSES)
    items: list[JsonObject] = []
    if view.summary:
        items.append(_message("user", [_text(summary_message.said(view))]))
    boundary = view.boundary.after if view.boundary else 0
    is_stored = body.get("store") is not False
    sent_ids: set[str] = set()
    for exchange in conversation(view, LONGEST_ID).exchanges:
        said = _said(exchange, boundary, sent_ids, is_stored=is_stored)
        kinds = {item["call_id"]: item["type"] for item in said if "call_id" in item}
        items += said
        items += [_answer(call, kinds[call.id], sent_ids) for call in exchange.calls]
        items += _told(exchange.told, sent_ids)
    body["input"] = items or [_message("user", [_text(OPENING)])]
    return body


def _said(
    exchange: Exchange, boundary: int, sent_ids: set[str], *, is_stored: bool
) -> list[JsonObject]:
    """The model's message; reasoning goes back directly before what it led to, or not at all."""
    items: list[JsonObject] = []
    thought: JsonObject | None = None
    # Native items name the reasoning they came from. Where that is missing, or a boundary may have
    # hidden it, they are said anew, without their ids.
    whole = bool(exchange.said) and (exchange.begins > boundary or _is_thought(exchange.said[0]))
    for piece in exchange.said:
        entry = piece.entry if isinstance(piece, Call) else piece
        item = _item(entry, sent_ids) if whole else None
        if _is_thought(piece):
            # Of several in a row the API takes the last: only that one is followed by an item.
            thought = item if item and _is_reasoning(item, is_stored=is_stored) else None
            whole = thought is not None
            continue
        anew = _called(piece, item) if isinstance(piece, Call) else _spoken(piece, item)
        if anew:
            items += [thought, anew] if thought else [anew]
            thought = None
    return items


def _is_thought(piece: Entry | Call) -> bool:
    return not isinstance(piece, Call) and piece.block.kind is Kind.THINKING


def _is_reasoning(item: JsonObject, *, is_stored: bool) -> bool:
    """Whether the API can read it: what it holds, or by its id where the server keeps items."""
    named = isinstance(item.get("id"), str) and is_stored
    return item["type"] == "reasoning" and bool(item.get("encrypted_content") or named)


def _called(call: Call, item: JsonObject | None) -> JsonObject:
    if item and item["type"] in _CALLS and item.get("call_id") == call.id:
        return item
    return {
        "type": "function_call",
        "call_id": call.id,
        "name": tool_calls.tool_name(call.name, LONGEST_NAME),
        "arguments": tool_calls.arguments_text(call.entry),
    }


def _spoken(entry: Entry, item: JsonObject | None) -> JsonObject | None:
    if item and item["type"] not in _HELD_IN_PLACE:
        return item
    words = spoken_text(entry)
    return _message("assistant", [_text(words, "output_text")]) if words.strip() else None


def _answer(call: Call, kind: str, sent_ids: set[str]) -> JsonObject:
    item = _item(call.result, sent_ids) if call.result else None
    kind = f"{kind}_output"
    if item and item["type"] == kind and item.get("call_id") == call.id and "output" in item:
        return item
    parts = tool_calls.answer(call.result, PROVIDER)
    words = [part for part in parts if isinstance(part, str)]
    is_plain = len(words) == len(parts)
    output = "\n".join(words) if is_plain else [_part(part) for part in parts]
    return {"type": kind, "call_id": call.id, "output": output}


def _part(part: str | Media | JsonObject) -> JsonObject:
    if isinstance(part, str):
        return _text(part)
    return _medium(part) if isinstance(part, Media) else part


def _told(entries: list[Entry], sent_ids: set[str]) -> list[JsonObject]:
    """What the user says in one go is one message; a developer's words and items stand alone."""
    items: list[JsonObject] = []
    going_on: list[JsonObject] | None = None
    for entry in entries:
        item = _item(entry, sent_ids)
        if item and item["type"] not in _HELD_IN_PLACE:
            items.append(item)
            going_on = None
            continue
        content, who = _shown(entry), speaker(entry)
        if content and who == "user" and going_on:
            going_on += content
        elif content:
            items.append(_message(who, content))
            going_on = content if who == "user" else None
    return items


def _shown(entry: Entry) -> list[JsonObject]:
    """A block's words, and then its image or document, if it shows them."""
    content = [_text(sendable.text(entry.text))] if entry.text.strip() else []
    if entry.shown is None and isinstance(entry.block, Block) and entry.block.media:
        content.append(_medium(entry.block.media))
    return content


def _medium(found: Media) -> JsonObject:
    if url := media.image_url(found):
        return {"type": "input_image", "detail": "auto", "image_url": url}
    if words := media.words(found):
        return _text(words)
    if found.type == "document" and found.data and media.is_file(found):
        name = found.name or "document"
        return {"type": "input_file", "filename": name, "file_data": media.data_url(found)}
    if found.type == "document" and not found.data and (address := media.address(found)):
        return {"type": "input_file", "file_url": address}
    return _text(media.described(found))


def _item(entry: Entry, sent_ids: set[str]) -> JsonObject | None:
    """The item as it came, once: the API refuses an id that it was given twice."""
    item = sendable.item(entry.block.native, PROVIDER) if entry.shown is None else None
    name = item.get("id") if item else None
    if isinstance(name, str):
        if name in sent_ids:
            return None
        sent_ids.add(name)
    return item


def _message(role: str, content: list[JsonObject]) -> JsonObject:
    return {"type": "message", "role": role, "content": content}


def _text(words: str, kind: str = "input_text") -> JsonObject:
    return {"type": kind, "text": words}
