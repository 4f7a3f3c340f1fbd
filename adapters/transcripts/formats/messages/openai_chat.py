"""Defines OpenAI Chat Completions messages, as servers and the runs of tau-bench write them."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from .....domain.blocks import (
    Block,
    BlockKind,
    Native,
    NativePart,
    ResultPart,
    Text,
    ToolCall,
)
from ..content import media_from_address
from ..entry_steps import refuse_line
from ..fields import JsonDict, MalformedError, get_field, require_field, require_type
from ..format import Format
from ..json_lines import SourceLine
from ..source import TranscriptSource
from ..steps import ImportStep, SessionStart
from .message_file_reader import CHAT_MESSAGES, TAU_MESSAGES, SessionKeys, detect_value_dialect
from .message_file_writer import make_message_format
from .message_reader import (
    Dialect,
    MalformedPart,
    MessagePart,
    MessageReader,
    UnknownPart,
    make_native_block,
    make_refusal,
    make_text_block,
    read_content_parts,
    read_result,
)

_THOUGHTS = ("reasoning_content", "reasoning")
"""Fields in which servers put a model's thoughts."""


def read_chat_parts(message: JsonDict, line: SourceLine, number: int) -> Iterator[MessagePart]:
    match require_field(message, "role", str):
        case "system" | "developer":
            yield from _read_content(message, line, BlockKind.DEVELOPER)
        case "user":
            yield from _read_content(message, line, BlockKind.USER)
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
            yield Block.thinking(thought)
    yield from _read_content(message, line, BlockKind.ASSISTANT)
    if refusal := get_field(message, "refusal", str):
        yield Block.assistant(refusal, name="refusal")
    if isinstance(audio := message.get("audio"), dict):
        yield Block.assistant("", name="audio", native=_make_native(audio, line))
    for index, item in enumerate(get_field(message, "tool_calls", list) or []):
        try:
            yield _read_call(item, index, number, line)
        except MalformedError as error:
            yield MalformedPart(f"tool_calls[{index}]: {error}")
    if function := get_field(message, "function_call", dict):
        yield _make_call(_function_id(require_field(function, "name", str)), function, line)


def _read_call(item: Any, index: int, number: int, line: SourceLine) -> MessagePart:
    if not isinstance(item, dict):
        raise MalformedError("expected an object")
    id = get_field(item, "id", str) or f"call-{number}-{index}"
    if custom := get_field(item, "custom", dict):
        asked = line.to_json({"input": require_field(custom, "input", str)})
        return ToolCall(tool_call_id=id, name=require_field(custom, "name", str), arguments=asked)
    return _make_call(id, require_field(item, "function", dict), line)


def _make_call(id: str, function: JsonDict, line: SourceLine) -> ToolCall:
    name, arguments = require_field(function, "name", str), function.get("arguments")
    if isinstance(arguments, dict):  # some servers send an object instead of its JSON text
        text = line.to_json(arguments)
    else:
        text = require_field(function, "arguments", str)
    return ToolCall(tool_call_id=id, name=name, arguments=text)


def _function_id(name: str) -> str:
    """Return an id for an older function call; the function's next message answers it."""
    return f"function-{name}"


def _read_result(message: JsonDict, id: str, line: SourceLine) -> MessagePart:
    if not id:
        raise MalformedError("tool_call_id: expected an id, but it is empty")
    return read_result(id, message, "content", lambda item: _read_result_part(item, line))


def _read_result_part(item: Any, line: SourceLine) -> ResultPart:
    if require_type(item) == "text":
        return Text(text=require_field(item, "text", str))
    return NativePart(native=_make_native(item, line))


def _read_content(message: JsonDict, line: SourceLine, kind: BlockKind) -> Iterator[MessagePart]:
    yield from read_content_parts(message, "content", lambda item: _read_part(item, line, kind))


def _read_part(item: Any, line: SourceLine, kind: BlockKind) -> MessagePart:
    match require_type(item):
        case "text":
            return make_text_block(item, kind)
        case "refusal":
            return make_refusal(item)
        case "image_url":
            address = require_field(require_field(item, "image_url", dict), "url", str)
            return Block(kind=BlockKind.IMAGE, media=media_from_address(address))
        case "input_audio" | "video_url":
            return make_native_block(item, _make_native(item, line))
        case "file":
            return _read_file(item, line)
        case unknown:
            return UnknownPart(f"content/{unknown}", item)


def _read_file(item: JsonDict, line: SourceLine) -> Block:
    file = require_field(item, "file", dict)
    data = get_field(file, "file_data", str)
    if data is None or not data.startswith("data:"):
        return make_native_block(item, _make_native(item, line))
    name = get_field(file, "filename", str)
    return Block(
        kind=BlockKind.DOCUMENT, media=media_from_address(data, "document", name), name=name
    )


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


def _is_tau(source: TranscriptSource) -> bool:
    """Return whether it is an array of records of tau-bench, each with chat messages."""
    first = source.first_values
    if len(first) > 1 or (first and not isinstance(first[0], list)):
        return False
    match source.document:
        case SourceLine(problem=None, value=[{"traj": list(messages)}, *_]) if messages:
            return detect_value_dialect(messages) == CHAT_MESSAGES
        case _:
            return False


def _read_tau(source: TranscriptSource) -> Iterator[ImportStep]:
    document = source.document or SourceLine(1, source.size, problem="no JSON document")
    if document.problem:
        yield from refuse_line(document, document.problem)
        return
    keys = SessionKeys(source.stem)
    for index, record in enumerate(document.value, 1):
        end = document.end * index // len(document.value)
        line = replace(document, number=index, end=end, raw=b"", value=record)
        if isinstance(record, dict) and isinstance(messages := record.get("traj"), list):
            yield SessionStart(keys.make_distinct(_make_tau_key(keys.stem, record)))
            yield from MessageReader(CHAT_DIALECT, TAU_MESSAGES, line, True).read_all(messages)
        else:
            yield from refuse_line(line, "expected a record with a list `traj`")


def _make_tau_key(stem: str, record: JsonDict) -> str:
    named = [record.get(name) for name in ("task_id", "trial")]
    mark = "".join(f"-{name}" for name in named if isinstance(name, int | str))
    return stem if mark and stem.endswith(mark) else f"{stem}{mark}"


TAU_FORMAT = Format(TAU_MESSAGES, "runs of tau-bench", _is_tau, _read_tau, suffix=".json")
