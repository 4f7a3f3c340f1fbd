"""Reads and writes blocks as JSON, and formats them: their kind, their status and their content.

`append --blocks` reads what `show` and `recall` write.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from pydantic import ValidationError

from ....domain.blocks import (
    UNSENT_KINDS,
    AnyBlock,
    Block,
    Kind,
    Media,
    NativePart,
    Text,
    ToolCall,
    ToolResult,
)
from ....domain.errors import InvalidSettingError
from ....domain.record import find_unknown
from ....domain.settlement import BlockStatus
from ....domain.token_estimate import estimate_block
from ...runtime.sessions.recall import RecalledBlock
from .handles import LoggedBlock
from .printing import format_count

_CLASSES: dict[str, type[ToolCall | ToolResult]] = {
    Kind.TOOL_CALL: ToolCall,
    Kind.TOOL_RESULT: ToolResult,
}


def block_to_json(block: AnyBlock) -> dict[str, Any]:
    fields = block.model_dump(mode="json", exclude_none=True)
    return {"kind": block.kind.value, **fields}


def placed_to_json(one: LoggedBlock | RecalledBlock) -> dict[str, Any]:
    return {
        "handle": f"#{one.position}",
        "position": one.position,
        "turn": one.turn,
        "kind": one.block.kind,
        "tokens": estimate_block(one.block),
    }


def parse_json(text: str, where: str) -> Any:
    """Parse a JSON text; error messages call it `where`."""
    try:
        return json.loads(text)
    except ValueError as error:
        raise InvalidSettingError(f"{where} is not JSON: {error}") from None
    except RecursionError:
        raise InvalidSettingError(f"{where} is nested too deeply") from None


def parse_blocks(text: str, where: str) -> list[AnyBlock]:
    """Parse a JSON list of blocks; error messages call it `where`."""
    entries = parse_json(text, where)
    if not isinstance(entries, list) or not entries:
        raise InvalidSettingError(f"{where} must hold a JSON list of blocks, and at least one")
    return [
        _parse_block(entry, f"{where}: block {number}") for number, entry in enumerate(entries, 1)
    ]


def _parse_block(entry: Any, where: str) -> AnyBlock:
    if not isinstance(entry, dict):
        raise InvalidSettingError(f"{where} must be a JSON object")
    fields = dict(entry)
    kind = fields.get("kind")
    if kind in _CLASSES:
        del fields["kind"]
    try:
        block = _CLASSES.get(str(kind), Block).model_validate(fields)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"])) or "it"
        raise InvalidSettingError(f"{where}: {name}: {first['msg']}") from None
    # A log may hold unknown fields; in a person's input they are a mistake.
    if unknown := find_unknown(block):
        raise InvalidSettingError(f"{where}: {unknown}")
    return block


def format_block_heading(
    position: int,
    block: AnyBlock,
    marks: Iterable[str] = (),
    tokens: int | None = None,
    *,
    brief: bool = False,
) -> str:
    """Return `#12 tool_call Read (call_7), 14 tokens [summarised]`; `brief` omits the call's id."""
    name = block.name if isinstance(block, Block | ToolCall) else None
    words = [f"#{position}", str(block.kind)]
    words += [name] if name else []
    words += [] if brief or isinstance(block, Block) else [f"({block.tool_call_id})"]
    size = format_count(estimate_block(block) if tokens is None else tokens, "token")
    marked = ", ".join(marks)
    return f"{' '.join(words)}, {size}" + (f"  [{marked}]" if marked else "")


def block_status_marks(logged: LoggedBlock) -> Iterator[str]:
    """Yield the marks of a block's status; none if it is in the view as it was logged."""
    if logged.status is None:
        yield "lost to the view, run `cutbank verify`"
    elif logged.block.kind in UNSENT_KINDS and logged.status is not BlockStatus.RETRACTED:
        yield "never sent"
    elif logged.status is not BlockStatus.VISIBLE:
        yield str(logged.status)
    if logged.pending:
        yield f"{logged.pending} from the next boundary on"
    yield from format_refusal(logged.block)
    if logged.is_open:
        yield "open"
    if getattr(logged.block, "is_error", False):
        yield "error"


def format_refusal(block: AnyBlock) -> Iterator[str]:
    """Yield the reason why a block is kept raw, if its source could not be read."""
    if block.origin and block.origin.refused:
        yield f"not read: {block.origin.refused}"


def format_block_body(block: AnyBlock) -> Iterator[str]:
    """Yield the content of a block, piece by piece; one line for an image or a document."""
    if isinstance(block, Block):
        if block.text:
            yield block.text
        if block.media:
            yield _describe_media(block.media)
    elif isinstance(block, ToolCall) or isinstance(block.content, str):
        if block.text:
            yield block.text
    else:
        for part in block.content:
            match part:
                case Text():
                    yield part.text
                case Media():
                    yield _describe_media(part)
                case NativePart():
                    yield f"[{part.native.provider} item, {len(part.native.item):,} characters]"


def _describe_media(media: Media) -> str:
    what = f"{media.type} {media.mime}, {len(media.data):,} bytes"
    if media.name:
        what += f", {media.name}"
    return f"[{what}{f', at {media.url}' if media.url else ''}]"
