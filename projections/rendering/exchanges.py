"""Groups a view into exchanges, and renders tools, calls and answers as every provider accepts."""

import json
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from ...domain.blocks import (
    ASSISTANT_KINDS,
    UNSENT_KINDS,
    Block,
    BlockKind,
    Media,
    NativePart,
    ResultPart,
    ToolCall,
    ToolResult,
)
from ..rendering import sendable
from ..view_content import ViewContent, ViewEntry
from .sendable import JsonObject, copy_value

NO_RESULT_TEXT = "[no result yet]"
"""The result of an open call, because no provider accepts a call without one."""
NO_OUTPUT_TEXT = "[no output]"
"""The text of an empty result, because some providers refuse one."""

_ID = re.compile(r"[A-Za-z0-9_-]+")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")


def make_distinct_id(call_id: str, position: int, taken: Collection[str], longest: int) -> str:
    """Return the call's own id if it is acceptable, else one made from it and the call's position.

    It depends only on earlier calls, so that a growing view never changes an id.
    """
    if len(call_id) <= longest and _ID.fullmatch(call_id) and call_id not in taken:
        return call_id
    mark = f"_{position}"
    while True:
        made = _NOT_IN_NAMES.sub("_", call_id)[: longest - len(mark)] + mark
        if made not in taken:
            return made
        mark += "_"


def sanitize_tool_name(name: str, longest: int) -> str:
    """Return a tool's name in the characters that providers accept."""
    return _NOT_IN_NAMES.sub("_", name)[:longest] or "unnamed"


def render_arguments(entry: ViewEntry) -> JsonObject:
    """Return the call's arguments; for a hidden call, the text shown in its place."""
    if entry.shown is not None:
        return {"hidden": sendable.replace_half_characters(entry.shown)}
    asked = _parse_object(entry.block.text)
    return {"_raw": sendable.replace_half_characters(entry.block.text)} if asked is None else asked


def render_arguments_text(entry: ViewEntry) -> str:
    """Return the arguments as JSON text: the model's own, byte for byte, if they are an object."""
    if entry.shown is None and _parse_object(entry.block.text) is not None:
        return sendable.replace_half_characters(entry.block.text)
    return json.dumps(render_arguments(entry), ensure_ascii=False)


def _parse_object(words: str) -> JsonObject | None:
    try:
        value = sendable.parse_sendable_json(words)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def list_answer_parts(result: ViewEntry | None, provider: str) -> list[str | Media | JsonObject]:
    """Return a call's answer as texts, media and the provider's own parts, at least one.

    A trimmed or hidden result is only its text.
    """
    if result is None:
        return [NO_RESULT_TEXT]
    said = [_make_sendable(part, provider) for part in _list_parts(result)]
    return [part for part in said if part is not None] or [NO_OUTPUT_TEXT]


def _list_parts(result: ViewEntry) -> tuple[ResultPart | str, ...]:
    content = result.block.content if isinstance(result.block, ToolResult) else ""
    return (result.text,) if result.shown is not None or isinstance(content, str) else content


def _make_sendable(part: ResultPart | str, provider: str) -> str | Media | JsonObject | None:
    if isinstance(part, Media):
        return part
    if isinstance(part, NativePart):
        return sendable.parse_native_item(part.native, provider)
    words = part if isinstance(part, str) else part.text
    return sendable.replace_half_characters(words) if words.strip() else None


def render_definitions(view: ViewContent, tool_format: str) -> list[Any]:
    """Return the tools in a provider's format; one in the same or an unknown format stays."""
    return [_render_definition(copy_value(tool), tool_format) for tool in view.tool_definitions]


def _render_definition(tool: Any, tool_format: str) -> Any:
    match tool:
        case {"name": str(name), "input_schema": schema}:
            recorded, described = "anthropic", tool
        case {"type": "function", "function": {"name": str(name)} as described}:
            recorded, schema = "openai-chat", described.get("parameters")
        case {"type": "function", "name": str(name)}:
            recorded, described, schema = "openai-responses", tool, tool.get("parameters")
        case {"name": str(name), "inputSchema": schema}:
            recorded, described = "mcp", tool
        case _:
            return tool
    if recorded == tool_format:
        return tool
    made = {"name": sanitize_tool_name(name, 128 if tool_format == "anthropic" else 64)}
    if (description := described.get("description")) is not None:
        made["description"] = description
    if tool_format == "openai-chat":
        parameters = {} if schema is None else {"parameters": schema}
        return {"type": "function", "function": made | parameters}
    schema = schema or {"type": "object", "properties": {}}
    if tool_format == "anthropic":
        return {**made, "input_schema": schema}
    # The API's default, strict, may not suit another provider's schema.
    return {"type": "function", **made, "parameters": schema, "strict": False}


