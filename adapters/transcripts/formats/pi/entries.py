"""Reads pi's entries: the items of messages, signed thoughts, usage, models and prompts."""

import json
from collections.abc import Callable
from typing import Any, TypeVar

from .....domain.blocks import AnyBlock, Block, BlockKind, Media, Native, ToolCall, ToolResult
from .....domain.session_events import Usage
from ..content import ContentPart, image_from_data, make_result_content
from ..fields import (
    JsonDict,
    MalformedError,
    as_number,
    get_field,
    read_usage,
    require_field,
    require_type,
)
from ..json_lines import SourceLine

STATE_ENTRY_TYPES = {
    *("active_tools_change", "archive", "credential_pin", "custom", "label", "leaf", "mode_change"),
    *("model_change", "model_usage", "reset_boundary", "service_tier_change", "session_init"),
    *("thinking_level_change", "ttsr_injection"),
}
"""Types that no model was sent, and that the agent needs to resume."""

PI_TITLE_FIELDS = {"session_info": "name", "title_change": "title"}
"""Types that title the session, and the title's field."""


def is_valid_id(id: Any) -> bool:
    return isinstance(id, str) and id != "" and "\0" not in id


def read_model_change(entry: JsonDict) -> str | None:
    """Return the model of a `model_change`; None for the model of a side task."""
    if "modelId" in entry:
        return require_field(entry, "modelId", str)
    if get_field(entry, "role", str) not in (None, "default"):
        return None
    provider, slash, model = require_field(entry, "model", str).partition("/")
    return model if slash else provider


def read_call_fields(message: JsonDict, source_id: str, time: str | None) -> JsonDict:
    """Return the fields of the call that a message answered."""
    usage = get_field(message, "usage", dict, "message.") or {}
    cost = get_field(usage, "cost", dict, "message.usage.") or {}
    lasted = as_number(message.get("duration"))
    return {
        "call_id": get_field(message, "responseId", str, "message.") or source_id,
        "model": get_field(message, "model", str, "message."),
        "usage": _read_usage(usage) if usage else None,
        "cost_usd": as_number(cost.get("total")),
        "latency_s": None if lasted is None else lasted / 1_000,
        "stop_reason": get_field(message, "stopReason", str, "message."),
        "source_time": time,
    }


def read_system_prompt(entry: JsonDict) -> str:
    """Return the system prompt of a `session_init`: a text, or a list of texts."""
    prompt = entry.get("systemPrompt")
    if isinstance(prompt, str):
        return prompt
    pieces = require_field(entry, "systemPrompt", list)
    if not all(isinstance(piece, str) for piece in pieces):
        raise MalformedError("systemPrompt: expected a list of text")
    return "\n\n".join(pieces)


def digest_message(message: JsonDict) -> int:
    """Return the same number for messages with equal content, wherever they are."""
    content = message.get("content")
    said = [message.get(name) for name in ("role", "summary", "command", "output", "toolCallId")]
    for item in content if isinstance(content, list) else [content]:
        said += item.values() if isinstance(item, dict) else [item]
    return hash(tuple(words for words in said if isinstance(words, str)))


def _read_usage(usage: JsonDict) -> Usage:
    return read_usage(
        usage,
        "message.usage.",
        input="input",
        cache_read="cacheRead",
        cache_write="cacheWrite",
        output="output",
        reasoning="reasoning" if usage.get("reasoning") is not None else "reasoningTokens",
    )


ANTHROPIC_PROVIDER = "anthropic"
RESPONSES_PROVIDER = "openai-responses"

_RESPONSES_APIS = ("openai-responses", "openai-codex-responses", "azure-openai-responses")


def read_native(item: JsonDict, api: Any, line: SourceLine) -> tuple[Native | None, str]:
    """Return the native item in a thought's signature, if any, and the thought."""
    thought = require_field(item, "thinking", str)
    signature = get_field(item, "thinkingSignature", str)
    if item.get("redacted") is True:
        thought = ""
    if not signature:
        return None, thought
    if api == "anthropic-messages":
        said = {"type": "thinking", "thinking": thought, "signature": signature}
        if item.get("redacted") is True:
            said = {"type": "redacted_thinking", "data": signature}
        return Native(provider=ANTHROPIC_PROVIDER, item=line.to_json(said)), thought
    if isinstance(api, str) and api in _RESPONSES_APIS and _is_reasoning(signature):
        return Native(provider=RESPONSES_PROVIDER, item=signature), thought
    return None, thought


def make_signature_fields(native: Native) -> JsonDict:
    """Return the signature of a native item as fields; empty for one that pi does not keep."""
    if native.provider == RESPONSES_PROVIDER and _is_reasoning(native.item):
        return {"thinkingSignature": native.item}
    match json.loads(native.item) if native.provider == ANTHROPIC_PROVIDER else None:
        case {"type": "thinking", "signature": str(signature)} if signature:
            return {"thinkingSignature": signature}
        case {"type": "redacted_thinking", "data": str(data)} if data:
            return {"thinkingSignature": data, "redacted": True}
        case _:
            return {}


def _is_reasoning(signature: str) -> bool:
    if not signature.startswith("{"):
        return False
    try:
        item = json.loads(signature)
    except (ValueError, RecursionError):
        return False
    return isinstance(item, dict) and item.get("type") == "reasoning"


