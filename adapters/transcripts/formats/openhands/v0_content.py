"""What the events of OpenHands before its SDK say, piece by piece."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .....domain.blocks import Kind, ToolCall
from ..content.holes import At
from ..json_lines import Line
from ..reading.fields import MalformedError, json_name, take, take_optional
from ..reading.pieces import Picture, Pieces, picture_of, thinking_block

METADATA = "tool_call_metadata"
RESPONSE: At = (METADATA, "model_response")
MESSAGE: At = (*RESPONSE, "choices", 0, "message")
_NOT_ASKED = frozenset({"thought", "confirmation_state", "security_risk", "blocking", "hidden"})
"""Arguments of an action that are no part of what the model asked."""


@dataclass(frozen=True, slots=True)
class Asking:
    """An action as the call of a tool that it is."""

    call: str
    tool: str
    response: dict[str, Any] | None
    """The model's own answer, where it is told."""
    response_id: str | None


def asking(event: dict[str, Any], name: str) -> Asking:
    """Which call an action is: the model's own, or for older agents one named after the event."""
    metadata = take_optional(event, METADATA, dict)
    if metadata is None:
        return Asking(f"event-{name}", take(event, "action", str), None, None)
    response = take_optional(metadata, "model_response", dict, f"{METADATA}.")
    id = take_optional(response, "id", str) if response else None
    call = take(metadata, "tool_call_id", str, f"{METADATA}.")
    tool = take(metadata, "function_name", str, f"{METADATA}.")
    return Asking(call or f"event-{name}", tool, response, id or None)


def action(event: dict[str, Any], asked: Asking, line: Line, *, first: bool) -> Pieces:
    """What the model thought, said and asked of a tool; `first` of the calls of its answer."""
    pieces = Pieces()
    args = take(event, "args", dict)
    message = _message(asked.response)
    if first and message is not None:
        _thoughts(message, line, pieces)
        for text, at in _texts(message.get("content"), (*MESSAGE, "content")):
            pieces.text(Kind.ASSISTANT, text, at)
    elif first and event.get("action") != "think":
        pieces.text(
            Kind.ASSISTANT, take_optional(args, "thought", str, "args.") or "", ("args", "thought")
        )
    found = _arguments(message, asked.call)
    if found is not None:
        arguments, index = found
        at = (*MESSAGE, "tool_calls", index, "function", "arguments")
        pieces.add(_call(asked, arguments), at if first else None)
    else:
        told = {name: value for name, value in args.items() if name not in _NOT_ASKED}
        if event.get("action") == "think":
            told["thought"] = args.get("thought")
        pieces.add(_call(asked, line.json(told)))
    return pieces


def command(event: dict[str, Any]) -> Pieces:
    """What a person did in the agent's workspace: the model is told of it."""
    pieces = Pieces()
    args = take(event, "args", dict)
    for field in ("command", "code", "path", "url", "content"):
        if isinstance(args.get(field), str) and args[field]:
            name = take(event, "action", str)
            pieces.text(Kind.DEVELOPER, args[field], ("args", field), name=name)
            break
    return pieces


def message(event: dict[str, Any]) -> Pieces:
    """A message of a person, of the model, or of the program."""
    pieces = Pieces()
    args = take(event, "args", dict)
    kinds = {"user": Kind.USER, "agent": Kind.ASSISTANT}
    kind = kinds.get(str(event.get("source")), Kind.DEVELOPER)
    pieces.text(kind, take(args, "content", str, "args."), ("args", "content"))
    for picture, at in _pictures(args, ("args",)):
        if isinstance(picture, Picture):
            pieces.picture(picture, at)
        else:
            pieces.text(kind, picture, at)
    return pieces


