"""Blocks as the plain texts that they are made of, for whoever reads or measures no more."""

from ..blocks import AnyBlock, Block, Media, NativePart, Part, Text, ToolCall

IMAGE = "[image]"
DOCUMENT = "[document]"


def parts_of(block: AnyBlock) -> tuple[str, ...]:
    """The texts of a block, in order; an image is its address, or says that it is one.

    Of a tool call there are none: how its arguments are written is for whoever asks to say.
    """
    if isinstance(block, ToolCall):
        return ()
    if isinstance(block, Block):
        shown = (_media(block.media),) if block.media is not None else ()
        return (block.text, *shown) if block.text or not shown else shown
    if isinstance(block.content, str):
        return (block.content,)
    return tuple(text for part in block.content if (text := _part(part)) is not None)


def _part(part: Part) -> str | None:
    if isinstance(part, NativePart):
        return None  # only its provider knows what it says
    return part.text if isinstance(part, Text) else _media(part)


def _media(media: Media) -> str:
    return media.url or (IMAGE if media.type == "image" else DOCUMENT)
