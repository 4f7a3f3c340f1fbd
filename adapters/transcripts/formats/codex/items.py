"""Converts a response item to blocks, and the remainder that no block holds."""

from collections.abc import Callable
from functools import partial
from typing import Any

from .....domain.blocks import Block, Kind
from ..json_lines import SourceLine
from ..reading.fields import JsonDict, get_field, require_field, require_object
from . import tool_calls
from .codex_images import decode_exact_base64, image_from_url, make_generated_image
from .entries import is_injected
from .item_content import BlockFactory, ItemContent, drop_item_fields, make_native_content

TEXT_PART_TYPES = frozenset({"input_text", "output_text", "text"})
SERVER_TOOL_TYPES = frozenset(
    {"web_search_call", "image_generation_call", "mcp_call", "code_interpreter_call"}
    | {"file_search_call", "computer_call"}
)
"""Calls that the provider answers itself, in the same item."""
OPAQUE_ITEM_TYPES = frozenset(
    {"compaction", "compaction_summary", "context_compaction", "additional_tools"}
)
"""Items that only the provider understands, and that no model wrote."""
RAW_ITEM_TYPES = frozenset({"ghost_snapshot", "compaction_trigger"})
"""Items that are kept unchanged; no model is sent them again."""


class UnknownCodexItemError(ValueError):
    """An item, or a part of one, of an unknown type."""


def read_item(item: JsonDict, line: SourceLine) -> ItemContent:
    """Read a response item. An item without pieces is kept unchanged."""
    kind = require_field(item, "type", str)
    if reader := _READERS.get(kind):
        return reader(item, line)
    if kind in SERVER_TOOL_TYPES:
        said = partial(Block.assistant, "", name=kind)
        return make_native_content(item, line, said, by_model=True, served=True)
    if kind in OPAQUE_ITEM_TYPES:
        return make_native_content(item, line, partial(Block.developer, "", name=kind))
    if kind in RAW_ITEM_TYPES:
        return ItemContent(item)
    raise UnknownCodexItemError(kind)


def _read_message(item: JsonDict, line: SourceLine) -> ItemContent:
    role = require_field(item, "role", str)
    content = require_field(item, "content", list)
    rests: list[Any] = []
    pieces: list[BlockFactory] = []
    for part in content:
        piece = _read_part(part, role)
        if piece is not None:
            pieces.append(piece)
            part = {name: part[name] for name in part if name not in ("text", "image_url")}  # noqa: PLW2901 - the remainder
        rests.append(part)
    if len(pieces) > 1 and role != "assistant":
        # One message of several parts is never split.
        pieces = [partial(piece, message_id=f"line:{line.number}") for piece in pieces]
    return ItemContent({**item, "content": rests}, pieces, is_by_model=role == "assistant")


def _read_part(part: Any, role: str) -> BlockFactory | None:
    part = require_object(part, "content: ")
    kind = require_field(part, "type", str, "content: ")
    if kind in TEXT_PART_TYPES:
        text = require_field(part, "text", str, "content: ")
        return partial(Block, kind=_classify_text(role, text), text=text) if text else None
    if kind == "input_image" and isinstance(url := part.get("image_url"), str):
        return partial(Block, kind=Kind.IMAGE, media=image_from_url(url))
    raise UnknownCodexItemError(f"message/{kind}")


def _classify_text(role: str, text: str) -> Kind:
    if role == "assistant":
        return Kind.ASSISTANT
    return Kind.USER if role == "user" and not is_injected(text) else Kind.DEVELOPER


def _read_reasoning(item: JsonDict, line: SourceLine) -> ItemContent:
    texts = _texts(item, "summary") or _texts(item, "content")
    if not texts and not get_field(item, "encrypted_content", str):
        return ItemContent(item)
    return make_native_content(
        item, line, partial(Block.thinking, "\n\n".join(texts)), by_model=True
    )


def _texts(item: JsonDict, field: str) -> list[str]:
    parts = get_field(item, field, list) or []
    return [
        require_field(require_object(part, f"{field}: "), "text", str, f"{field}: ")
        for part in parts
    ]


def _read_image(item: JsonDict, line: SourceLine) -> ItemContent:
    # The user looked at it; the surrounding text tells the model about it.
    found = decode_exact_base64(get_field(item, "result", str) or "")
    if not found:
        said = partial(Block.assistant, "", name="image_generation_call")
        return make_native_content(item, line, said, by_model=True, served=True)
    piece = partial(
        Block, kind=Kind.ARTIFACT, media=make_generated_image(found), name="image_generation_call"
    )
    return ItemContent(
        drop_item_fields(item, "result"), [piece], is_by_model=True, is_server_tool=True
    )


def _read_agent_message(item: JsonDict, line: SourceLine) -> ItemContent:
    author = get_field(item, "author", str) or "agent"
    content = [require_object(part, "content: ") for part in require_field(item, "content", list)]
    if all(_is_text(part) for part in content):
        pieces = [partial(Block.developer, part["text"], name=author) for part in content]
        return ItemContent(
            {**item, "content": [drop_item_fields(part, "text") for part in content]}, pieces
        )
    return make_native_content(item, line, partial(Block.developer, "", name=author))


def _is_text(part: JsonDict) -> bool:
    match part:
        case {"type": str(kind), "text": str()}:
            return kind in TEXT_PART_TYPES
        case _:
            return False


def read_communication(item: JsonDict) -> ItemContent:
    """Read a message of another agent that has its own line."""
    text = require_field(item, "content", str)
    author = get_field(item, "author", str) or "agent"
    if not text:
        return ItemContent(item)
    return ItemContent(
        drop_item_fields(item, "content"), [partial(Block.developer, text, name=author)]
    )


_READERS: dict[str, Callable[[JsonDict, SourceLine], ItemContent]] = {
    "agent_message": _read_agent_message,
    "custom_tool_call": tool_calls.read_custom_tool_call,
    "custom_tool_call_output": tool_calls.read_output,
    "function_call": tool_calls.read_function_call,
    "function_call_output": tool_calls.read_output,
    "image_generation_call": _read_image,
    "local_shell_call": tool_calls.read_local_shell_call,
    "message": _read_message,
    "reasoning": _read_reasoning,
    "tool_search_call": tool_calls.read_tool_search_call,
    "tool_search_output": tool_calls.read_tool_search_output,
}
