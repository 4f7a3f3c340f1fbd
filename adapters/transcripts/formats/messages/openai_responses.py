"""Defines OpenAI Responses items: messages, reasoning, calls and outputs."""

from collections.abc import Iterator
from typing import Any

from .....domain.blocks import (
    Block,
    Kind,
    Media,
    Native,
    NativePart,
    ResultPart,
    Text,
    ToolCall,
    ToolResult,
)
from ..claude_code.entries import classify_user_text
from ..fields import JsonDict, MalformedError, get_field, require_field, require_type
from ..format import Format
from ..json_lines import SourceLine
from ..media_text import MediaKind
from ..placeholders import JsonPath, Placeholder, PlaceholderForm
from . import message_reader
from .dialect_detection import RESPONSES_ITEMS, make_recognizer
from .message_file_reader import make_message_reader
from .message_file_writer import make_message_writer
from .message_reader import (
    Dialect,
    MalformedPart,
    MessagePart,
    ProviderCompaction,
    ReadBlock,
    RequestFields,
    UnknownPart,
    read_texts,
    text_path,
)

_CALL_FIELDS = {
    "local_shell_call": "action",
    "shell_call": "action",
    "apply_patch_call": "operation",
    "computer_call": "action",
}
"""Calls of the provider's own tools that the client runs, and the field with the action."""
_WHOLE_ITEM: JsonPath = ()


def read_response_parts(message: JsonDict, line: SourceLine, number: int) -> Iterator[MessagePart]:
    match message.get("type", "message"):
        case "message":
            yield from _read_message(message, line)
        case "function_call":
            yield _read_call(message, number)
        case "custom_tool_call":
            yield _read_custom_call(message, line, number)
        case str(kind) if kind in _CALL_FIELDS:
            yield _read_server_call(message, kind, line, number)
        case str(kind) if kind.endswith("_call_output"):
            yield _read_result(message, line)
        case "reasoning":
            yield _read_reasoning(message, line)
        case "compaction" | "compaction_summary" | "context_compaction":
            yield ProviderCompaction(None, "the summary is encrypted")
        case str(kind) if kind.endswith("_call") or kind.startswith("mcp_"):
            # The provider ran the tool itself: call and result are one item.
            ran = Block.assistant("", name=kind, native=_make_native(message, line))
            yield ReadBlock(ran, (Placeholder(_WHOLE_ITEM, "native"),))
        case unknown:
            yield UnknownPart(str(unknown), message)


def _read_message(message: JsonDict, line: SourceLine) -> Iterator[MessagePart]:
    role = require_field(message, "role", str)
    kinds = {"user": Kind.USER, "assistant": Kind.ASSISTANT}
    if role not in {"user", "assistant", "system", "developer"}:
        yield UnknownPart(f"role/{role}", message)
        return
    for at, item in read_texts(message, "content"):
        try:
            yield _read_part(at, item, line, kinds.get(role, Kind.DEVELOPER))
        except MalformedError as error:
            place = f"[{at[-1]}]" if isinstance(at[-1], int) else ""
            yield MalformedPart(f"content{place}: {error}", item)


def _read_part(at: JsonPath, item: Any, line: SourceLine, kind: Kind) -> MessagePart:
    match require_type(item):
        case "input_text" | "output_text" | "text":
            words = require_field(item, "text", str)
            of = classify_user_text({}, words) if kind is Kind.USER else kind
            return ReadBlock(Block(kind=of, text=words), (Placeholder(text_path(at), "text"),))
        case "refusal":
            refusal = Block.assistant(require_field(item, "refusal", str), name="refusal")
            return ReadBlock(refusal, (Placeholder((*at, "refusal"), "text"),))
        case "input_image" | "input_file" as what:
            if found := _read_media(item):
                media, field, form = found
                holes = (Placeholder((*at, field), form),) if form else ()
                of = Kind.IMAGE if what == "input_image" else Kind.DOCUMENT
                return ReadBlock(Block(kind=of, media=media, name=media.name), holes)
            return _keep_native(at, item, line)
        case "input_audio" | "computer_screenshot":
            return _keep_native(at, item, line)
        case unknown:
            return UnknownPart(f"content/{unknown}", item)


def _read_media(item: JsonDict) -> tuple[Media, str, PlaceholderForm | None] | None:
    """Return the media; None for an uploaded file, whose bytes only the provider has."""
    name = get_field(item, "filename", str)
    for field in ("image_url", "file_data", "file_url"):
        if address := get_field(item, field, str):
            if field == "file_data" and not address.startswith("data:"):
                return None
            what: MediaKind = "image" if field == "image_url" else "document"
            media, form = message_reader.read_media_url(address, what, name)
            return media, field, form
    return None


