"""Formats a block: its kind, its status and its content."""

from collections.abc import Iterable, Iterator

from ....domain.blocks import UNSENT_KINDS, AnyBlock, Block, Media, NativePart, Text, ToolCall
from ....domain.settlement import BlockStatus
from ....domain.token_estimate import estimate_block
from .logged_blocks import LoggedBlock
from .printing import format_count


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
