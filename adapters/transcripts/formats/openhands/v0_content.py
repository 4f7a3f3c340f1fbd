"""Reads the content of events of older OpenHands versions, piece by piece."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .....domain.blocks import Kind, ToolCall
from ..chat_content import add_thoughts
from ..content_items import read_image_addresses
from ..entry_steps import ContentPart, EntryBlocks
from ..fields import (
    JsonDict,
    drop_fields,
    find_text,
    get_field,
    require_field,
    require_object,
)
from ..json_lines import SourceLine
from ..placeholders import JsonPath

METADATA_FIELD = "tool_call_metadata"
RESPONSE_PATH: JsonPath = (METADATA_FIELD, "model_response")
_MESSAGE_PATH: JsonPath = (*RESPONSE_PATH, "choices", 0, "message")
_NON_ARGUMENTS = ("thought", "confirmation_state", "security_risk", "blocking", "hidden")
"""Arguments of an action that were not in the model's call."""
_COMMAND_FIELDS = ("command", "code", "path", "url", "content")
_RECALLED_FIELDS = (
    "repo_instructions",
    "additional_agent_instructions",
    "conversation_instructions",
)


@dataclass(frozen=True, slots=True)
class ActionCall:
    call_id: str
    tool: str
    response: JsonDict | None = None
    """The model's original answer, if recorded."""
    response_id: str | None = None

    def make_call(self, arguments: str) -> ToolCall:
        return ToolCall(tool_call_id=self.call_id, name=self.tool, arguments=arguments)


def find_action_call(event: JsonDict, name: str) -> ActionCall:
    """Return an action's call: the model's own, or for older agents one named after the event."""
    metadata = get_field(event, METADATA_FIELD, dict)
    if metadata is None:
        return ActionCall(f"event-{name}", require_field(event, "action", str))
    response = get_field(metadata, "model_response", dict, f"{METADATA_FIELD}.")
    id = get_field(response, "id", str) if response else None
    call = require_field(metadata, "tool_call_id", str, f"{METADATA_FIELD}.")
    tool = require_field(metadata, "function_name", str, f"{METADATA_FIELD}.")
    return ActionCall(call or f"event-{name}", tool, response, id or None)


def read_v0_action(
    event: JsonDict, asked: ActionCall, line: SourceLine, *, first: bool
) -> EntryBlocks:
    """Read a model's thoughts, text and tool call; `first` marks the first call of its answer."""
    pieces = EntryBlocks()
    args = require_field(event, "args", dict)
    message = _response_message(asked.response)
    if first and message is not None:
        add_thoughts(pieces, message, line, _MESSAGE_PATH)
        for text, at in _read_texts(message.get("content"), (*_MESSAGE_PATH, "content")):
            pieces.add_text(Kind.ASSISTANT, text, at)
    elif first and event.get("action") != "think":
        thought = get_field(args, "thought", str, "args.") or ""
        pieces.add_text(Kind.ASSISTANT, thought, ("args", "thought"))
    if found := _read_arguments(message, asked.call_id):
        arguments, index = found
        at = (*_MESSAGE_PATH, "tool_calls", index, "function", "arguments")
        pieces.add(asked.make_call(arguments), at if first else None)
    else:
        told = drop_fields(args, *_NON_ARGUMENTS)
        if event.get("action") == "think":
            told["thought"] = args.get("thought")
        pieces.add(asked.make_call(line.to_json(told)))
    return pieces


def read_command(event: JsonDict) -> EntryBlocks:
    """Read a user's command in the agent's workspace, which the model sees."""
    pieces = EntryBlocks()
    args = require_field(event, "args", dict)
    if field := next((name for name in _COMMAND_FIELDS if find_text(args, name)), None):
        pieces.add_text(Kind.DEVELOPER, args[field], ("args", field), name=event["action"])
    return pieces


def read_v0_message(event: JsonDict) -> EntryBlocks:
    """Read a message of the user, of the model, or of the program."""
    pieces = EntryBlocks()
    args = require_field(event, "args", dict)
    kinds = {"user": Kind.USER, "agent": Kind.ASSISTANT}
    kind = kinds.get(str(event.get("source")), Kind.DEVELOPER)
    pieces.add_text(kind, require_field(args, "content", str, "args."), ("args", "content"))
    pieces.add_parts(kind, _read_images(args, ("args",)))
    return pieces


def read_answer(event: JsonDict, call: str) -> EntryBlocks:
    pieces = EntryBlocks()
    extras = get_field(event, "extras", dict) or {}
    parts: list[ContentPart] = [(require_field(event, "content", str), ("content",))]
    # The shell's output appears between these two.
    if prefix := find_text(extras, "metadata", "prefix"):
        parts.insert(0, (prefix, ("extras", "metadata", "prefix")))
    if suffix := find_text(extras, "metadata", "suffix"):
        parts.append((suffix, ("extras", "metadata", "suffix")))
    parts += _read_images(extras, ("extras",))
    failed = event.get("observation") in {"error", "user_rejected"} or event.get("success") is False
    pieces.add_tool_result(call, parts, is_error=failed)
    return pieces


def read_recall(event: JsonDict) -> EntryBlocks:
    """Read what was retrieved for the model: workspace facts, or knowledge triggered by a word."""
    pieces = EntryBlocks()
    extras = get_field(event, "extras", dict) or {}
    for field in _RECALLED_FIELDS:
        text = get_field(extras, field, str, "extras.") or ""
        pieces.add_text(Kind.DEVELOPER, text, ("extras", field), name=field)
    for index, item in enumerate(get_field(extras, "microagent_knowledge", list) or []):
        at = ("extras", "microagent_knowledge", index, "content")
        known = require_object(item, "microagent_knowledge: ")
        text = require_field(known, "content", str, "extras.microagent_knowledge.")
        pieces.add_text(Kind.DEVELOPER, text, at, name=find_text(known, "name"))
    return pieces


def read_notice(event: JsonDict) -> EntryBlocks:
    pieces = EntryBlocks()
    name = require_field(event, "observation", str)
    pieces.add_text(Kind.DEVELOPER, require_field(event, "content", str), ("content",), name=name)
    return pieces


def _response_message(response: JsonDict | None) -> JsonDict | None:
    match response:
        case {"choices": [{"message": dict(message)}, *_]}:
            return dict(message)
        case _:
            return None


def _read_arguments(message: JsonDict | None, call: str) -> tuple[str, int] | None:
    calls = message.get("tool_calls") if message else None
    for index, one in enumerate(calls if isinstance(calls, list) else []):
        match one:
            case {"id": id, "function": {"arguments": str(arguments)}} if id == call:
                return arguments, index
    return None


def _read_texts(content: Any, at: JsonPath) -> Iterator[tuple[str, JsonPath]]:
    """Yield the texts; other items stay in the entry."""
    if isinstance(content, str):
        yield content, at
    for index, item in enumerate(content if isinstance(content, list) else []):
        match item:
            case {"type": "text", "text": str(text)}:
                yield text, (*at, index, "text")


def _read_images(owner: JsonDict, at: JsonPath) -> list[ContentPart]:
    addresses = get_field(owner, "image_urls", list) or []
    return read_image_addresses(addresses, (*at, "image_urls"))
