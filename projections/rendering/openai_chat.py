"""Renders a view as an OpenAI Chat Completions request, which many other servers accept."""

from itertools import groupby

from ...domain.blocks import BlockKind, Media
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
    render_arguments_text,
    render_definitions,
    sanitize_tool_name,
)
from .sendable import JsonObject

_PROVIDER = "openai-chat"
_MAX_ID_CHARS = 40
_MAX_NAME_CHARS = 64


def render(view: ViewContent) -> JsonObject:
    """Return the request's body, without thinking; it shares nothing with the view."""
    body: JsonObject = sendable.copy_value(view.request_settings)
    if view.tool_definitions:
        body["tools"] = render_definitions(view, _PROVIDER)
    messages: list[JsonObject] = []
    if view.summary:
        messages.append(_make_user_message([_make_text(summary_message.render_summary(view))]))
    for exchange in group_exchanges(view, _MAX_ID_CHARS).exchanges:
        messages += _render_model_message(exchange)
        messages += _render_results(exchange.calls)
        messages += _render_input(exchange.input_entries)
    if not messages:
        messages.append(_make_user_message([_make_text(OPENING_TEXT)]))
    if view.system_prompt and view.system_prompt.strip():
        messages.insert(
            0,
            {
                "role": "system",
                "content": sendable.replace_half_characters(view.system_prompt),
            },
        )
    body["messages"] = messages
    return body


def _render_model_message(exchange: Exchange) -> list[JsonObject]:
    words = [
        text
        for piece in exchange.model_entries
        if not isinstance(piece, ExchangeCall)
        and piece.block.kind is not BlockKind.THINKING
        and (text := join_spoken_text(piece)).strip()
    ]
    if not words and not exchange.calls:
        return []
    message: JsonObject = {"role": "assistant", "content": "\n\n".join(words) or None}
    if exchange.calls:
        message["tool_calls"] = [_render_call(call) for call in exchange.calls]
    return [message]


def _render_call(call: ExchangeCall) -> JsonObject:
    function = {
        "name": sanitize_tool_name(call.name, _MAX_NAME_CHARS),
        "arguments": render_arguments_text(call.entry),
    }
    return {"id": call.id, "type": "function", "function": function}


def _render_results(calls: list[ExchangeCall]) -> list[JsonObject]:
    """Return one message for each call, then the images and documents, which those cannot hold."""
    messages: list[JsonObject] = []
    attached: list[JsonObject] = []
    for call in calls:
        lines: list[str] = []
        for part in list_answer_parts(call.result, _PROVIDER):
            if isinstance(part, str):
                lines.append(part)
            elif isinstance(part, Media):
                lines.append(sendable.describe_media(part))
                if content := _render_media(part):
                    attached += [_make_text(f"[from the tool call {call.id}]"), content]
        messages.append({"role": "tool", "tool_call_id": call.id, "content": "\n".join(lines)})
    return [*messages, _make_user_message(attached)] if attached else messages


def _render_input(entries: list[ViewEntry]) -> list[JsonObject]:
    """Join the user's adjacent blocks to one message; a developer's blocks stay separate."""
    messages: list[JsonObject] = []
    for who, said in groupby(entries, key=find_speaker):
        if who == "user":
            content = [
                part
                for entry in said
                for part in list_block_content(entry, _make_text, _render_user_media)
            ]
            messages += [_make_user_message(content)] if content else []
        else:
            messages += [
                {"role": "developer", "content": sendable.replace_half_characters(entry.text)}
                for entry in said
                if entry.text.strip()
            ]
    return messages


def _render_media(found: Media) -> JsonObject | None:
    if url := sendable.find_image_url(found):
        return {"type": "image_url", "image_url": {"url": url}}
    if found.type == "document" and found.mime == sendable.PDF_TYPE and found.data:
        file = {
            "filename": found.name or "document.pdf",
            "file_data": sendable.make_data_url(found),
        }
        return {"type": "file", "file": file}
    words = sendable.decode_text(found)
    return _make_text(words) if words else None


def _render_user_media(found: Media) -> JsonObject:
    return _render_media(found) or _make_text(sendable.describe_media(found))


def _make_user_message(content: list[JsonObject]) -> JsonObject:
    is_plain = len(content) == 1 and content[0]["type"] == "text"
    return {"role": "user", "content": content[0]["text"] if is_plain else content}


def _make_text(words: str) -> JsonObject:
    return {"type": "text", "text": words}
