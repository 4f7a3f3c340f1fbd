"""Defines the interface of token counters, and which pieces of a block count."""

from collections.abc import Iterator
from typing import Protocol

from ..blocks import AnyBlock, Block, Media, Text, ToolCall
from ..token_estimate import estimate_block, estimate_text

ReadablePiece = str | Media


class Counter(Protocol):
    """Counts tokens; the same input always has the same count."""

    @property
    def name(self) -> str:
        """The name in settings, such as `chars/4` or `o200k_base`."""
        ...

    def count(self, block: AnyBlock, /) -> int:
        """Return the tokens of a block as a model reads it; at least 1."""
        ...

    def count_text(self, text: str, /) -> int:
        """Return the tokens of a text; 0 if it is empty."""
        ...


class CharacterEstimate:
    """The estimate stored with each block: four characters a token."""

    name = "chars/4"

    def count(self, block: AnyBlock, /) -> int:
        return estimate_block(block)

    def count_text(self, text: str, /) -> int:
        return estimate_text(text)


def iter_pieces(block: AnyBlock) -> Iterator[ReadablePiece]:
    """Yield the texts and media that a model reads of a block, in order."""
    if isinstance(block, Block):
        if block.text:
            yield block.text
        if block.media is not None:
            yield block.media
    elif isinstance(block, ToolCall):
        yield block.name
        yield block.arguments
    elif isinstance(block.content, str):
        yield block.content
    else:
        for part in block.content:
            if isinstance(part, Text):
                yield part.text
            elif isinstance(part, Media):
                yield part


def has_media(block: AnyBlock) -> bool:
    """Check whether a model would read an image or a document in the block."""
    if isinstance(block, Block):
        return block.media is not None
    return not isinstance(block, ToolCall) and bool(block.media)
