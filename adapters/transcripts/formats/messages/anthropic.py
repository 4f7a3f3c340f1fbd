"""Anthropic Messages: content in typed blocks, the system prompt beside the messages."""

from collections.abc import Iterator
from typing import Any

from .....domain.blocks import AnyBlock, Block, Kind, Media, NativePart, Text, ToolCall, ToolResult
from ..claude_code.content import UnheardError, assistant_item, user_item
from ..content.holes import At, Hole
from ..format import Format
from ..json_lines import Line
from ..reading.fields import Item, MalformedError, take, take_optional
from .conversation import Asking, Dialect
from .media_read import from_base64
from .pieces import Compaction, Made, Piece, Unheard, Wrong, at_text, texts
from .reader import reader
from .telling import ANTHROPIC, recogniser
from .writer import writer


def pieces(message: Item, line: Line, number: int) -> Iterator[Piece]:  # noqa: ARG001 - as others
    """What a message holds, in the order in which it was said."""
    role = take(message, "role", str)
    if role not in {"user", "assistant", "system"}:
        yield Unheard(f"role/{role}", message)
        return
    for at, item in texts(message, "content"):
        try:
            yield _piece(role, at, item, line)
        except UnheardError as unheard:
            yield Unheard(f"content/{unheard}", item)
        except MalformedError as error:
            place = f"[{at[-1]}]" if isinstance(at[-1], int) else ""
            yield Wrong(f"content{place}: {error}", item)


def _piece(role: str, at: At, item: Any, line: Line) -> Piece:
    if isinstance(item, dict) and item.get("type") == "compaction":
        return _compaction(item)
    read = assistant_item if role == "assistant" else user_item
    block = read({}, item, line)
    if role == "system" and isinstance(block, Block) and block.kind is Kind.USER:
        block = block.model_copy(update={"kind": Kind.DEVELOPER})
    return Made(block, tuple(_holes(at, item, block)))


def _compaction(item: Item) -> Compaction:
    summary = take_optional(item, "content", str)
    if summary is None and item.get("encrypted_content"):
        return Compaction(None, "the summary is encrypted")
    return Compaction(summary, None if summary else "the compaction failed")


def _holes(at: At, item: Item, block: AnyBlock) -> Iterator[Hole]:
    match block:
        case ToolResult(content=str(words)):
            if words:
                yield Hole((*at, "content"), "text")
        case ToolResult(content=parts):
            for index, part in enumerate(parts):
                inside = (*at, "content", index)
                if isinstance(part, Text):
                    yield Hole((*inside, "text"), "text", index)
                elif isinstance(part, Media):
                    yield from _source(inside, item["content"][index], index)
                elif isinstance(part, NativePart):
                    yield Hole(inside, "native", index)
        case _ if block.native:
            yield Hole(at, "native")
        case ToolCall():
            yield Hole((*at, "input"), "json")
        case Block(media=Media()):
            yield from _source(at, item, None)
        case _:
            yield Hole(at_text(at), "text")


def _source(at: At, item: Item, part: int | None) -> Iterator[Hole]:
    """The bytes of an image or a document, where they stand in the message."""
    source = item["source"]
    if source["type"] == "text":
        yield Hole((*at, "source", "data"), "words", part)
    elif source["type"] == "base64" and from_base64(source["data"])[1]:
        yield Hole((*at, "source", "data"), "base64", part)


ASKING = Asking(
    system="system",
    settings=frozenset(
        (
            *("cache_control", "container", "context_management", "max_tokens", "mcp_servers"),
            *("metadata", "model", "output_config", "service_tier", "stop_sequences", "stream"),
            *("temperature", "thinking", "tool_choice", "top_k", "top_p"),
        )
    ),
)
DIALECT = Dialect(ANTHROPIC, ("messages",), pieces, ASKING)

FORMAT = Format(
    name=ANTHROPIC,
    what="messages of the Anthropic Messages API",
    recognises=recogniser(ANTHROPIC),
    read=reader(DIALECT),
    write=writer(DIALECT),
    suffix=".json",
)
