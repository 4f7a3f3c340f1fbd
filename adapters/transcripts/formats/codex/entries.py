"""Reads the lines of Codex rollouts: thread identity, token counts, and items as blocks."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .....domain.blocks import (
    AnyBlock,
    Block,
    BlockKind,
    Media,
    Native,
    ToolCall,
    ToolResult,
)
from .....domain.session_events import Usage
from ..content import base64_to_bytes
from ..fields import (
    JsonDict,
    MalformedError,
    UnknownItemError,
    drop_fields,
    find_text,
    get_field,
    is_uuid,
    read_usage,
    require_field,
    require_object,
)
from ..json_lines import SourceLine
from ..messages.message_reader import MalformedPart, UnknownPart
from ..messages.openai_responses import read_response_parts
from ..source import TranscriptSource
from ..steps import ReportedCall, SessionStart

FORMAT_NAME = "codex"
CODEX_PROVIDER = "openai-responses"
"""The provider whose format the rollout's response items have."""

PASSTHROUGH_FIELD = "internal_chat_message_metadata_passthrough"
"""Codex's own metadata on an item, not part of the provider's data."""

SKIPPED_LINE_TYPES = frozenset(
    {
        "inter_agent_communication_metadata",
        "realtime_item",
        "retained_context",
        "security_risk_score",
        "state",
        "world_state",
    }
)
"""Types of lines that no model was sent, but that Codex may need to resume."""

SHOWN = "shown to the person; items say what the model was sent"

NO_USAGE = "a token count without usage"
REPEATED_USAGE = "usage that was reported before"

_TAGS = (
    "apps_instructions collaboration_mode environment_context environments_instructions "
    "goal_context hook_prompt model_switch personality_spec plugins_instructions "
    "realtime_conversation recommended_plugins skill skills_instructions subagent_notification "
    "turn_aborted user_action user_instructions user_shell_command"
)
_INJECTED = re.compile(
    rf"<(?P<tag>{'|'.join(_TAGS.split())}|permissions instructions)\b[^>]*>.*</(?P=tag)>"
    r"|# AGENTS\.md instructions\b.*"
    r"|<image(?: name=[^>]*)?>|</image>",
    re.DOTALL,
)


def is_injected(text: str) -> bool:
    """Return whether Codex wrote it in the user's role."""
    # The beginning of a text decides whether its remaining megabytes are searched.
    stripped = text.strip()
    return stripped[:1] in "<#" and _INJECTED.fullmatch(stripped) is not None


_UUID_LENGTH = 36


def read_session_start(first: Any, source: TranscriptSource) -> SessionStart:
    """Return the session of a rollout, from its first line.

    A child's rollout may continue with a copy of its parent's: the first line is the child's own.
    """
    for value in (first, *source.first_values):
        meta = read_session_meta(value)
        if meta is not None:
            return SessionStart(
                meta["id"], parent_key=_parent_key(meta), project=find_text(meta, "cwd")
            )
    named = source.stem[-_UUID_LENGTH:]
    return SessionStart(named if is_uuid(named) else source.stem)


def wrap_line(value: Any) -> Any:
    """Return a line with its wrapper, which the oldest versions left out."""
    match value:
        case {"payload": _}:
            return value
        case {"id": str(), "timestamp": str(), **meta} if "type" not in value:
            prompt = {"text": meta.get("instructions")}
            return {"type": "session_meta", "payload": value | {"base_instructions": prompt}}
        case {"type": str()}:
            return {"type": "response_item", "payload": value}
        case {"record_type": _}:
            return {"type": "state", "payload": value}
        case _:
            return value


def read_session_meta(value: Any) -> JsonDict | None:
    match wrap_line(value):
        case {"type": "session_meta", "payload": {"id": str(id)} as meta} if id:
            return dict(meta)
        case _:
            return None


def _parent_key(meta: JsonDict) -> str | None:
    match meta:
        case {"source": {"subagent": {"thread_spawn": {"parent_thread_id": str(parent)}}}}:
            return parent if parent != meta["id"] else None
        case {"source": {"subagent": _}, "parent_thread_id": str(parent)}:
            return parent if parent and parent != meta["id"] else None
        case _:
            return None