def _keep_native(at: JsonPath, item: JsonDict, line: SourceLine) -> ReadBlock:
    name = require_field(item, "type", str)
    block = Block(kind=Kind.DOCUMENT, name=name, native=_make_native(item, line))
    return ReadBlock(block, (Placeholder(at, "native"),))


def _read_call(message: JsonDict, number: int) -> ReadBlock:
    call = ToolCall(
        tool_call_id=get_field(message, "call_id", str) or f"call-{number}",
        name=require_field(message, "name", str),
        arguments=require_field(message, "arguments", str),
    )
    return ReadBlock(call, (Placeholder(("arguments",), "text"),))


def _read_custom_call(message: JsonDict, line: SourceLine, number: int) -> ReadBlock:
    """Read a call with one text argument, which need not be JSON."""
    call = ToolCall(
        tool_call_id=get_field(message, "call_id", str) or f"call-{number}",
        name=require_field(message, "name", str),
        arguments=line.to_json({"input": require_field(message, "input", str)}),
        native=_make_native(message, line),
    )
    return ReadBlock(call, (Placeholder(_WHOLE_ITEM, "native"),))


def _read_server_call(message: JsonDict, kind: str, line: SourceLine, number: int) -> ReadBlock:
    asked = message.get(_CALL_FIELDS[kind], message.get("actions"))
    call = ToolCall(
        tool_call_id=get_field(message, "call_id", str) or f"call-{number}",
        name=kind.removesuffix("_call"),
        arguments=line.to_json(asked if isinstance(asked, dict) else {"actions": asked}),
        native=_make_native(message, line),
    )
    return ReadBlock(call, (Placeholder(_WHOLE_ITEM, "native"),))


def _read_result(message: JsonDict, line: SourceLine) -> ReadBlock:
    id = require_field(message, "call_id", str)
    if not id:
        raise MalformedError("call_id: expected an id, but it is empty")
    output = message.get("output")
    if isinstance(output, str):
        holes = (Placeholder(("output",), "text"),) if output else ()
        return ReadBlock(ToolResult(tool_call_id=id, content=output), holes)
    if not isinstance(output, list):
        result = ToolResult(tool_call_id=id, content="", native=_make_native(message, line))
        return ReadBlock(result, (Placeholder(_WHOLE_ITEM, "native"),))
    parts: list[ResultPart] = []
    filled: list[Placeholder] = []
    for at, item in read_texts(message, "output"):
        part, hole = _read_output_part(at, item, len(parts), line)
        parts.append(part)
        filled += [hole] if hole else []
    return ReadBlock(ToolResult(tool_call_id=id, content=tuple(parts)), tuple(filled))


def _read_output_part(
    at: JsonPath, item: Any, index: int, line: SourceLine
) -> tuple[ResultPart, Placeholder | None]:
    match require_type(item):
        case "input_text" | "output_text" | "text":
            return Text(text=require_field(item, "text", str)), Placeholder(
                (*at, "text"), "text", index
            )
        case "input_image" | "input_file" if found := _read_media(item):
            media, field, form = found
            return media, Placeholder((*at, field), form, index) if form else None
        case _:
            return NativePart(native=_make_native(item, line)), Placeholder(at, "native", index)


def _read_reasoning(message: JsonDict, line: SourceLine) -> ReadBlock:
    said = [
        item["text"]
        for field in ("summary", "content")
        for item in get_field(message, field, list) or []
        if isinstance(item, dict) and isinstance(item.get("text"), str)
    ]
    thought = Block.thinking("\n\n".join(said), native=_make_native(message, line))
    return ReadBlock(thought, (Placeholder(_WHOLE_ITEM, "native"),))


def _make_native(item: Any, line: SourceLine) -> Native:
    return Native(provider=RESPONSES_ITEMS, item=line.to_json(item))


RESPONSES_REQUEST_FIELDS = RequestFields(
    system_field="instructions",
    settings=frozenset(
        (
            *("background", "context_management", "include", "max_output_tokens", "metadata"),
            *("max_tool_calls", "model", "parallel_tool_calls", "prompt", "prompt_cache_key"),
            *("reasoning", "safety_identifier", "service_tier", "store", "stream"),
            *("temperature", "text", "tool_choice", "top_logprobs", "top_p", "truncation", "user"),
        )
    ),
)
RESPONSES_DIALECT = Dialect(
    RESPONSES_ITEMS,
    ("input", "output"),
    read_response_parts,
    RESPONSES_REQUEST_FIELDS,
    is_of_items=True,
)

FORMAT = Format(
    name=RESPONSES_ITEMS,
    description="items of OpenAI Responses",
    recognizes=make_recognizer(RESPONSES_ITEMS),
    read=make_message_reader(RESPONSES_DIALECT),
    write=make_message_writer(RESPONSES_DIALECT),
    suffix=".json",
)
