"""Reads the content of events of older OpenHands versions."""

from dataclasses import dataclass
from typing import Any

from .....domain.blocks import BlockKind, ToolCall
from ..content import ContentPart, read_image_addresses
from ..entry_steps import EntrySteps
from ..fields import (
    JsonDict,
    drop_fields,
    find_text,
    get_field,
    require_field,
    require_object,
)
from ..swe_agent import add_thoughts

METADATA_FIELD = "tool_call_metadata"
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

    @property
    def message(self) -> JsonDict:
        match self.response:
            case {"choices": [{"message": dict(message)}, *_]}:
                return dict(message)
            case _:
                return {}


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


def read_v0_action(entry: EntrySteps, asked: ActionCall, *, first: bool) -> None:
    """Read a model's thoughts, text and tool call; `first` marks the first call of its answer."""
    args = require_field(entry.value, "args", dict)
    message, is_think = asked.message, entry.value.get("action") == "think"
    if first and message:
        add_thoughts(entry, message)
        for text in _read_texts(message.get("content")):
            entry.add_text(BlockKind.ASSISTANT, text)
    elif first and not is_think:
        entry.add_text(BlockKind.ASSISTANT, get_field(args, "thought", str, "args.") or "")
    arguments = _find_arguments(message, asked.call_id)
    if arguments is None:
        told = drop_fields(args, *_NON_ARGUMENTS)
        told |= {"thought": args.get("thought")} if is_think else {}
        arguments = entry.line.to_json(told)
    call = ToolCall(tool_call_id=asked.call_id, name=asked.tool, arguments=arguments)
    entry.blocks.append(call)


def read_command(entry: EntrySteps, event: JsonDict) -> None:
    """Read a user's command in the agent's workspace, which the model sees."""
    args = require_field(event, "args", dict)
    text = next((text for name in _COMMAND_FIELDS if (text := find_text(args, name))), "")
    entry.add_text(BlockKind.DEVELOPER, text, name=event["action"])


def read_v0_message(entry: EntrySteps, event: JsonDict) -> None:
    """Read a message of the user, of the model, or of the program."""
    args = require_field(event, "args", dict)
    kinds = {"user": BlockKind.USER, "agent": BlockKind.ASSISTANT}
    kind = kinds.get(str(event.get("source")), BlockKind.DEVELOPER)
    entry.add_text(kind, require_field(args, "content", str, "args."))
    entry.add_parts(kind, _read_images(args))


def read_answer(entry: EntrySteps, event: JsonDict, call: str) -> None:
    extras = get_field(event, "extras", dict) or {}
    parts: list[ContentPart] = [require_field(event, "content", str)]
    # The shell's output appears between these two.
    if prefix := find_text(extras, "metadata", "prefix"):
        parts.insert(0, prefix)
    if suffix := find_text(extras, "metadata", "suffix"):
        parts.append(suffix)
    parts += _read_images(extras)
    failed = event.get("observation") in {"error", "user_rejected"} or event.get("success") is False
    entry.add_tool_result(call, parts, is_error=failed)


def read_recall(entry: EntrySteps, event: JsonDict) -> None:
    """Read what was retrieved for the model: workspace facts, or knowledge triggered by a word."""
    extras = get_field(event, "extras", dict) or {}
    for field in _RECALLED_FIELDS:
        text = get_field(extras, field, str, "extras.") or ""
        entry.add_text(BlockKind.DEVELOPER, text, name=field)
    for item in get_field(extras, "microagent_knowledge", list) or []:
        known = require_object(item, "microagent_knowledge: ")
        text = require_field(known, "content", str, "extras.microagent_knowledge.")
        entry.add_text(BlockKind.DEVELOPER, text, name=find_text(known, "name"))


def _find_arguments(message: JsonDict, call: str) -> str | None:
    calls = message.get("tool_calls")
    for one in calls if isinstance(calls, list) else []:
        match one:
            case {"id": id, "function": {"arguments": str(arguments)}} if id == call:
                return arguments
    return None


def _read_texts(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    items = content if isinstance(content, list) else []
    return [find_text(item, "text") or "" for item in items if find_text(item, "type") == "text"]


def _read_images(owner: JsonDict) -> list[ContentPart]:
    return read_image_addresses(get_field(owner, "image_urls", list) or [], "image_urls")