def answer(event: dict[str, Any], call: str) -> Pieces:
    """The answer to a call."""
    pieces = Pieces()
    extras = take_optional(event, "extras", dict) or {}
    about = extras.get("metadata")
    metadata = about if isinstance(about, dict) else {}
    parts: list[tuple[str | Picture, At]] = []
    # What the shell printed is shown between these two.
    if isinstance(metadata.get("prefix"), str) and metadata["prefix"]:
        parts.append((metadata["prefix"], ("extras", "metadata", "prefix")))
    parts.append((take(event, "content", str), ("content",)))
    if isinstance(metadata.get("suffix"), str) and metadata["suffix"]:
        parts.append((metadata["suffix"], ("extras", "metadata", "suffix")))
    parts += _pictures(extras, ("extras",))
    failed = event.get("observation") in {"error", "user_rejected"} or event.get("success") is False
    pieces.result(call, parts, is_error=failed)
    return pieces


def recall(event: dict[str, Any]) -> Pieces:
    """What was looked up for the model: about its workspace, or knowledge that a word called up."""
    pieces = Pieces()
    extras = take_optional(event, "extras", dict) or {}
    for field in (
        "repo_instructions",
        "additional_agent_instructions",
        "conversation_instructions",
    ):
        text = take_optional(extras, field, str, "extras.") or ""
        pieces.text(Kind.DEVELOPER, text, ("extras", field), name=field)
    for index, known in enumerate(take_optional(extras, "microagent_knowledge", list) or []):
        if not isinstance(known, dict):
            raise MalformedError(f"microagent_knowledge: expected objects, got {json_name(known)}")
        at = ("extras", "microagent_knowledge", index, "content")
        text = take(known, "content", str, "extras.microagent_knowledge.")
        name = known.get("name")
        pieces.text(Kind.DEVELOPER, text, at, name=name if isinstance(name, str) and name else None)
    return pieces


def told(event: dict[str, Any]) -> Pieces:
    """What happened without having been called for."""
    pieces = Pieces()
    name = take(event, "observation", str)
    pieces.text(Kind.DEVELOPER, take(event, "content", str), ("content",), name=name)
    return pieces


def _call(asked: Asking, arguments: str) -> ToolCall:
    return ToolCall(tool_call_id=asked.call, name=asked.tool, arguments=arguments)


def _message(response: dict[str, Any] | None) -> dict[str, Any] | None:
    match response:
        case {"choices": [{"message": dict(message)}, *_]}:
            return dict(message)
        case _:
            return None


def _arguments(message: dict[str, Any] | None, call: str) -> tuple[str, int] | None:
    calls = message.get("tool_calls") if message else None
    for index, one in enumerate(calls if isinstance(calls, list) else []):
        match one:
            case {"id": id, "function": {"arguments": str(arguments)}} if id == call:
                return arguments, index
            case _:
                pass
    return None


def _thoughts(message: dict[str, Any], line: Line, pieces: Pieces) -> None:
    signed = message.get("thinking_blocks")
    items = [item for item in signed if isinstance(item, dict)] if isinstance(signed, list) else []
    if items and isinstance(signed, list) and len(items) == len(signed):
        for index, item in enumerate(items):
            pieces.signed(thinking_block(item, line), (*MESSAGE, "thinking_blocks", index))
    elif isinstance(thought := message.get("reasoning_content"), str):
        pieces.text(Kind.THINKING, thought, (*MESSAGE, "reasoning_content"))


def _texts(content: Any, at: At) -> Iterator[tuple[str, At]]:
    if isinstance(content, str):
        yield content, at
    for index, item in enumerate(content if isinstance(content, list) else []):
        match item:
            case {"type": "text", "text": str(text)}:
                yield text, (*at, index, "text")
            case _:
                pass  # it stays in the entry


def _pictures(owner: dict[str, Any], at: At) -> Iterator[tuple[str | Picture, At]]:
    for index, address in enumerate(take_optional(owner, "image_urls", list) or []):
        if not isinstance(address, str):
            raise MalformedError(f"image_urls: expected addresses, got {json_name(address)}")
        yield picture_of(address) or address, (*at, "image_urls", index)
