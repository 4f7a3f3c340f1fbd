"""Defines Anthropic Messages: typed content blocks, and a separate system prompt."""

from collections.abc import Iterator
from typing import Any

from .....domain.blocks import AnyBlock, Block, Kind, Media, NativePart, Text, ToolCall, ToolResult
from ..claude_code.content import read_assistant_item, read_user_item
from ..fields import JsonDict, get_field, require_field
from ..json_lines import SourceLine
from ..placeholders import JsonPath, Placeholder
from .dialect_detection import ANTHROPIC_MESSAGES
from .message_file_writer import make_message_format
from .message_reader import (
    Dialect,
    MessagePart,
    ProviderCompaction,
    ReadBlock,
    UnknownPart,
    decode_media,
    read_content_parts,
    text_path,
)


def read_anthropic_parts(message: JsonDict, line: SourceLine, number: int) -> Iterator[MessagePart]:  # noqa: ARG001 - as others
    role = require_field(message, "role", str)
    if role not in {"user", "assistant", "system"}:
        yield UnknownPart(f"role/{role}", message)
        return
    yield from read_content_parts(
        message, "content", lambda at, item: _read_part(role, at, item, line)
    )


def _read_part(role: str, at: JsonPath, item: Any, line: SourceLine) -> MessagePart:
    if isinstance(item, dict) and item.get("type") == "compaction":
        return _read_compaction(item)
    read = read_assistant_item if role == "assistant" else read_user_item
    block = read({}, item, line)
    if role == "system" and isinstance(block, Block) and block.kind is Kind.USER:
        block = block.model_copy(update={"kind": Kind.DEVELOPER})
    return ReadBlock(block, tuple(_make_placeholders(at, item, block)))


def _read_compaction(item: JsonDict) -> ProviderCompaction:
    summary = get_field(item, "content", str)
    if summary is None and item.get("encrypted_content"):
        return ProviderCompaction(None, "the summary is encrypted")
    return ProviderCompaction(summary, None if summary else "the compaction failed")


def _make_placeholders(at: JsonPath, item: JsonDict, block: AnyBlock) -> Iterator[Placeholder]:
    match block:
        case ToolResult(content=str(words)):
            if words:
                yield Placeholder((*at, "content"), "text")
        case ToolResult(content=parts):
            for index, part in enumerate(parts):
                inside = (*at, "content", index)
                if isinstance(part, Text):
                    yield Placeholder((*inside, "text"), "text", index)
                elif isinstance(part, Media):
                    yield from _source_placeholders(inside, item["content"][index], index)
                elif isinstance(part, NativePart):
                    yield Placeholder(inside, "native", index)
        case _ if block.native:
            yield Placeholder(at, "native")
        case ToolCall():
            yield Placeholder((*at, "input"), "json")
        case Block(media=Media()):
            yield from _source_placeholders(at, item, None)
        case _:
            yield Placeholder(text_path(at), "text")


def _source_placeholders(at: JsonPath, item: JsonDict, part: int | None) -> Iterator[Placeholder]:
    """Yield placeholders for the bytes of an image or a document in the message."""
    source = item["source"]
    if source["type"] == "text":
        yield Placeholder((*at, "source", "data"), "words", part)
    elif source["type"] == "base64" and decode_media(source["data"])[1]:
        yield Placeholder((*at, "source", "data"), "base64", part)


_SETTINGS = (
    *("cache_control", "container", "context_management", "max_tokens", "mcp_servers"),
    *("metadata", "model", "output_config", "service_tier", "stop_sequences", "stream"),
    *("temperature", "thinking", "tool_choice", "top_k", "top_p"),
)
ANTHROPIC_DIALECT = Dialect(
    ANTHROPIC_MESSAGES, ("messages",), read_anthropic_parts, _SETTINGS, system_field="system"
)

FORMAT = make_message_format(ANTHROPIC_DIALECT, "messages of the Anthropic Messages API")
