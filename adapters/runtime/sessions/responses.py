"""Reads the response of a provider's client into blocks, with its usage."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple
from uuid import uuid4

from ....domain.blocks import AnyBlock, Block, Kind, Media, Native, ToolCall
from ....domain.errors import InvalidResponseError
from ....domain.session_events import Usage
from ...transcripts.formats.claude_code.entries import usage_of
from ...transcripts.formats.content.media_text import bytes_of, what_of
from ...transcripts.formats.json_lines import Line
from ...transcripts.formats.messages import anthropic, openai_chat, openai_responses
from ...transcripts.formats.messages.pieces import Compaction, Made, Piece, Unheard, Wrong
from ...transcripts.formats.reading.fields import Item, MalformedError, take, take_optional

_LINE = Line(1, 0, odd=True)
"""Writes items as JSON text without losing NaN or large integers."""


class Response(NamedTuple):
    """What a model answered, and what its provider reported of the call."""

    id: str
    renderer: str
    """The format that the request had, as `render` names it."""
    blocks: list[AnyBlock]
    model: str | None
    usage: Usage | None
    stop_reason: str | None


def read_response(response: object) -> Response:
    """Read what a client of anthropic, openai (chat or responses) or google-genai returned.

    `response` is the client's object, or its JSON as a dict. A stream has to be read to its end
    first. Raises InvalidResponseError for anything else, and for several choices at once.
    """
    try:
        return _read(_as_dict(response))
    except MalformedError as error:
        name = type(response).__name__
        raise InvalidResponseError(
            f"cannot read this {name} as a model's response: {error}. Give what the client of "
            "anthropic, openai or google-genai returned; of a stream, its final response"
        ) from None


def _read(body: Item) -> Response:
    match body:
        case {"type": "message", "content": list()}:
            return _read_anthropic(body)
        case {"choices": list()}:
            return _read_chat(body)
        case {"output": list()}:
            return _read_responses(body)
        case {"candidates": list()} | {"promptFeedback": dict()}:
            return _read_google(body)
        case _:
            raise MalformedError("no content, choices, output or candidates in it")


def _as_dict(response: object) -> Item:
    if isinstance(response, dict):
        return response
    dump = getattr(response, "model_dump", None)
    # `parse()` puts objects of the caller into a response, which pydantic would warn of.
    found = dump(mode="json", by_alias=True, exclude_none=True, warnings=False) if dump else None
    return found if isinstance(found, dict) else {}


def _read_anthropic(body: Item) -> Response:
    name = take_optional(body, "id", str) or uuid4().hex
    pieces = (
        (item, piece)
        for item in body["content"]
        for piece in anthropic.pieces({"role": "assistant", "content": [item]}, _LINE, 1)
    )
    return Response(
        name,
        "anthropic",
        _blocks(pieces, "anthropic", name),
        take_optional(body, "model", str),
        usage_of(body),
        take_optional(body, "stop_reason", str),
    )


def _read_chat(body: Item) -> Response:
    choice = _only(body["choices"], "choices")
    name = take_optional(body, "id", str) or uuid4().hex
    message = {**take(choice, "message", dict), "role": "assistant"} if choice else {}
    found = openai_chat.pieces(message, _LINE, 1) if choice else ()
    pieces = ((message, piece) for piece in found)
    return Response(
        name,
        "openai-chat",
        _blocks(pieces, "openai-chat", name),
        take_optional(body, "model", str),
        _openai_usage(body, "prompt_tokens", "completion_tokens"),
        take_optional(choice, "finish_reason", str),
    )


def _read_responses(body: Item) -> Response:
    name = take_optional(body, "id", str) or uuid4().hex
    pieces = (
        (item, piece)
        for number, item in enumerate(body["output"], 1)
        for piece in _read_output(item, number)
    )
    incomplete = take_optional(body, "incomplete_details", dict) or {}
    reason = take_optional(incomplete, "reason", str)
    return Response(
        name,
        "openai-responses",
        _blocks(pieces, "openai-responses", name),
        take_optional(body, "model", str),
        _openai_usage(body, "input_tokens", "output_tokens"),
        reason or take_optional(body, "status", str),
    )


def _read_output(item: Any, number: int) -> Iterator[Piece]:
    if not isinstance(item, dict):
        yield Wrong("expected an object", item)
    elif item.get("type") == "image_generation_call" and (media := _image(item.get("result"))):
        native = Native(provider="openai-responses", item=_LINE.json(item))
        yield Made(Block(kind=Kind.ASSISTANT, name="image", media=media, native=native), ())
    else:
        pieces = list(openai_responses.pieces(item, _LINE, number))
        match pieces:
            case [Made(block=Block(native=None) as block)]:  # a message of one text
                native = Native(provider="openai-responses", item=_LINE.json(item))
                yield Made(block.model_copy(update={"native": native}), ())
            case _:
                yield from pieces


def _read_google(body: Item) -> Response:
    candidate = _only(body.get("candidates") or [], "candidates")
    name = take_optional(body, "responseId", str) or uuid4().hex
    content = take_optional(candidate, "content", dict) or {}
    parts = take_optional(content, "parts", list) or []
    return Response(
        name,
        "neutral",
        [_google_block(part, f"{name}:{at}", name) for at, part in enumerate(parts, 1)],
        take_optional(body, "modelVersion", str),
        _google_usage(body),
        take_optional(candidate, "finishReason", str),
    )


def _google_block(part: Any, call_id: str, message_id: str) -> AnyBlock:
    if not isinstance(part, dict):
        raise MalformedError("content.parts: expected objects")
    is_signed = "thoughtSignature" in part
    native = Native(provider="google", item=_LINE.json(part))
    match part:
        case {"functionCall": {"name": str(function)}}:
            call: Item = part["functionCall"]
            return ToolCall(
                tool_call_id=take_optional(call, "id", str) or call_id,
                name=function,
                arguments=_LINE.json(take_optional(call, "args", dict) or {}),
                native=native if is_signed else None,
                message_id=message_id,
            )
        case {"text": str(text), "thought": True}:
            return Block.thinking(text, native=native, message_id=message_id)
        case {"text": str(text)}:
            kept = native if is_signed else None
            return Block.assistant(text, native=kept, message_id=message_id)
        case {"inlineData": {"mimeType": str(mime), "data": str(data)}} if (
            found := _decoded(data)
        ) is not None:
            media = Media(type=what_of(mime), mime=mime, data=found)
            kept = native if is_signed else None
            return Block(
                kind=Kind.ASSISTANT,
                name=media.type,
                media=media,
                native=kept,
                message_id=message_id,
            )
        case _:
            what = next((name for name in part if name != "thoughtSignature"), "part")
            return Block.assistant("", name=what, native=native, message_id=message_id)


def _blocks(pieces: Iterable[tuple[Item, Piece]], provider: str, message_id: str) -> list[AnyBlock]:
    """The blocks of each item. One of an unknown type, or a compaction, stays as it came."""
    blocks: list[AnyBlock] = []
    for item, piece in pieces:
        match piece:
            case Made(block=block):
                blocks.append(block.model_copy(update={"message_id": message_id}))
            case Wrong(reason=reason):
                raise MalformedError(reason)
            case Unheard(item=unknown):
                blocks.append(_native_block(unknown, provider, message_id))
            case Compaction():
                blocks.append(_native_block(item, provider, message_id))
    return blocks


def _native_block(item: Item, provider: str, message_id: str) -> Block:
    native = Native(provider=provider, item=_LINE.json(item))
    name = str(item.get("type", "item"))
    return Block.assistant("", name=name, native=native, message_id=message_id)


def _only(choices: list[Any], field: str) -> Item:
    """The one choice of a response; empty where it has none, as when the prompt was blocked."""
    if len(choices) > 1:
        raise MalformedError(
            f"{field}: a session takes one answer and here are {len(choices)}; keep one of them"
        )
    if choices and not isinstance(choices[0], dict):
        raise MalformedError(f"{field}: expected objects")
    return choices[0] if choices else {}


def _openai_usage(body: Item, sent: str, said: str) -> Usage | None:
    usage = take_optional(body, "usage", dict)
    if usage is None:
        return None
    prompt = take_optional(usage, sent, int)
    cached = take_optional(
        take_optional(usage, f"{sent}_details", dict) or {}, "cached_tokens", int
    )
    return Usage(
        input=None if prompt is None else max(0, prompt - (cached or 0)),
        cache_read=cached,
        output=take_optional(usage, said, int),
        reasoning=take_optional(
            take_optional(usage, f"{said}_details", dict) or {}, "reasoning_tokens", int
        ),
    )


def _google_usage(body: Item) -> Usage | None:
    usage = take_optional(body, "usageMetadata", dict)
    if usage is None:
        return None
    prompt = take_optional(usage, "promptTokenCount", int)
    used = take_optional(usage, "toolUsePromptTokenCount", int)
    cached = take_optional(usage, "cachedContentTokenCount", int)
    thought = take_optional(usage, "thoughtsTokenCount", int)
    said = take_optional(usage, "candidatesTokenCount", int)
    return Usage(
        input=None if prompt is None else max(0, prompt + (used or 0) - (cached or 0)),
        cache_read=cached,
        output=None if said is None and thought is None else (said or 0) + (thought or 0),
        reasoning=thought,
    )


def _image(data: Any) -> Media | None:
    found = _decoded(data) if isinstance(data, str) else None
    return Media(type="image", mime="image/png", data=found) if found else None


def _decoded(data: str) -> bytes | None:
    """Bytes of base64 in either alphabet: google-genai writes the one for URLs."""
    return bytes_of(data.replace("-", "+").replace("_", "/"))
