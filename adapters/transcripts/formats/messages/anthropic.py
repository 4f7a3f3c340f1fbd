"""Defines Anthropic Messages: typed content blocks, and a separate system prompt."""

from collections.abc import Iterator
from typing import Any

from .....domain.blocks import Block, BlockKind
from ..claude_code.content import read_assistant_item, read_user_item
from ..fields import JsonDict, get_field, require_field
from ..json_lines import SourceLine
from .message_file_reader import ANTHROPIC_MESSAGES
from .message_file_writer import make_message_format
from .message_reader import (
    Dialect,
    MessagePart,
    ProviderCompaction,
    UnknownPart,
    read_content_parts,
)


def read_anthropic_parts(message: JsonDict, line: SourceLine, number: int) -> Iterator[MessagePart]:  # noqa: ARG001 - as others
    role = require_field(message, "role", str)
    if role not in {"user", "assistant", "system"}:
        yield UnknownPart(f"role/{role}", message)
        return
    yield from read_content_parts(message, "content", lambda item: _read_part(role, item, line))


def _read_part(role: str, item: Any, line: SourceLine) -> MessagePart:
    if isinstance(item, dict) and item.get("type") == "compaction":
        return _read_compaction(item)
    read = read_assistant_item if role == "assistant" else read_user_item
    block = read({}, item, line)
    if role == "system" and isinstance(block, Block) and block.kind is BlockKind.USER:
        return block.model_copy(update={"kind": BlockKind.DEVELOPER})
    return block


def _read_compaction(item: JsonDict) -> ProviderCompaction:
    summary = get_field(item, "content", str)
    if summary is None and item.get("encrypted_content"):
        return ProviderCompaction(None, "the summary is encrypted")
    return ProviderCompaction(summary, None if summary else "the compaction failed")


_SETTINGS = (
    *("cache_control", "container", "context_management", "max_tokens", "mcp_servers"),
    *("metadata", "model", "output_config", "service_tier", "stop_sequences", "stream"),
    *("temperature", "thinking", "tool_choice", "top_k", "top_p"),
)
ANTHROPIC_DIALECT = Dialect(
    ANTHROPIC_MESSAGES, ("messages",), read_anthropic_parts, _SETTINGS, system_field="system"
)

FORMAT = make_message_format(ANTHROPIC_DIALECT, "messages of the Anthropic Messages API")
