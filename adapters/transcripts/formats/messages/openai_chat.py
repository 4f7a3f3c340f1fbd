"""Defines OpenAI Chat Completions messages, also as other servers write them."""

from collections.abc import Iterator
from typing import Any

from .....domain.blocks import (
    Block,
    Kind,
    Native,
    NativePart,
    ResultPart,
    Text,
    ToolCall,
)
from ..fields import JsonDict, MalformedError, get_field, require_field, require_type
from ..json_lines import SourceLine
from ..placeholders import JsonPath, PlaceholderForm
from . import message_reader
from .dialect_detection import CHAT_MESSAGES
from .message_file_writer import make_message_format
from .message_reader import (
    Dialect,
    MalformedPart,
    MessagePart,
    ReadBlock,
    UnknownPart,
    hold,
    make_native_part,
    make_refusal_part,
    make_text_part,
    read_content_parts,
    read_result,
)

_THOUGHTS = ("reasoning_content", "reasoning")
"""Fields in which servers put a model's thoughts."""


def read_chat_parts(message: JsonDict, line: SourceLine, number: int) -> Iterator[MessagePart]:
    match require_field(message, "role", str):
        case "system" | "developer":
            yield from _read_content(message, line, Kind.DEVELOPER)
        case "user":
            yield from _read_content(message, line, Kind.USER)
        case "assistant":
            yield from _read_assistant(message, line, number)
        case "tool":
            yield _read_result(message, require_field(message, "tool_call_id", str), line)
        case "function":
            yield _read_result(message, _function_id(require_field(message, "name", str)), line)
        case unknown:
            yield UnknownPart(f"role/{unknown}", message)


def _read_assistant(message: JsonDict, line: SourceLine, number: int) -> Iterator[MessagePart]:
    for field in _THOUGHTS:
        if isinstance(thought := message.get(field), str) and thought:
            yield hold(Block.thinking(thought), (field,))
    yield from _read_content(message, line, Kind.ASSISTANT)
    if refusal := get_field(message, "refusal", str):
        yield hold(Block.assistant(refusal, name="refusal"), ("refusal",))
    if isinstance(audio := message.get("audio"), dict):
        spoken = _make_native(audio, line)
        yield hold(Block.assistant("", name="audio", native=spoken), ("audio",), "native")
    for index, item in enumerate(get_field(message, "tool_calls", list) or []):
        try:
            yield _read_call(item, index, number, line)
        except MalformedError as error:
            yield MalformedPart(f"tool_calls[{index}]: {error}", item)
    if function := get_field(message, "function_call", dict):
        at: JsonPath = ("function_call",)
        yield _make_call(_function_id(require_field(function, "name", str)), function, at, line)


def _read_call(item: Any, index: int, number: int, line: SourceLine) -> MessagePart:
    if not isinstance(item, dict):
        raise MalformedError("expected an object")
    id = get_field(item, "id", str) or f"call-{number}-{index}"
    at: JsonPath = ("tool_calls", index)
    if custom := get_field(item, "custom", dict):
        asked = line.to_json({"input": require_field(custom, "input", str)})
        call = ToolCall(tool_call_id=id, name=require_field(custom, "name", str), arguments=asked)
        return hold(call, (*at, "custom", "input"), "argument", "input")
    return _make_call(id, require_field(item, "function", dict), (*at, "function"), line)


def _make_call(id: str, function: JsonDict, at: JsonPath, line: SourceLine) -> ReadBlock:
    name, arguments = require_field(function, "name", str), function.get("arguments")
    form: PlaceholderForm = "text"
    if isinstance(arguments, dict):  # some servers send an object instead of its JSON text
        form, text = "json", line.to_json(arguments)
    else:
        text = require_field(function, "arguments", str)
    return hold(ToolCall(tool_call_id=id, name=name, arguments=text), (*at, "arguments"), form)


def _function_id(name: str) -> str:
    """Return an id for an older function call; the function's next message answers it."""
    return f"function-{name}"


def _read_result(message: JsonDict, id: str, line: SourceLine) -> MessagePart:
    if not id:
        raise MalformedError("tool_call_id: expected an id, but it is empty")
    return read_result(id, message, "content", lambda at, item: _read_result_part(at, item, line))


def _read_result_part(
    at: JsonPath, item: Any, line: SourceLine
) -> tuple[ResultPart, JsonPath, PlaceholderForm]:
    if require_type(item) == "text":
        return Text(text=require_field(item, "text", str)), (*at, "text"), "text"
    return NativePart(native=_make_native(item, line)), at, "native"


def _read_content(message: JsonDict, line: SourceLine, kind: Kind) -> Iterator[MessagePart]:
    yield from read_content_parts(
        message, "content", lambda at, item: _read_part(at, item, line, kind)
    )


def _read_part(at: JsonPath, item: Any, line: SourceLine, kind: Kind) -> MessagePart:
    match require_type(item):
        case "text":
            return make_text_part(at, item, kind)
        case "refusal":
            return make_refusal_part(at, item)
        case "image_url":
            return _read_image(at, require_field(item, "image_url", dict))
        case "input_audio" | "video_url":
            return make_native_part(at, item, _make_native(item, line))
        case "file":
            return _read_file(at, item, line)
        case unknown:
            return UnknownPart(f"content/{unknown}", item)


def _read_image(at: JsonPath, image: JsonDict) -> ReadBlock:
    media, form = message_reader.read_media_url(require_field(image, "url", str), "image")
    return hold(Block(kind=Kind.IMAGE, media=media), (*at, "image_url", "url"), form)


def _read_file(at: JsonPath, item: JsonDict, line: SourceLine) -> ReadBlock:
    file = require_field(item, "file", dict)
    data = get_field(file, "file_data", str)
    if data is None or not data.startswith("data:"):
        return make_native_part(at, item, _make_native(item, line))
    name = get_field(file, "filename", str)
    media, form = message_reader.read_media_url(data, "document", name)
    block = Block(kind=Kind.DOCUMENT, media=media, name=name)
    return hold(block, (*at, "file", "file_data"), form)


def _make_native(item: Any, line: SourceLine) -> Native:
    return Native(provider=CHAT_MESSAGES, item=line.to_json(item))


_SETTINGS = (
    *("audio", "frequency_penalty", "logit_bias", "logprobs", "max_completion_tokens"),
    *("max_tokens", "metadata", "modalities", "model", "n", "parallel_tool_calls"),
    *("prediction", "presence_penalty", "prompt_cache_key", "reasoning_effort"),
    *("response_format", "safety_identifier", "seed", "service_tier", "stop", "store"),
    *("stream", "stream_options", "temperature", "tool_choice", "top_logprobs", "top_p"),
    *("user", "verbosity", "web_search_options"),
)
CHAT_DIALECT = Dialect(CHAT_MESSAGES, ("messages",), read_chat_parts, _SETTINGS)

FORMAT = make_message_format(CHAT_DIALECT, "messages of OpenAI Chat Completions")
