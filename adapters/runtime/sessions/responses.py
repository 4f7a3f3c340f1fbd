"""Reads a provider's responses and messages into blocks."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import uuid4

from ....domain.blocks import (
    AnyBlock,
    Block,
    BlockKind,
    BlockMetadata,
    Media,
    Native,
    ToolCall,
    ToolResult,
)
from ....domain.errors import InvalidResponseError, InvalidSettingError
from ....domain.native_item import Item
from ....domain.session_events import Usage
from ...transcripts.formats.claude_code.entries import SYNTHETIC_MODEL, ProviderMessage
from ...transcripts.formats.content import base64_to_bytes, media_kind_of
from ...transcripts.formats.fields import JsonDict, MalformedError, get_field, require_field
from ...transcripts.formats.json_lines import SourceLine
from ...transcripts.formats.messages import anthropic, openai_chat, openai_responses
from ...transcripts.formats.messages.message_file_reader import read_openai_usage
from ...transcripts.formats.messages.message_reader import (
    MalformedPart,
    MessagePart,
    ProviderCompaction,
    UnknownPart,
)

_LINE = SourceLine(1, 0, has_odd_numbers=True)
"""Writes items as JSON text without losing NaN or large integers."""


class ProviderResponse(NamedTuple):
    """What a model answered, and what its provider reported of the call."""

    id: str
    renderer: str
    """The format that the request had, as `render` names it."""
    blocks: list[AnyBlock]
    model: str | None
    usage: Usage | None
    stop_reason: str | None
    later_calls: tuple[tuple[str, str | None, Usage], ...] = ()
    """Id, model and usage of the further calls that the provider's own tools made for it."""


def read_response(response: object, id: str | None = None) -> ProviderResponse:
    """Read what a client of anthropic, openai (chat or responses) or google-genai returned.

    `response` is the client's object, or its JSON as a dict; `id` names one that has no id. A
    stream must be read to its end first. Raises InvalidResponseError for anything else, and for
    several choices.
    """
    body, made = _as_dict(response), id or uuid4().hex
    try:
        return _read({**body, **{name: body.get(name) or made for name in ("id", "responseId")}})
    except MalformedError as error:
        name = type(response).__name__
        raise InvalidResponseError(
            f"cannot read this {name} as a model's response: {error}. Give what the client of "
            "anthropic, openai or google-genai returned; of a stream, its final response"
        ) from None


def read_message(message: Mapping[str, Any], provider: str) -> Item:
    """Read a message of a conversation, or one item of it, for `session.append`.

    `provider` is the wire format: `anthropic`, `google`, `openai-chat` or `openai-responses`. A
    part that is not known, or has another form than the provider's, becomes a text of its JSON.
    Raises InvalidSettingError for another provider, and for what is not a JSON object.
    """
    if provider not in _READERS:
        known = ", ".join(_READERS)
        raise InvalidSettingError(f"no messages of {provider!r} are known; give one of {known}")
    try:
        text = json.dumps(dict(message), ensure_ascii=False)
        value: JsonDict = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidSettingError(f"the message is not a JSON object: {error}") from None
    try:
        parts = list(_READERS[provider](value, _LINE, 1))
    except MalformedError:
        parts = []
    blocks = [
        _spell_native(part) if isinstance(part, BlockMetadata) else _make_text_of_json(part, value)
        for part in parts or [UnknownPart("", value)]
    ]
    return Item(text, blocks, provider)


