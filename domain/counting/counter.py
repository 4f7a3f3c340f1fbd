"""The port of all that counts tokens, and what of a block there is to count."""

from collections.abc import Iterator
from typing import Protocol

from ..blocks import AnyBlock, Block, Media, Text, ToolCall
from ..token_estimate import estimate_block, estimate_text

ReadablePiece = str | Media


class Counter(Protocol):
    """Says how many tokens something takes; the same thing is always as large."""

    @property
    def name(self) -> str:
        """What settings call it, as `chars/4` or `o200k_base`."""
        ...

    def count(self, block: AnyBlock, /) -> int:
        """Tokens of a block as a model would read it; at least 1."""
        ...

    def count_text(self, text: str, /) -> int:
        """Tokens of a piece of text; 0 where there is none."""
        ...


class CharacterEstimate:
    """The estimate that stands beside each stored block: four characters a token."""

    name = "chars/4"

    def count(self, block: AnyBlock, /) -> int:
        return estimate_block(block)

    def count_text(self, text: str, /) -> int:
        return estimate_text(text)


def iter_pieces(block: AnyBlock) -> Iterator[ReadablePiece]:
    """The texts and media that a model would read of a block, in order."""
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
    """Whether an image or a document is among what a model would read."""
    if isinstance(block, Block):
        return block.media is not None
    return not isinstance(block, ToolCall) and bool(block.media)
