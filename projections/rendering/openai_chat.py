"""A view as the body of an OpenAI Chat Completions request, as many other servers take it too."""

from itertools import groupby

from ...domain.blocks import Block, Kind, Media
from ..history_view import Entry, HistoryView
from . import media, sendable, summary_message, tool_calls, tool_definitions
from .exchanges import OPENING, Call, Exchange, conversation, speaker, spoken_text
from .sendable import JsonObject

PROVIDER = "openai-chat"
LONGEST_ID = 40
LONGEST_NAME = 64


def render(view: HistoryView) -> JsonObject:
    """The request's body; it shares nothing with the view. Thinking has no place in it."""
    body: JsonObject = sendable.own(view.request_settings)
    if view.tool_definitions:
        body["tools"] = tool_definitions.definitions(view, tool_definitions.OPENAI_CHAT)
    messages: list[JsonObject] = []
    if view.summary:
        messages.append(_user([_text(summary_message.said(view))]))
    for exchange in conversation(view, LONGEST_ID).exchanges:
        messages += _said(exchange)
        messages += _answers(exchange.calls)
        messages += _told(exchange.told)
    if not messages:
        messages.append(_user([_text(OPENING)]))
    if view.system_prompt and view.system_prompt.strip():
        messages.insert(0, {"role": "system", "content": sendable.text(view.system_prompt)})
    body["messages"] = messages
    return body


def _said(exchange: Exchange) -> list[JsonObject]:
    words = [
        text
        for piece in exchange.said
        if not isinstance(piece, Call)
        and piece.block.kind is not Kind.THINKING
        and (text := spoken_text(piece)).strip()
    ]
    if not words and not exchange.calls:
        return []
    message: JsonObject = {"role": "assistant", "content": "\n\n".join(words) or None}
    if exchange.calls:
        message["tool_calls"] = [_called(call) for call in exchange.calls]
    return [message]


def _called(call: Call) -> JsonObject:
    function = {
        "name": tool_calls.tool_name(call.name, LONGEST_NAME),
        "arguments": tool_calls.arguments_text(call.entry),
    }
    return {"id": call.id, "type": "function", "function": function}


def _answers(calls: list[Call]) -> list[JsonObject]:
    """One message a call, in order; then the images and documents, which those cannot hold."""
    messages: list[JsonObject] = []
    attached: list[JsonObject] = []
    for call in calls:
        lines: list[str] = []
        for part in tool_calls.answer(call.result, PROVIDER):
            if isinstance(part, str):
                lines.append(part)
            elif isinstance(part, Media):
                lines.append(media.described(part))
                if content := _medium(part):
                    attached += [_text(f"[from the tool call {call.id}]"), content]
        messages.append({"role": "tool", "tool_call_id": call.id, "content": "\n".join(lines)})
    return [*messages, _user(attached)] if attached else messages


def _told(entries: list[Entry]) -> list[JsonObject]:
    """What the user says in one go is one message; a developer's words stand alone."""
    messages: list[JsonObject] = []
    for who, said in groupby(entries, key=speaker):
        if who == "user":
            content = [part for entry in said for part in _shown(entry)]
            messages += [_user(content)] if content else []
        else:
            messages += [
                {"role": "developer", "content": sendable.text(entry.text)}
                for entry in said
                if entry.text.strip()
            ]
    return messages


def _shown(entry: Entry) -> list[JsonObject]:
    """A block's words, and then its image or document, if it shows them."""
    content = [_text(sendable.text(entry.text))] if entry.text.strip() else []
    if entry.shown is None and isinstance(entry.block, Block) and (found := entry.block.media):
        content.append(_medium(found) or _text(media.described(found)))
    return content


def _medium(found: Media) -> JsonObject | None:
    if url := media.image_url(found):
        return {"type": "image_url", "image_url": {"url": url}}
    if found.type == "document" and found.mime == media.PDF and found.data:
        file = {"filename": found.name or "document.pdf", "file_data": media.data_url(found)}
        return {"type": "file", "file": file}
    words = media.words(found)
    return _text(words) if words else None


def _user(content: list[JsonObject]) -> JsonObject:
    is_plain = len(content) == 1 and content[0]["type"] == "text"
    return {"role": "user", "content": content[0]["text"] if is_plain else content}


def _text(words: str) -> JsonObject:
    return {"type": "text", "text": words}