def read_call_reports(pieces: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Read what Anthropic reported of the calls behind a message, each for `session.record_call`.

    `pieces` are the message as a program stored it while it was streamed, once or several times.
    Empty if no model wrote it, or if the report is malformed.
    """
    try:
        calls = _read_claude_calls(pieces) if pieces else []
    except MalformedError:
        return []
    return [call for call in calls if call["model"] != SYNTHETIC_MODEL]


def _spell_native(block: AnyBlock) -> AnyBlock:
    """Spell what a block keeps of the item as the item does, so that it is stored once."""
    if block.native is None:
        return block
    spelled = json.dumps(json.loads(block.native.item), ensure_ascii=False)
    return block.model_copy(update={"native": block.native.model_copy(update={"item": spelled})})


def _make_text_of_json(
    part: ProviderCompaction | UnknownPart | MalformedPart, message: JsonDict
) -> Block:
    value = part.item if isinstance(part, UnknownPart) else message
    is_models = message.get("role", "assistant") in _MODELS_ROLES
    return Block(
        kind=BlockKind.ASSISTANT if is_models else BlockKind.DEVELOPER,
        text=json.dumps(value, ensure_ascii=False),
        name=str(value.get("type") or "") or None if isinstance(value, dict) else None,
    )


def _read_google_parts(message: JsonDict, line: SourceLine, number: int) -> Iterator[MessagePart]:
    """Yield the parts of a content; calls without an id are named by their function."""
    del line, number  # errors name no place of a file
    is_models = message.get("role") in _MODELS_ROLES
    for part in require_field(message, "parts", list):
        match part:
            case {"functionResponse": {"name": str(name), "response": dict(result)} as returned}:
                texts = list(result.values())
                is_text = len(texts) == 1 and isinstance(texts[0], str)
                yield ToolResult(
                    tool_call_id=get_field(returned, "id", str) or name,
                    content=texts[0] if is_text else json.dumps(result, ensure_ascii=False),
                    is_error="error" in result,
                )
            case {"functionCall": {"name": str(name)}}:
                yield _google_block(part, name, None)
            case {"text": str()} | {"inlineData": dict()}:
                block = _google_block(part, "", None)
                if is_models or not isinstance(block, Block) or part.get("thought"):
                    yield block
                else:
                    kind = BlockKind(block.media.type) if block.media else BlockKind.USER
                    yield block.model_copy(update={"kind": kind})
            case _:
                yield UnknownPart("", part)


_MODELS_ROLES = {"assistant", "model"}
_READERS: dict[str, Callable[[JsonDict, SourceLine, int], Iterator[MessagePart]]] = {
    "anthropic": anthropic.read_anthropic_parts,
    "google": _read_google_parts,
    "openai-chat": openai_chat.read_chat_parts,
    "openai-responses": openai_responses.read_response_parts,
}


def _read(body: JsonDict) -> ProviderResponse:
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


def _as_dict(response: object) -> JsonDict:
    if isinstance(response, dict):
        return response
    dump = getattr(response, "model_dump", None)
    # `parse()` puts objects of the caller into a response, which pydantic would warn of.
    found = dump(mode="json", by_alias=True, exclude_none=True, warnings=False) if dump else None
    return found if isinstance(found, dict) else {}


def _read_anthropic(body: JsonDict) -> ProviderResponse:
    pieces = (
        (item, piece)
        for item in body["content"]
        for piece in anthropic.read_anthropic_parts(
            {"role": "assistant", "content": [item]}, _LINE, 1
        )
    )
    call, *others = _read_claude_calls([body])
    later = tuple((other["call_id"], other["model"], other["usage"]) for other in others)
    response = _make_response(body, "anthropic", pieces, call["usage"], call["stop_reason"])
    return response._replace(later_calls=later)


def _read_claude_calls(pieces: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    message = ProviderMessage(require_field(dict(pieces[0]), "id", str), "", None)
    for piece in pieces:
        message.update(dict(piece))
    names = ("call_id", "model", "usage", "stop_reason")
    return [{name: call.fields[name] for name in names} for call in message.report_calls()]


def _read_chat(body: JsonDict) -> ProviderResponse:
    choice = _single_choice(body["choices"], "choices")
    message = {**require_field(choice, "message", dict), "role": "assistant"} if choice else {}
    found = openai_chat.read_chat_parts(message, _LINE, 1) if choice else ()
    usage = read_openai_usage(body, sent="prompt_tokens", received="completion_tokens")
    stop_reason = get_field(choice, "finish_reason", str)
    pieces = ((message, piece) for piece in found)
    return _make_response(body, "openai-chat", pieces, usage, stop_reason)


def _read_responses(body: JsonDict) -> ProviderResponse:
    pieces = (
        (item, piece)
        for number, item in enumerate(body["output"], 1)
        for piece in _read_output(item, number)
    )
    usage = read_openai_usage(body)
    incomplete = get_field(body, "incomplete_details", dict) or {}
    stop_reason = get_field(incomplete, "reason", str) or get_field(body, "status", str)
    return _make_response(body, "openai-responses", pieces, usage, stop_reason)


def _read_output(item: Any, number: int) -> Iterator[MessagePart]:
    if not isinstance(item, dict):
        yield MalformedPart("expected an object")
    elif item.get("type") == "image_generation_call" and (media := _make_image(item.get("result"))):
        native = Native(provider="openai-responses", item=_LINE.to_json(item))
        yield Block(kind=BlockKind.ASSISTANT, name="image", media=media, native=native)
    else:
        pieces = list(openai_responses.read_response_parts(item, _LINE, number))
        match pieces:
            case [Block(native=None) as block]:  # a message of one text
                native = Native(provider="openai-responses", item=_LINE.to_json(item))
                yield block.model_copy(update={"native": native})
            case _:
                yield from pieces


def _read_google(body: JsonDict) -> ProviderResponse:
    candidate = _single_choice(body.get("candidates") or [], "candidates")
    name = require_field(body, "responseId", str)
    content = get_field(candidate, "content", dict) or {}
    parts = get_field(content, "parts", list) or []
    return ProviderResponse(
        name,
        "neutral",
        [_google_block(part, f"{name}:{at}", name) for at, part in enumerate(parts, 1)],
        get_field(body, "modelVersion", str),
        _google_usage(body),
        get_field(candidate, "finishReason", str),
    )


def _google_block(part: Any, call_id: str, message_id: str | None) -> AnyBlock:
    if not isinstance(part, dict):
        raise MalformedError("content.parts: expected objects")
    native = Native(provider="google", item=_LINE.to_json(part))
    kept = native if "thoughtSignature" in part else None
    match part:
        case {"functionCall": {"name": str(function)}}:
            call: JsonDict = part["functionCall"]
            return ToolCall(
                tool_call_id=get_field(call, "id", str) or call_id,
                name=function,
                arguments=_LINE.to_json(get_field(call, "args", dict) or {}),
                native=kept,
                message_id=message_id,
            )
        case {"text": str(text), "thought": True}:
            return Block.thinking(text, native=native, message_id=message_id)
        case {"text": str(text)}:
            return Block.assistant(text, native=kept, message_id=message_id)
        case {"inlineData": {"mimeType": str(mime), "data": str(data)}} if (
            found := _decode_any_base64(data)
        ) is not None:
            media = Media(type=media_kind_of(mime), mime=mime, data=found)
            fields: JsonDict = {"name": media.type, "media": media, "message_id": message_id}
            return Block(kind=BlockKind.ASSISTANT, native=kept, **fields)
        case _:
            what = next((name for name in part if name != "thoughtSignature"), "part")
            return Block.assistant("", name=what, native=native, message_id=message_id)


def _make_response(
    body: JsonDict,
    provider: str,
    pieces: Iterable[tuple[JsonDict, MessagePart]],
    usage: Usage | None,
    stop_reason: str | None,
) -> ProviderResponse:
    """Return the response of these items; unknown items and compactions are kept as they came."""
    id = require_field(body, "id", str)
    blocks: list[AnyBlock] = []
    for item, piece in pieces:
        match piece:
            case Block() | ToolCall() | ToolResult():
                blocks.append(piece.model_copy(update={"message_id": id}))
            case MalformedPart(reason=reason):
                raise MalformedError(reason)
            case UnknownPart(item=unknown):
                blocks.append(_native_block(unknown, provider, id))
            case ProviderCompaction():
                blocks.append(_native_block(item, provider, id))
    model = get_field(body, "model", str)
    return ProviderResponse(id, provider, blocks, model, usage, stop_reason)


def _native_block(item: JsonDict, provider: str, message_id: str) -> Block:
    native = Native(provider=provider, item=_LINE.to_json(item))
    name = str(item.get("type", "item"))
    return Block.assistant("", name=name, native=native, message_id=message_id)


def _single_choice(choices: list[Any], field: str) -> JsonDict:
    """Return the only choice of a response; empty if there is none, as for a blocked prompt."""
    if len(choices) > 1:
        raise MalformedError(
            f"{field}: a session takes one answer and here are {len(choices)}; keep one of them"
        )
    if choices and not isinstance(choices[0], dict):
        raise MalformedError(f"{field}: expected objects")
    return choices[0] if choices else {}


def _google_usage(body: JsonDict) -> Usage | None:
    usage = get_field(body, "usageMetadata", dict)
    if usage is None:
        return None
    prompt = get_field(usage, "promptTokenCount", int)
    used = get_field(usage, "toolUsePromptTokenCount", int)
    cached = get_field(usage, "cachedContentTokenCount", int)
    thought = get_field(usage, "thoughtsTokenCount", int)
    said = get_field(usage, "candidatesTokenCount", int)
    return Usage(
        input=None if prompt is None else max(0, prompt + (used or 0) - (cached or 0)),
        cache_read=cached,
        output=None if said is None and thought is None else (said or 0) + (thought or 0),
        reasoning=thought,
    )


def _make_image(data: Any) -> Media | None:
    found = _decode_any_base64(data) if isinstance(data, str) else None
    return Media(type="image", mime="image/png", data=found) if found else None


def _decode_any_base64(data: str) -> bytes | None:
    """Decode base64 in either alphabet, as google-genai uses the one for URLs."""
    return base64_to_bytes(data.replace("-", "+").replace("_", "/"))
