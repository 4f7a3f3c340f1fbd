"""Defines OpenAI Responses items: messages, reasoning, calls and outputs."""

from collections.abc import Iterator
from typing import Any

from .....domain.blocks import (
    Block,
    BlockKind,
    Media,
    Native,
    NativePart,
    ResultPart,
    Text,
    ToolCall,
    ToolResult,
)
from ..content import media_from_address
from ..fields import JsonDict, MalformedError, get_field, require_field, require_type
from ..json_lines import SourceLine
from .message_file_reader import RESPONSES_ITEMS
from .message_file_writer import make_message_format
from .message_reader import (
    Dialect,
    MessagePart,
    ProviderCompaction,
    UnknownPart,
    make_native_block,
    make_refusal,
    make_text_block,
    read_content_parts,
    read_result,
)

_CALL_FIELDS = {
    "local_shell_call": "action",
    "shell_call": "action",
    "apply_patch_call": "operation",
    "computer_call": "action",
}
"""Calls of the provider's own tools that the client runs, and the field with the action."""


def read_response_parts(message: JsonDict, line: SourceLine, number: int) -> Iterator[MessagePart]:
    match message.get("type", "message"):
        case "message":
            yield from _read_message(message, line)
        case "function_call":
            yield ToolCall(
                tool_call_id=get_field(message, "call_id", str) or f"call-{number}",
                name=require_field(message, "name", str),
                arguments=require_field(message, "arguments", str),
            )
        case str(kind) if kind == "custom_tool_call" or kind in _CALL_FIELDS:
            yield _read_other_call(message, kind, line, number)
        case str(kind) if kind.endswith("_call_output"):
            yield _read_result(message, line)
        case "reasoning":
            yield _read_reasoning(message, line)
        case "compaction" | "compaction_summary" | "context_compaction":
            yield ProviderCompaction(None, "the summary is encrypted")
        case str(kind) if kind.endswith("_call") or kind.startswith("mcp_"):
            # The provider ran the tool itself: call and result are one item.
            yield Block.assistant("", name=kind, native=_make_native(message, line))
        case unknown:
            yield UnknownPart(str(unknown), message)


def _read_message(message: JsonDict, line: SourceLine) -> Iterator[MessagePart]:
    role = require_field(message, "role", str)
    kinds = {"user": BlockKind.USER, "assistant": BlockKind.ASSISTANT}
    if role not in {"user", "assistant", "system", "developer"}:
        yield UnknownPart(f"role/{role}", message)
        return
    kind = kinds.get(role, BlockKind.DEVELOPER)
    yield from read_content_parts(message, "content", lambda item: _read_part(item, line, kind))


def _read_part(item: Any, line: SourceLine, kind: BlockKind) -> MessagePart:
    match require_type(item):
        case "input_text" | "output_text" | "text":
            return make_text_block(item, kind)
        case "refusal":
            return make_refusal(item)
        case "input_image" | "input_file" as what:
            if media := _read_media(item):
                of = BlockKind.IMAGE if what == "input_image" else BlockKind.DOCUMENT
                return Block(kind=of, media=media, name=media.name)
            return make_native_block(item, _make_native(item, line))
        case "input_audio" | "computer_screenshot":
            return make_native_block(item, _make_native(item, line))
        case unknown:
            return UnknownPart(f"content/{unknown}", item)


def _read_media(item: JsonDict) -> Media | None:
    """Return the media; None for an uploaded file, whose bytes only the provider has."""
    name = get_field(item, "filename", str)
    for field in ("image_url", "file_data", "file_url"):
        if address := get_field(item, field, str):
            if field == "file_data" and not address.startswith("data:"):
                return None
            return media_from_address(
                address, "image" if field == "image_url" else "document", name
            )
    return None


def _read_other_call(message: JsonDict, kind: str, line: SourceLine, number: int) -> ToolCall:
    """Read a call with one text argument, which need not be JSON, or of the provider's tool."""
    id = get_field(message, "call_id", str) or f"call-{number}"
    if kind == "custom_tool_call":
        name = require_field(message, "name", str)
        asked: Any = {"input": require_field(message, "input", str)}
    else:
        name, asked = kind.removesuffix("_call"), message.get(_CALL_FIELDS[kind])
        if _CALL_FIELDS[kind] not in message:
            asked = message.get("actions")
    arguments = line.to_json(asked if isinstance(asked, dict) else {"actions": asked})
    native = _make_native(message, line)
    return ToolCall(tool_call_id=id, name=name, arguments=arguments, native=native)


def _read_result(message: JsonDict, line: SourceLine) -> ToolResult:
    id = require_field(message, "call_id", str)
    if not id:
        raise MalformedError("call_id: expected an id, but it is empty")
    output = message.get("output")
    if isinstance(output, dict) and isinstance(text := output.get("content"), str):
        # Older versions of Codex: text, and whether the call succeeded.
        return ToolResult(tool_call_id=id, content=text, is_error=output.get("success") is False)
    if not isinstance(output, str | list):
        return ToolResult(tool_call_id=id, content="", native=_make_native(message, line))
    return read_result(id, message, "output", lambda item: _read_output_part(item, line))


def _read_output_part(item: Any, line: SourceLine) -> ResultPart:
    match require_type(item):
        case "input_text" | "output_text" | "text":
            return Text(text=require_field(item, "text", str))
        case "input_image" | "input_file" if media := _read_media(item):
            return media
        case _:
            return NativePart(native=_make_native(item, line))


def _read_reasoning(message: JsonDict, line: SourceLine) -> Block:
    said = [
        item["text"]
        for field in ("summary", "content")
        for item in get_field(message, field, list) or []
        if isinstance(item, dict) and isinstance(item.get("text"), str)
    ]
    return Block.thinking("\n\n".join(said), native=_make_native(message, line))


def _make_native(item: Any, line: SourceLine) -> Native:
    return Native(provider=RESPONSES_ITEMS, item=line.to_json(item))


_SETTINGS = (
    *("background", "context_management", "include", "max_output_tokens", "metadata"),
    *("max_tool_calls", "model", "parallel_tool_calls", "prompt", "prompt_cache_key"),
    *("reasoning", "safety_identifier", "service_tier", "store", "stream"),
    *("temperature", "text", "tool_choice", "top_logprobs", "top_p", "truncation", "user"),
)
RESPONSES_DIALECT = Dialect(
    RESPONSES_ITEMS,
    ("input", "output"),
    read_response_parts,
    _SETTINGS,
    system_field="instructions",
    is_of_items=True,
)

FORMAT = make_message_format(RESPONSES_DIALECT, "items of OpenAI Responses")
