"""Estimates tokens, four characters each by default, and defines what counts and counters are."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol

from .blocks import AnyBlock, Block, BlockKind, Media, Text, ToolCall, ToolResult

CHARS_PER_TOKEN = 4
IMAGE_CHARS = 1_200
"""The characters that an image or document counts as (DOSSIER section 4): 300 tokens."""


def estimate_block(block: AnyBlock) -> int:
    """Return the tokens of a block as a model reads it; at least 1."""
    return -(-count_characters(block) // CHARS_PER_TOKEN) or 1


def estimate_text(text: str) -> int:
    """Return the tokens of a text; 0 if it is empty."""
    return -(-len(text) // CHARS_PER_TOKEN)


def count_bytes(text: str) -> int:
    """Return the bytes of a text in UTF-8; a lone surrogate counts as a character."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def count_fitting_chars(text: str, room: int) -> int:
    """Return how many characters from the beginning of a text fit into `room` bytes."""
    longest = text[:room]
    if longest.isascii():
        return len(longest)
    return bisect_right(range(len(longest)), room, key=lambda n: count_bytes(longest[: n + 1]))


def count_characters(block: AnyBlock) -> int:
    """Return the characters (code points) that a model reads of a block."""
    # Exact types, because pydantic makes `isinstance` slow wherever the answer is no.
    if type(block) is Block:
        return len(block.text) + (IMAGE_CHARS if block.media else 0)
    if type(block) is ToolCall:
        return len(block.name) + len(block.arguments)
    if type(block) is ToolResult and isinstance(block.content, str):
        return len(block.content)
    return sum([len(p) if isinstance(p, str) else IMAGE_CHARS for p in iter_pieces(block)])


ReadablePiece = str | Media


class TokenCounter(Protocol):
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


class SizeBasis(StrEnum):
    REPORTED = "reported"
    """The provider counted this prompt."""
    ESTIMATED = "estimated"
    """By the session's calibration, or by the plain estimate if no call was reported."""


class PromptSizeChange(NamedTuple):
    """The sizes of the whole prompt before and after a compaction, with system prompt and tools."""

    before: int
    after: int
    basis: SizeBasis

    def __str__(self) -> str:
        return f"{self.before:,} -> {self.after:,} tokens, {self.basis}"


class PromptSize(NamedTuple):
    tokens: int
    basis: SizeBasis

    def __str__(self) -> str:
        return f"{self.tokens:,} tokens, {self.basis}"


@dataclass(frozen=True, slots=True)
class KindShare:
    kind: BlockKind
    blocks: int
    tokens: int


def compute_kind_shares(sizes: Iterable[tuple[BlockKind, int]]) -> tuple[KindShare, ...]:
    kinds: dict[BlockKind, list[int]] = {}
    for kind, tokens in sizes:
        kinds.setdefault(kind, []).append(tokens)
    shares = [KindShare(kind, len(tokens), sum(tokens)) for kind, tokens in kinds.items()]
    return tuple(sorted(shares, key=lambda share: -share.tokens))