def find_spawned_agent(output: str) -> str | None:
    """Return the session that a call started, according to its output."""
    try:
        said = json.loads(output)
    except (ValueError, RecursionError):
        return None
    match said:
        case {"agent_id": str(agent)} if agent:
            return agent
        case _:
            return None


@dataclass(frozen=True, slots=True)
class TokenCount:
    usage: Usage
    context_tokens: int | None
    """Tokens in context after it, by Codex's count."""
    has_prompt: bool
    is_new_call: bool


@dataclass(slots=True)
class UsageTracker:
    """A tracker that tells new calls from repeated counts: only a new call changes the total."""

    model: str | None = None
    first_answer_id: str | None = None
    """The first item that a model wrote since its last call was counted."""
    context_tokens: int | None = None
    """Tokens in context at the last count."""
    total: JsonDict | None = None
    window: int | None = None

    def read_count(self, last: JsonDict, total: JsonDict | None, within: str) -> TokenCount:
        """Read a count of the last call and of all calls."""
        usage = _parse_usage(last, within)
        tokens = get_field(last, "total_tokens", int, within)
        # A prompt was sent: after a compaction, a count has only the remaining tokens.
        has_prompt = bool((usage.input or 0) + (usage.cache_read or 0) + (usage.output or 0))
        is_new_call = has_prompt and (total is None or total != self.total)
        self.total = total
        self.context_tokens = tokens or self.context_tokens
        return TokenCount(usage, tokens, has_prompt=has_prompt, is_new_call=is_new_call)

    def note_window(self, owner: JsonDict, within: str = "") -> None:
        self.window = get_field(owner, "model_context_window", int, within) or self.window

    def make_call(self, id: str, key: str, usage: Usage, time: str | None) -> ReportedCall:
        fields: JsonDict = {"call_id": id, "model": self.model, "usage": usage, "source_time": time}
        if self.window:
            fields["context_window"] = self.window
        before, self.first_answer_id = self.first_answer_id, None
        return ReportedCall(f"{key}:call", fields, first_answer_id=before)


def _parse_usage(usage: JsonDict, within: str) -> Usage:
    """Parse the provider's report; Codex's input tokens are all tokens of the prompt."""
    return read_usage(
        usage,
        within,
        is_total=True,
        input="input_tokens",
        cache_read="cached_input_tokens",
        cache_write="cache_write_input_tokens",
        output="output_tokens",
        reasoning="reasoning_output_tokens",
    )


SERVER_TOOL_TYPES = frozenset(
    {"web_search_call", "mcp_call", "code_interpreter_call", "file_search_call", "computer_call"}
)
"""Calls that the provider answers itself, in the same item."""
RESPONSE_ITEM_TYPES = SERVER_TOOL_TYPES | {
    *("message", "reasoning", "function_call", "function_call_output"),
    *("custom_tool_call", "custom_tool_call_output", "local_shell_call"),
}
OPAQUE_ITEM_TYPES = frozenset(
    {"compaction", "compaction_summary", "context_compaction", "additional_tools"}
)
"""Items that only the provider understands, and that no model wrote."""
RAW_ITEM_TYPES = frozenset({"ghost_snapshot", "compaction_trigger"})
"""Items that no model is sent again."""

MODEL_KINDS = (BlockKind.ASSISTANT, BlockKind.THINKING, BlockKind.TOOL_CALL, BlockKind.ARTIFACT)


def find_call_id(blocks: list[AnyBlock]) -> str | None:
    """Return the id of the call that an item makes or answers."""
    first = blocks[0] if blocks else None
    return first.tool_call_id if isinstance(first, (ToolCall, ToolResult)) else None


