"""Estimates sizes: four characters a token by default."""

from .blocks import AnyBlock, Block, Media, Text, ToolCall

CHARS_PER_TOKEN = 4
IMAGE_CHARS = 1_200
"""The characters that an image or document counts as (DOSSIER section 4): 300 tokens."""


def estimate_block(block: AnyBlock) -> int:
    """Return the tokens of a block as a model reads it; at least 1."""
    return -(-count_characters(block) // CHARS_PER_TOKEN) or 1


def estimate_text(text: str) -> int:
    """Return the tokens of a text; 0 if it is empty."""
    return -(-len(text) // CHARS_PER_TOKEN)


def count_characters(block: AnyBlock) -> int:
    """Return the characters (code points) that a model reads of a block."""
    if isinstance(block, Block):
        return len(block.text) + _count_media(block.media)
    if isinstance(block, ToolCall):
        return len(block.name) + len(block.arguments)
    if isinstance(block.content, str):
        return len(block.content)
    return sum(_count_part(part) for part in block.content)


def _count_part(part: object) -> int:
    if isinstance(part, Text):
        return len(part.text)
    return _count_media(part) if isinstance(part, Media) else 0


def _count_media(media: Media | None) -> int:
    return IMAGE_CHARS if media is not None else 0
