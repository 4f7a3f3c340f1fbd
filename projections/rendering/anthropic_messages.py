"""A view as the body of an Anthropic Messages request."""

from dataclasses import dataclass

from ...domain.blocks import Block, Kind, Media
from ..history_view import Entry, HistoryView
from . import media, sendable, summary_message, tool_calls, tool_definitions
from .exchanges import OPENING, Call, Conversation, Exchange, conversation, speaker, spoken_text
from .sendable import JsonObject

PROVIDER = "anthropic"
LONGEST_ID = 64  # its own API names no limit; the same models behind another's do
LONGEST_NAME = 128

THOUGHTS = frozenset({"thinking", "redacted_thinking"})
_HELD_IN_PLACE = THOUGHTS | {"tool_use", "tool_result"}
"""Items that are only legal where their own rules put them."""
_NEVER = 2**63


SUMMARY = 0
"""Stands for the position of the summary, which is no block."""


@dataclass(frozen=True, slots=True)
class LaidOut:
    """A request's body, and where it says which block."""

    body: JsonObject
    ends: dict[int, JsonObject]
    """The last piece of content that shows each block, by its position, in the body's order; of a
    call that nobody has answered, what stands for its result."""


def render(view: HistoryView) -> JsonObject:
    """The request's body; it shares nothing with the view."""
    return laid_out(view).body


def laid_out(view: HistoryView) -> LaidOut:
    """The request's body with the places of what it shows."""
    body: JsonObject = sendable.own(view.request_settings)
    talk = conversation(view, LONGEST_ID)
    mode = _thinking_mode(body)
    thoughts_since = {"enabled": 0, "disabled": _NEVER}.get(mode, talk.grown_since)
    messages, ends = _messages(view, talk, thoughts_since)
    if mode == "enabled" and not _begins_with_a_thought(messages):
        # The API would refuse the turn and says how to avoid it: think no more in this request.
        body["thinking"] = {"type": "disabled"}
        messages, ends = _messages(view, talk, _NEVER)
    if view.system_prompt and view.system_prompt.strip():
        body["system"] = sendable.text(view.system_prompt)
    if view.tool_definitions:
        body["tools"] = tool_definitions.definitions(view, tool_definitions.ANTHROPIC)
    body["messages"] = messages
    return LaidOut(body, ends)


def _messages(
    view: HistoryView, talk: Conversation, thoughts_since: int
) -> tuple[list[JsonObject], dict[int, JsonObject]]:
    messages: list[JsonObject] = []
    ends: dict[int, JsonObject] = {}
    definitions = tool_definitions.definitions(view, tool_definitions.ANTHROPIC)
    offered = frozenset(tool["name"] for tool in definitions if _is_named(tool))
    if view.summary:
        ends[SUMMARY] = _text(summary_message.said(view))
        _add(messages, "user", [ends[SUMMARY]])
    for exchange in talk.exchanges:
        _add(messages, "assistant", _said(exchange, thoughts_since, ends))
        heard: list[JsonObject] = []
        for call in exchange.calls:
            heard.append(_answer(call, offered))
            if call.result is None:
                del ends[call.entry.position]
            ends[(call.result or call.entry).position] = heard[-1]
        for told in exchange.told:
            if content := _told(told):
                heard += content
                ends[told.position] = content[-1]
        _add(messages, "user", heard)
    if not messages or messages[0]["role"] == "assistant":
        messages.insert(0, {"role": "user", "content": [_text(OPENING)]})
    last = messages[-1]["content"]
    if messages[-1]["role"] == "assistant" and last[-1]["type"] == "text":
        # Nothing was said after it, so that it is the last of the ends as well.
        last[-1] = ends[next(reversed(ends))] = _unpadded(last[-1])
    return messages, ends


def _is_named(tool: object) -> bool:
    return isinstance(tool, dict) and isinstance(tool.get("name"), str)


def _add(messages: list[JsonObject], role: str, content: list[JsonObject]) -> None:
    if not content:
        return
    if messages and messages[-1]["role"] == role:
        messages[-1]["content"] += content
    else:
        messages.append({"role": role, "content": content})


def _said(exchange: Exchange, thoughts_since: int, ends: dict[int, JsonObject]) -> list[JsonObject]:
    content: list[JsonObject] = []
    positions: list[int] = []
    whole = True
    for piece in exchange.said:
        if isinstance(piece, Call):
            content.append(_called(piece))
        elif piece.block.kind is Kind.THINKING:
            # A signature holds only after the thoughts before it: once one is missing, so are all.
            whole = whole and piece.position > thoughts_since
            thought = _thought(piece) if whole else None
            if thought:
                content.append(thought)
            whole = thought is not None
        else:
            content += _spoken(piece)
        position = piece.entry.position if isinstance(piece, Call) else piece.position
        positions += [position] * (len(content) - len(positions))
    # Thinking that came to nothing is refused; so is a message that ends with it.
    while content and content[-1]["type"] in THOUGHTS:
        content.pop()
    ends.update(zip(positions, content, strict=False))  # thinking at the end has no place
    return content