OPENING_TEXT = "[the conversation begins here]"
"""The user's text for a request that must have one if the view has none."""


@dataclass(slots=True)
class ExchangeCall:
    entry: ViewEntry
    name: str
    id: str
    """Unique in the view, in characters that every provider accepts."""
    result: ViewEntry | None = None
    """None while the call is open."""

    @property
    def is_error(self) -> bool:
        block = self.result.block if self.result else None
        return isinstance(block, ToolResult) and block.is_error


@dataclass(slots=True)
class Exchange:
    """One message of the model, the answers to its calls, and the input after it."""

    message_id: str | None = None
    model_entries: list[ViewEntry | ExchangeCall] = field(default_factory=list)
    """In the order of the log, with thinking between text and calls; empty in the first exchange.
    """
    calls: list[ExchangeCall] = field(default_factory=list)
    """The calls of the message; their answers follow it directly, whenever they came."""
    input_entries: list[ViewEntry] = field(default_factory=list)
    is_continued: bool = False
    """Whether the model's next piece belongs to this message."""

    @property
    def start(self) -> int:
        first = self.model_entries[0]
        return (first.entry if isinstance(first, ExchangeCall) else first).position


@dataclass(frozen=True, slots=True)
class ViewConversation:
    """All exchanges of a view; in the first one, only the user speaks."""

    exchanges: list[Exchange]
    start_of_growth: int
    """After this position, everything has the same predecessors as when it was written.

    Earlier, something changed: a boundary removed blocks, the system prompt or the tools were set
    again, or a call was answered after the model had gone on.
    """


def group_exchanges(view: ViewContent, longest_id: int) -> ViewConversation:
    """Group a view's entries; `longest_id` is the provider's maximum length of call ids."""
    current = Exchange()
    exchanges = [current]
    asked: dict[int, tuple[Exchange, ExchangeCall]] = {}
    ids: set[str] = set()
    settings = (part.position for part in (view.system, view.tools) if part)
    after = view.boundary.after if view.boundary else 0
    grown_since = max(after, view.effective_from, *settings)
    for entry in view.entries:
        block = entry.block
        kind = block.kind
        if kind is BlockKind.TOOL_RESULT and entry.call in asked:
            exchange, call = asked.pop(entry.call)
            call.result = entry
            if exchange is not current:
                grown_since = max(grown_since, entry.position)
            elif exchange.message_id is None:
                exchange.is_continued = False
        elif kind in ASSISTANT_KINDS:
            if not current.is_continued or block.message_id != current.message_id:
                current = Exchange(block.message_id, is_continued=True)
                exchanges.append(current)
            if isinstance(block, ToolCall):
                id = make_distinct_id(block.tool_call_id, entry.position, ids, longest_id)
                ids.add(id)
                call = ExchangeCall(entry, block.name, id)
                asked[entry.position] = current, call
                current.model_entries.append(call)
                current.calls.append(call)
            else:
                current.model_entries.append(entry)
        elif kind not in UNSENT_KINDS:
            current.input_entries.append(entry)
            # A harness adds remarks between the parallel calls of one message; a user does not.
            if kind is not BlockKind.DEVELOPER or current.message_id is None:
                current.is_continued = False
    return ViewConversation(exchanges, grown_since)


def join_spoken_text(entry: ViewEntry) -> str:
    """Return a model's block as text, because no request accepts an image in a model's message."""
    words = sendable.replace_half_characters(entry.text)
    made = entry.block.media if isinstance(entry.block, Block) and entry.shown is None else None
    return "\n".join(part for part in (words, made and sendable.describe_media(made)) if part)


def read_native_item(entry: ViewEntry, provider: str) -> JsonObject | None:
    """Return the item that the block came in, if it is this provider's and shown whole."""
    is_whole = entry.shown is None
    return sendable.parse_native_item(entry.block.native, provider) if is_whole else None


def list_block_content(
    entry: ViewEntry,
    make_text: Callable[[str], JsonObject],
    render_media: Callable[[Media], JsonObject],
) -> list[JsonObject]:
    """Return what a block shows: its text, unless it is blank, and its image or document."""
    words = sendable.replace_half_characters(entry.text)
    content = [make_text(words)] if words.strip() else []
    if entry.shown is None and isinstance(entry.block, Block) and entry.block.media:
        content.append(render_media(entry.block.media))
    return content


def find_speaker(told: ViewEntry) -> str:
    """Return whose text it is: the `user`'s or a `developer`'s."""
    is_users = isinstance(told.block, Block) and told.block.kind is not BlockKind.DEVELOPER
    return "user" if is_users else "developer"
