"""Reads blocks as plain texts."""

from ..blocks import AnyBlock, Block, Media, NativePart, ResultPart, Text, ToolCall

_IMAGE_TEXT = "[image]"
_DOCUMENT_TEXT = "[document]"


def list_text_parts(block: AnyBlock) -> tuple[str, ...]:
    """Return the texts of a block, in order; an image is its address or a placeholder.

    A tool call has none; callers format its arguments themselves.
    """
    if isinstance(block, ToolCall):
        return ()
    if isinstance(block, Block):
        shown = (_name_media(block.media),) if block.media is not None else ()
        return (block.text, *shown) if block.text or not shown else shown
    if isinstance(block.content, str):
        return (block.content,)
    return tuple(text for part in block.content if (text := _read_part(part)) is not None)


def _read_part(part: ResultPart) -> str | None:
    if isinstance(part, NativePart):
        return None  # only its provider can read it
    return part.text if isinstance(part, Text) else _name_media(part)


def _name_media(media: Media) -> str:
    return media.url or (_IMAGE_TEXT if media.type == "image" else _DOCUMENT_TEXT)