BRANCH_LEAD = "What follows sums up a branch that the conversation came back from:"
SUMMARY_LEAD = "What follows sums up the conversation so far:"
_T = TypeVar("_T")


class EntryContent:
    """The blocks of an entry, and what of it could not be read."""

    def __init__(self, entry: JsonDict, *, is_message: bool) -> None:
        self.owner = require_field(entry, "message", dict) if is_message else entry
        """The object with the content: the entry itself, or the message in it."""
        self.within = "message." if is_message else ""
        self.blocks: list[AnyBlock] = []
        self.problems: list[str] = []

    def read(self, role: str, user_kind: BlockKind, line: SourceLine, source_id: str) -> None:
        """Read a message of a known role; `user_kind` is the kind of a user's texts."""
        match role:
            case "user":
                self.blocks = self._read_items(lambda item, _: _read_input(item, user_kind))
            case "developer" | "custom" | "hookMessage":
                is_named = role != "developer"
                name = get_field(self.owner, "customType", str) if is_named else None
                self.blocks = self._read_items(
                    lambda item, _: _read_input(item, BlockKind.DEVELOPER, name)
                )
            case "assistant":
                api = self.owner.get("api")
                self.blocks = self._read_items(
                    lambda item, index: _read_output(item, api, line, f"{source_id}:{index}")
                )
            case "toolResult":
                self.blocks = [self._read_result()]
            case "bashExecution":
                self.blocks = [self._read_execution("command", "Ran")]
            case "pythonExecution":
                self.blocks = [self._read_execution("code", "Ran Python")]
            case "branchSummary":
                self.blocks = self._read_summary("branch_summary", BRANCH_LEAD)
            case "compactionSummary":
                self.blocks = self._read_summary("summary", SUMMARY_LEAD)

    def _require(self, field: str) -> str:
        return require_field(self.owner, field, str, self.within)

    def _read_items(self, read: Callable[[Any, int], _T]) -> list[_T]:
        """Read each item of the content."""
        content = self.owner.get("content")
        if isinstance(content, str):
            return [read({"type": "text", "text": content}, 0)] if content else []
        found: list[_T] = []
        for index, item in enumerate(require_field(self.owner, "content", list, self.within)):
            try:
                found.append(read(item, index))
            except MalformedError as error:
                self.problems.append(f"{self.within}content[{index}]: {error}")
        return found

    def _read_result(self) -> ToolResult:
        """Read a tool's answer, which is one block."""
        call = self._require("toolCallId")
        if not call:
            raise MalformedError("message.toolCallId: expected an id, but it is empty")
        is_error = get_field(self.owner, "isError", bool, self.within) or False
        parts = self._read_items(lambda item, _: _read_part(item))
        return ToolResult(tool_call_id=call, content=make_result_content(parts), is_error=is_error)

    def _read_execution(self, field: str, how: str) -> Block:
        """Read a command that the user ran, and its output."""
        message = self.owner
        ran, output = self._require(field), self._require("output")
        text = f"{how} `{ran}`\n" + (f"```\n{output}\n```" if output else "(no output)")
        code = get_field(message, "exitCode", int, self.within)
        if message.get("cancelled") is True:
            text += "\n\n(cancelled)"
        elif code:
            text += f"\n\nIt ended with exit code {code}."
        if message.get("truncated") is True and isinstance(message.get("fullOutputPath"), str):
            text += f"\n\n[The output was cut: all of it is in {message['fullOutputPath']}]"
        return Block.developer(text, name=field)

    def _read_summary(self, name: str, lead: str) -> list[AnyBlock]:
        """Read a summary of other messages."""
        summary = self._require("summary")
        text = f"{lead}\n\n<summary>\n{summary}\n</summary>"
        return [Block.developer(text, name=name)] if summary else []


def _read_input(item: Any, kind: BlockKind, name: str | None = None) -> Block:
    part = _read_part(item)
    if isinstance(part, Media):
        return Block(kind=BlockKind.IMAGE, media=part, name=name)
    if item["type"] == "image":
        return Block.developer(part, name="image")
    return Block(kind=kind, text=part, name=name)


def _read_part(item: Any) -> ContentPart:
    match require_type(item):
        case "text":
            return require_field(item, "text", str)
        case "image":
            data, mime = require_field(item, "data", str), require_field(item, "mimeType", str)
            if data.startswith("blob:"):
                return f"[an image that is kept outside the session: {data}]"
            if media := image_from_data(data, mime):
                return media
            raise MalformedError("data: expected base64")
        case unknown:
            raise MalformedError(f"type: {unknown!r} is not known")


def _read_output(item: Any, api: Any, line: SourceLine, place: str) -> AnyBlock:
    match require_type(item):
        case "text":
            return Block.assistant(require_field(item, "text", str))
        case "thinking":
            native, thought = read_native(item, api, line)
            return Block.thinking(thought, native=native)
        case "toolCall":
            return ToolCall(
                tool_call_id=get_field(item, "id", str) or place,
                name=require_field(item, "name", str),
                arguments=line.to_json(require_field(item, "arguments", dict)),
            )
        case unknown:
            raise MalformedError(f"type: {unknown!r} is not known")
