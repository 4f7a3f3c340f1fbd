"""Reads the content of OpenHands SDK events, piece by piece."""

from collections.abc import Callable
from typing import Any

from .....domain.blocks import Block, Kind, Native, ToolCall
from .....projections.rendering.summary_message import SummaryMessage
from ..content_items import read_content, read_image_addresses
from ..entry_steps import ContentPart, EntryBlocks, image_from_data, make_thinking_block
from ..fields import JsonDict, get_field, require_field, require_name, require_object
from ..json_lines import SourceLine
from ..placeholders import JsonPath, Placeholder
from ..summary_mark import find_marked_summary

_TEXT_FIELDS = ("output", "content", "message", "text", "error", "rejection_reason")
"""The text fields of an observation, in reading order."""


def _read_message(event: JsonDict, line: SourceLine) -> EntryBlocks:
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


def _read_action(event: JsonDict, line: SourceLine) -> EntryBlocks:
    pieces = EntryBlocks()
    _read_thoughts(event, line, (), pieces)
    pieces.add_parts(Kind.ASSISTANT, _read_parts(event.get("thought"), ("thought",)))
    owner = require_field(event, "tool_call", dict)
    at: JsonPath = ("tool_call",)
    if isinstance(owner.get("function"), dict):
        owner, at = owner["function"], ("tool_call", "function")
    call = ToolCall(
        tool_call_id=require_name(event, "tool_call_id"),
        name=require_field(event, "tool_name", str),
        arguments=require_field(owner, "arguments", str, "tool_call."),
    )
    pieces.add(call, (*at, "arguments"))
    return pieces


def _read_observation(event: JsonDict, _line: SourceLine) -> EntryBlocks:
    said = require_field(event, "observation", dict)
    about = said.get("metadata")
    metadata = about if isinstance(about, dict) else {}
    # The shell's output appears between these two.
    parts = _read_part(metadata, "prefix", ("observation", "metadata"))
    for field in _TEXT_FIELDS:
        parts += _read_part(said, field, ("observation",))
    parts += _read_part(metadata, "suffix", ("observation", "metadata"))
    data = said.get("screenshot_data")
    if isinstance(data, str) and data and (picture := image_from_data(data, "image/png")):
        parts.append((picture, ("observation", "screenshot_data")))
    parts += _read_part(event, "extended_content", ())
    return _make_result(event, parts, is_error=bool(said.get("error") or said.get("is_error")))


def _read_rejection(event: JsonDict, _line: SourceLine) -> EntryBlocks:
    """Read a user's or a hook's rejection of a tool call."""
    reason = get_field(event, "rejection_reason", str)
    return _make_result(event, [(reason, ("rejection_reason",))] if reason else [], is_error=True)


def _read_error(event: JsonDict, _line: SourceLine) -> EntryBlocks:
    """Read the error of a call that could not be made."""
    text = require_field(event, "error", str)
    return _make_result(event, [(text, ("error",))], is_error=True)


def _read_summary(event: JsonDict, _line: SourceLine) -> EntryBlocks:
    """Read a summary with nothing before it."""
    pieces = EntryBlocks()
    pieces.add_summary(require_field(event, "summary", str), ("summary",))
    return pieces


V1_CONTENT_READERS: dict[str, Callable[[JsonDict, SourceLine], EntryBlocks]] = {
    "MessageEvent": _read_message,
    "ActionEvent": _read_action,
    "ObservationEvent": _read_observation,
    "UserRejectObservation": _read_rejection,
    "AgentErrorEvent": _read_error,
    "CondensationSummaryEvent": _read_summary,
}


def find_exported_summary(event: JsonDict) -> SummaryMessage | None:
    """Return the event's summary, if cutbank wrote it."""
    match event:
        case {"llm_message": {"role": "user", "content": [{"type": "text", "text": str(text)}]}}:
            return find_marked_summary(event, text)
        case _:
            return None


def _make_result(event: JsonDict, parts: list[ContentPart], *, is_error: bool) -> EntryBlocks:
    pieces = EntryBlocks()
    pieces.add_tool_result(require_name(event, "tool_call_id"), parts, is_error=is_error)
    return pieces


def _read_thoughts(owner: JsonDict, line: SourceLine, at: JsonPath, pieces: EntryBlocks) -> None:
    signed = get_field(owner, "thinking_blocks", list) or []
    plain = get_field(owner, "reasoning_content", str) or ""
    if not any(isinstance(item, dict) and item.get("thinking") == plain for item in signed):
        pieces.add_text(Kind.THINKING, plain, (*at, "reasoning_content"))
    for index, item in enumerate(signed):
        thought = make_thinking_block(require_object(item, "thinking_blocks: "), line)
        pieces.add_native(thought, (*at, "thinking_blocks", index))
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


def _read_part(owner: JsonDict, field: str, at: JsonPath) -> list[ContentPart]:
    content = owner.get(field)
    return _read_parts(content, (*at, field)) if isinstance(content, str | list) else []


def _read_parts(content: Any, at: JsonPath) -> list[ContentPart]:
    return read_content(content, at, _read_images)


def _read_images(item: Any, at: JsonPath) -> list[ContentPart] | None:
    match item:
        case {"type": "image", "image_urls": list(addresses)}:
            return read_image_addresses(addresses, (*at, "image_urls"))
        case _:
            return None
