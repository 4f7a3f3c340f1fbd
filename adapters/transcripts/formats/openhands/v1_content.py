"""Reads the content of OpenHands SDK events, piece by piece."""

from typing import Any

from .....domain.blocks import Block, Kind, Native, ToolCall
from .....projections.rendering.summary_message import SummaryMessage
from ..entry_steps import (
    ContentPart,
    EntryBlocks,
    image_from_address,
    image_from_data,
    make_thinking_block,
)
from ..fields import JsonDict, MalformedError, get_field, json_name, require_field, require_name
from ..json_lines import SourceLine
from ..placeholders import JsonPath, Placeholder
from ..summary_mark import find_marked_summary

_TEXT_FIELDS = ("output", "content", "message", "text", "error", "rejection_reason")
"""The text fields of an observation, in reading order."""


def read_v1_message(event: JsonDict, line: SourceLine) -> EntryBlocks:
    """Read a message of the user, of the model, or of the program."""
    said = require_field(event, "llm_message", dict)
    role = require_field(said, "role", str, "llm_message.")
    pieces = EntryBlocks()
    if role == "assistant":
        _read_thoughts(said, line, ("llm_message",), pieces)
        kind = Kind.ASSISTANT
    elif role == "user" and event.get("source") == "user":
        kind = Kind.USER
    else:
        kind = Kind.DEVELOPER  # the program's own text, in any role
    pieces.add_parts(kind, _read_parts(said.get("content"), ("llm_message", "content")))
    more = event.get("extended_content")
    pieces.add_parts(Kind.DEVELOPER, _read_parts(more, ("extended_content",)))
    return pieces


def read_v1_action(event: JsonDict, line: SourceLine) -> EntryBlocks:
    pieces = EntryBlocks()
    _read_thoughts(event, line, (), pieces)
    pieces.add_parts(Kind.ASSISTANT, _read_parts(event.get("thought"), ("thought",)))
    call = require_field(event, "tool_call", dict)
    function, at = call, ("tool_call", "arguments")
    if isinstance(call.get("function"), dict):
        function, at = call["function"], ("tool_call", "function", "arguments")  # type: ignore[assignment]
    made = ToolCall(
        tool_call_id=require_name(event, "tool_call_id"),
        name=require_field(event, "tool_name", str),
        arguments=require_field(function, "arguments", str, "tool_call."),
    )
    pieces.add(made, at)
    return pieces


def read_observation(event: JsonDict, line: SourceLine) -> EntryBlocks:
    del line
    said = require_field(event, "observation", dict)
    pieces = EntryBlocks()
    parts: list[ContentPart] = []
    about = said.get("metadata")
    metadata = about if isinstance(about, dict) else {}
    # The shell's output appears between these two.
    _read_part(metadata, "prefix", ("observation", "metadata"), parts)
    for field in _TEXT_FIELDS:
        _read_part(said, field, ("observation",), parts)
    _read_part(metadata, "suffix", ("observation", "metadata"), parts)
    _read_screenshot(said, parts)
    _read_part(event, "extended_content", (), parts)
    failed = said.get("error") or said.get("is_error")
    pieces.add_tool_result(require_name(event, "tool_call_id"), parts, is_error=bool(failed))
    return pieces


def read_rejection(event: JsonDict, line: SourceLine) -> EntryBlocks:
    """Read a user's or a hook's rejection of a tool call."""
    del line
    pieces = EntryBlocks()
    reason = get_field(event, "rejection_reason", str) or ""
    parts: list[ContentPart] = [(reason, ("rejection_reason",))] if reason else []
    pieces.add_tool_result(require_name(event, "tool_call_id"), parts, is_error=True)
    return pieces


def read_error(event: JsonDict, line: SourceLine) -> EntryBlocks:
    """Read the error of a call that could not be made."""
    del line
    pieces = EntryBlocks()
    text = require_field(event, "error", str)
    pieces.add_tool_result(require_name(event, "tool_call_id"), [(text, ("error",))], is_error=True)
    return pieces


def read_summary_event(event: JsonDict, line: SourceLine) -> EntryBlocks:
    """Read a summary with nothing before it."""
    del line
    pieces = EntryBlocks()
    pieces.add_summary(require_field(event, "summary", str), ("summary",))
    return pieces


def find_exported_summary(event: JsonDict) -> SummaryMessage | None:
    """Return the event's summary, if cutbank wrote it."""
    match event:
        case {"llm_message": {"role": "user", "content": [{"type": "text", "text": str(text)}]}}:
            return find_marked_summary(event, text)
        case _:
            return None


def _read_thoughts(owner: JsonDict, line: SourceLine, at: JsonPath, pieces: EntryBlocks) -> None:
    signed = get_field(owner, "thinking_blocks", list) or []
    plain = get_field(owner, "reasoning_content", str) or ""
    if not any(isinstance(item, dict) and item.get("thinking") == plain for item in signed):
        pieces.add_text(Kind.THINKING, plain, (*at, "reasoning_content"))
    for index, item in enumerate(signed):
        if not isinstance(item, dict):
            raise MalformedError(f"thinking_blocks: expected an object, got {json_name(item)}")
        pieces.add_native(make_thinking_block(item, line), (*at, "thinking_blocks", index))
    if item := get_field(owner, "responses_reasoning_item", dict):
        secret = (*at, "responses_reasoning_item", "encrypted_content")
        if item.get("encrypted_content"):
            hole = Placeholder(secret, "native", "encrypted_content", len(pieces.blocks))
            pieces.placeholders.append(hole)
        pieces.add(_read_reasoning(item, line))


def _read_reasoning(item: JsonDict, line: SourceLine) -> Block:
    told = get_field(item, "summary", list, "responses_reasoning_item.") or []
    summary = [text for text in told if isinstance(text, str)]
    wire = {
        "type": "reasoning",
        "id": item.get("id"),
        "summary": [{"type": "summary_text", "text": text} for text in summary],
        "encrypted_content": item.get("encrypted_content"),
    }
    native = Native(provider="openai-responses", item=line.to_json(wire))
    return Block.thinking("\n\n".join(summary), native=native)


def _read_part(owner: JsonDict, field: str, at: JsonPath, parts: list[ContentPart]) -> None:
    if isinstance(owner.get(field), str | list):
        parts += _read_parts(owner[field], (*at, field))


def _read_parts(content: Any, at: JsonPath) -> list[ContentPart]:
    """Return texts, and images with their URLs, each with its path."""
    if content is None or content == "":
        return []
    if isinstance(content, str):
        return [(content, at)]
    if not isinstance(content, list):
        raise MalformedError(f"{at[-1]}: expected a list, got {json_name(content)}")
    found: list[ContentPart] = []
    for index, item in enumerate(content):
        match item:
            case {"type": "text", "text": str(text)}:
                if text:
                    found.append((text, (*at, index, "text")))
            case {"type": "image", "image_urls": list(addresses)}:
                for number, address in enumerate(addresses):
                    if not isinstance(address, str):
                        got = json_name(address)
                        raise MalformedError(f"image_urls: expected an address, got {got}")
                    place = (*at, index, "image_urls", number)
                    found.append((image_from_address(address) or address, place))
            case _:
                raise MalformedError(f"{at[-1]}: expected texts and images")
    return found


def _read_screenshot(said: JsonDict, parts: list[ContentPart]) -> None:
    data = said.get("screenshot_data")
    if isinstance(data, str) and data and (picture := image_from_data(data, "image/png")):
        parts.append((picture, ("observation", "screenshot_data")))