def _spoken(entry: Entry) -> list[JsonObject]:
    if item := _standalone_item(entry):
        return [item]
    words = spoken_text(entry)
    return [_text(words)] if words.strip() else []


def _thought(entry: Entry) -> JsonObject | None:
    """Thinking as it came, with its signature; else not at all, since it cannot be said anew."""
    match _item(entry) or {}:
        case {"type": "thinking", "thinking": str(), "signature": str(signed)} as item if signed:
            return item
        case {"type": "redacted_thinking", "data": str(data)} as item if data:
            return item
        case _:
            return None


def _called(call: Call) -> JsonObject:
    match _item(call.entry) or {}:
        case {"type": "tool_use", "id": call.id, "name": str(), "input": dict()} as item:
            return item
        case _:
            return {
                "type": "tool_use",
                "id": call.id,
                "name": tool_calls.tool_name(call.name, LONGEST_NAME),
                "input": tool_calls.arguments(call.entry),
            }


def _answer(call: Call, offered: frozenset[str]) -> JsonObject:
    match (_item(call.result) if call.result else None) or {}:
        case {"type": "tool_result", "tool_use_id": call.id, "content": content} as item if content:
            return item
        case _:
            parts = tool_calls.answer(call.result, PROVIDER)
            content = [_part(part, offered) for part in parts]
            result = {"type": "tool_result", "tool_use_id": call.id, "content": content}
            return {**result, "is_error": True} if call.is_error else result


def _part(part: str | Media | JsonObject, offered: frozenset[str]) -> JsonObject:
    if isinstance(part, str):
        return _text(part)
    if isinstance(part, Media):
        return _medium(part)
    if part["type"] == "tool_reference" and part.get("tool_name") not in offered:
        # A reference to a tool that the request does not offer is refused.
        return _text(f"[tool {part.get('tool_name')}]")
    return part


def _told(entry: Entry) -> list[JsonObject]:
    if speaker(entry) == "user":
        return _shown(entry)
    words = sendable.text(entry.text)
    if not words.strip():
        return []
    is_marked = words.startswith("<system-reminder>")
    return [_text(words if is_marked else f"<system-reminder>\n{words}\n</system-reminder>")]


def _shown(entry: Entry) -> list[JsonObject]:
    """A block's words, and then its image or document, if it shows them."""
    if item := _standalone_item(entry):
        return [item]
    words = sendable.text(entry.text)
    content = [_text(words)] if words.strip() else []
    if entry.shown is None and isinstance(entry.block, Block) and entry.block.media:
        content.append(_medium(entry.block.media))
    return content


def _medium(found: Media) -> JsonObject:
    source: JsonObject | None = None
    is_readable = found.mime in media.IMAGES if found.type == "image" else found.mime == media.PDF
    if found.data and is_readable:
        source = {"type": "base64", "media_type": found.mime, "data": media.base64(found)}
    elif words := media.words(found):
        source = {"type": "text", "media_type": "text/plain", "data": words}
    elif not found.data and (address := media.address(found)):
        source = {"type": "url", "url": address}
    if source is None:
        return _text(media.described(found))
    title = {"title": found.name} if found.type == "document" and found.name else {}
    return {"type": found.type, "source": source, **title}


def _standalone_item(entry: Entry) -> JsonObject | None:
    item = _item(entry)
    is_allowed = item and item["type"] not in _HELD_IN_PLACE and not _is_blank(item)
    return item if is_allowed else None


def _item(entry: Entry) -> JsonObject | None:
    return sendable.item(entry.block.native, PROVIDER) if entry.shown is None else None


def _text(words: str) -> JsonObject:
    return {"type": "text", "text": words}


def _is_blank(item: JsonObject) -> bool:
    return item["type"] == "text" and not str(item.get("text", "")).strip()


def _unpadded(block: JsonObject) -> JsonObject:
    """The API refuses a request whose last words are the model's and end with a space."""
    words: str = block["text"]
    return block if words == words.rstrip() else _text(words.rstrip())


def _thinking_mode(settings: JsonObject) -> str:
    thinking = settings.get("thinking")
    return str(thinking.get("type")) if isinstance(thinking, dict) else "unsaid"


def _begins_with_a_thought(messages: list[JsonObject]) -> bool:
    """Whether the turn under way does; a turn goes on as long as the user only answers calls."""
    first = None
    for message in reversed(messages):
        if message["role"] == "assistant":
            first = message["content"][0]["type"]
        elif all(block["type"] != "tool_result" for block in message["content"]):
            break
    return first is None or first in THOUGHTS
