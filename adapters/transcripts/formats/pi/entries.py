"""Reads pi's entries: the items of messages, signed thoughts, usage, models and prompts."""

import json
from collections.abc import Callable
from typing import Any, TypeVar

from .....domain.blocks import AnyBlock, Block, BlockKind, Media, Native, ToolCall
from .....domain.session_events import Usage
from ..content import ContentPart, image_from_data
from ..entry_steps import EntrySteps
from ..fields import (
    JsonDict,
    MalformedError,
    as_number,
    find_text,
    get_field,
    read_usage,
    require_field,
    require_name,
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
    lasted = as_number(message.get("duration"))
    return {
        "call_id": get_field(message, "responseId", str, "message.") or source_id,
        "model": get_field(message, "model", str, "message."),
        **read_spent(message, "message."),
        "latency_s": None if lasted is None else lasted / 1_000,
        "stop_reason": get_field(message, "stopReason", str, "message."),
        "source_time": time,
    }


def read_spent(owner: JsonDict, within: str = "") -> JsonDict:
    """Return the usage of a call and its cost, if the message or the summary has them."""
    usage = get_field(owner, "usage", dict, within) or {}
    cost = get_field(usage, "cost", dict, f"{within}usage.") or {}
    used = _read_usage(usage, f"{within}usage.") if usage else None
    return {"usage": used, "cost_usd": as_number(cost.get("total"))}


class SystemMessages:
    """The system prompt and the tools, which each system message changes."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.sections: JsonDict = {}
        self.tools: JsonDict = {}

    def read(self, message: JsonDict) -> tuple[str, list[Any]]:
        """Return the prompt and the tools from this message on."""
        content = message.get("content")
        items = content if isinstance(content, list) else [{"text": content}]
        self.texts += [text for item in items if (text := find_text(item, "text"))]
        self.sections |= get_field(message, "sections", dict) or {}
        for tool in get_field(message, "toolsRemoved", list) or []:
            self.tools.pop(find_text(tool, "name") or "", None)
        for tool in get_field(message, "toolsAdded", list) or []:
            self.tools[find_text(tool, "name") or ""] = tool
        texts = [*self.texts, *(text for text in self.sections.values() if isinstance(text, str))]
        return "\n\n".join(texts), [*self.tools.values()]


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


def _read_usage(usage: JsonDict, within: str) -> Usage:
    return read_usage(
        usage,
        within,
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


PI_ROLES = frozenset(
    {
        *("user", "developer", "custom", "hookMessage", "assistant", "toolResult"),
        *("bashExecution", "pythonExecution", "branchSummary", "compactionSummary"),
    }
)


def read_pi_content(entry: EntrySteps, message: JsonDict, role: str, user_kind: BlockKind) -> None:
    """Add the blocks of a message of a known role; `user_kind` is the kind of a user's texts."""
    match role:
        case "user":
            entry.blocks += _read_items(
                entry, message, lambda item, _: _read_input(item, user_kind)
            )
        case "developer" | "custom" | "hookMessage":
            name = None if role == "developer" else get_field(message, "customType", str)
            kind = BlockKind.DEVELOPER
            entry.blocks += _read_items(
                entry, message, lambda item, _: _read_input(item, kind, name)
            )
        case "assistant":
            api = message.get("api")
            entry.blocks += _read_items(
                entry, message, lambda item, at: _read_output(item, api, entry.line, at)
            )
        case "toolResult":
            call = require_name(message, "toolCallId")
            is_error = get_field(message, "isError", bool) or False
            parts = _read_items(entry, message, lambda item, _: _read_part(item))
            entry.add_tool_result(call, parts, is_error=is_error)
        case "bashExecution":
            entry.blocks.append(_read_execution(message, "command", "Ran"))
        case "pythonExecution":
            entry.blocks.append(_read_execution(message, "code", "Ran Python"))
        case _:
            _read_summary(entry, message, is_branch=role == "branchSummary")


def _read_items(entry: EntrySteps, message: JsonDict, read: Callable[[Any, str], _T]) -> list[_T]:
    """Read each item of the content, with a name of its place."""
    content = message.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}] if content else []
        return [read(item, f"{entry.key}:0") for item in content]
    found: list[_T] = []
    for index, item in enumerate(require_field(message, "content", list)):
        try:
            found.append(read(item, f"{entry.key}:{index}"))
        except MalformedError as error:
            entry.add_problem(f"content[{index}]: {error}")
    return found


def _read_execution(message: JsonDict, field: str, how: str) -> Block:
    """Read a command that the user ran, and its output."""
    ran, output = require_field(message, field, str), require_field(message, "output", str)
    text = f"{how} `{ran}`\n" + (f"```\n{output}\n```" if output else "(no output)")
    code = get_field(message, "exitCode", int)
    if message.get("cancelled") is True:
        text += "\n\n(cancelled)"
    elif code:
        text += f"\n\nIt ended with exit code {code}."
    if message.get("truncated") is True and isinstance(message.get("fullOutputPath"), str):
        text += f"\n\n[The output was cut: all of it is in {message['fullOutputPath']}]"
    return Block.developer(text, name=field)


def _read_summary(entry: EntrySteps, message: JsonDict, *, is_branch: bool) -> None:
    """Read a summary of other messages."""
    lead, name = (BRANCH_LEAD, "branch_summary") if is_branch else (SUMMARY_LEAD, "summary")
    if summary := require_field(message, "summary", str):
        text = f"{lead}\n\n<summary>\n{summary}\n</summary>"
        entry.add_text(BlockKind.DEVELOPER, text, name=name)


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