def read_item(item: JsonDict, line: SourceLine) -> list[AnyBlock]:
    """Return the blocks of a response item, without origins. An item without any is skipped."""
    kind = require_field(item, "type", str)
    if PASSTHROUGH_FIELD in item:
        item = drop_fields(item, PASSTHROUGH_FIELD)
    if reader := _READERS.get(kind):
        return reader(item, line)
    if kind in OPAQUE_ITEM_TYPES:
        return [Block.developer("", name=kind, native=_make_native(item, line))]
    if kind in RAW_ITEM_TYPES:
        return []
    if kind in RESPONSE_ITEM_TYPES:
        return _read_response_item(item, line)
    raise UnknownItemError(f"response_item/{kind}")


def read_communication(item: JsonDict) -> list[AnyBlock]:
    """Read a message of another agent that has its own line."""
    text = require_field(item, "content", str)
    return [Block.developer(text, name=_find_author(item))] if text else []


def _make_native(item: JsonDict, line: SourceLine) -> Native:
    return Native(provider=CODEX_PROVIDER, item=line.to_json(item))


def _read_response_item(item: JsonDict, line: SourceLine) -> list[AnyBlock]:
    blocks: list[AnyBlock] = []
    for part in read_response_parts(item, line, line.number):
        match part:
            case Block(kind=BlockKind.USER | BlockKind.DEVELOPER, text=text):
                if text:
                    blocks.append(Block(kind=_classify_text(item["role"], text), text=text))
            case Block(kind=BlockKind.THINKING, text=""):
                if get_field(item, "encrypted_content", str):
                    blocks.append(part)
            case Block() | ToolCall() | ToolResult():
                blocks.append(part)
            case UnknownPart(type=kind):
                raise UnknownItemError(f"response_item/{item['type']}/{kind}")
            case MalformedPart(reason=reason):
                raise MalformedError(reason)
    if len(blocks) > 1 and item.get("role") != "assistant":
        # One message of several parts is never split.
        shared = {"message_id": f"line:{line.number}"}
        blocks = [block.model_copy(update=shared) for block in blocks]
    return blocks


def _classify_text(role: str, text: str) -> BlockKind:
    return BlockKind.USER if role == "user" and not is_injected(text) else BlockKind.DEVELOPER


def _read_generated_image(item: JsonDict, line: SourceLine) -> list[AnyBlock]:
    # The user looked at it; the surrounding text tells the model about it.
    data = base64_to_bytes(get_field(item, "result", str) or "")
    if not data:
        return _read_response_item(item, line)
    media = Media(type="image", mime="image/png", data=data)
    return [Block(kind=BlockKind.ARTIFACT, media=media, name=item["type"])]


def _read_agent_message(item: JsonDict, line: SourceLine) -> list[AnyBlock]:
    author = _find_author(item)
    content = [require_object(part, "content: ") for part in require_field(item, "content", list)]
    texts = [find_text(part, "text") for part in content]
    if None in texts:
        return [Block.developer("", name=author, native=_make_native(item, line))]
    return [Block.developer(text, name=author) for text in texts if text]


def _find_author(item: JsonDict) -> str:
    return get_field(item, "author", str) or "agent"


def _read_tool_search_call(item: JsonDict, line: SourceLine) -> list[AnyBlock]:
    id = get_field(item, "call_id", str)
    if not id:
        return _read_response_item(item, line)
    arguments = line.to_json(item.get("arguments"))
    return [ToolCall(tool_call_id=id, name="tool_search", arguments=arguments)]


def _read_tool_search_output(item: JsonDict, line: SourceLine) -> list[AnyBlock]:
    call = get_field(item, "call_id", str)
    if not call:
        return [Block.assistant("", name=item["type"], native=_make_native(item, line))]
    tools = line.to_json(require_field(item, "tools", list))
    return [ToolResult(tool_call_id=call, content=tools)]


_READERS: dict[str, Callable[[JsonDict, SourceLine], list[AnyBlock]]] = {
    "agent_message": _read_agent_message,
    "image_generation_call": _read_generated_image,
    "tool_search_call": _read_tool_search_call,
    "tool_search_output": _read_tool_search_output,
}
