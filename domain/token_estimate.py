"""Estimates tokens, four characters each by default, and calibrates them by providers' reports."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
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


class ContentKind(StrEnum):
    """A kind of content that a model's tokenizer treats alike."""

    TEXT = "text"
    """Text of users and harnesses."""
    ANSWER = "answer"
    THINKING = "thinking"
    CALL = "tool calls"
    RESULT = "tool results"
    MEDIA = "media"
    REQUEST = "request"
    """System prompt, tools, and the summary."""
    FRAME = "frame"
    """Tokens that a provider adds around each block, which no estimate of text includes."""


FRAME_TOKENS = 4
"""Tokens around a block before anything was learned."""
PRIOR_WEIGHT_TOKENS = 500.0
"""The weight of the estimate itself, in tokens: so many reported tokens outweigh it."""
MIN_RATIO, MAX_RATIO = 0.25, 4.0
"""The limits of a ratio, which allow for tokens of one to sixteen characters."""
MAX_UNSEEN_TOKENS = 250_000
"""The most tokens that a provider may count for its own tools and prompts, which no log holds."""
MAX_EXTRA_BLOCK_TOKENS, MAX_TOKENS_PER_SEALED_CHAR = 200, 1
"""How much larger an answer may be than it shows: tokens a block, tokens a sealed character."""

ContentTokens = Mapping[ContentKind, int]

CONTENT_KINDS: Mapping[BlockKind, ContentKind] = MappingProxyType(
    {
        BlockKind.ASSISTANT: ContentKind.ANSWER,
        BlockKind.THINKING: ContentKind.THINKING,
        BlockKind.TOOL_CALL: ContentKind.CALL,
        BlockKind.TOOL_RESULT: ContentKind.RESULT,
    }
)
"""Other kinds are text."""


@dataclass(frozen=True, slots=True)
class CalibrationSums:
    """The estimated and reported tokens of one kind of content."""

    estimated: float = PRIOR_WEIGHT_TOKENS
    reported: float = PRIOR_WEIGHT_TOKENS

    @property
    def ratio(self) -> float:
        return min(MAX_RATIO, max(MIN_RATIO, self.reported / self.estimated))


_NOTHING: Mapping[ContentKind, CalibrationSums] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class TokenCalibration:
    """The model's tokens for each estimated token, by kind of content.

    An immutable value: each call returns a new one.
    """

    model: str | None = None
    """The model whose ratios are in use: that of the newest call."""
    models: Mapping[str | None, Mapping[ContentKind, CalibrationSums]] = field(default_factory=dict)
    prior: Mapping[ContentKind, float] = field(default_factory=dict)
    """The ratios of content without reports, by kind; 1.0 for others."""

    @property
    def has_learned(self) -> bool:
        return bool(self.prior or self._find_model_sums(self.model))

    def get_ratio(self, sort: ContentKind) -> float:
        return self._find_sums(sort).ratio

    def predict_tokens(self, load: ContentTokens) -> float:
        return sum(size * self._find_sums(sort).ratio for sort, size in load.items() if size)

    def switch_model(self, model: str | None) -> "TokenCalibration":
        """Return the calibration for another model; a new one starts with the last one's ratios."""
        if model == self.model:
            return self
        known = (
            self.models
            if model in self.models
            else {**self.models, model: self._find_model_sums(self.model)}
        )
        return replace(self, model=model, models=MappingProxyType(dict(known)))

    def learn_growth(self, load: ContentTokens, growth: float) -> "TokenCalibration":
        """Return the calibration after a load was appended and the context grew by `growth` tokens.

        The growth is divided in proportion to what was expected of each kind, so that the sums are
        right and no kind absorbs the error of a rare one.
        """
        expected = self.predict_tokens(load)
        if expected <= 0:
            return self
        # Limit the effect of one report that is out of all proportion.
        growth = min(MAX_RATIO * expected, max(MIN_RATIO * expected, growth))
        taught = dict(self._find_model_sums(self.model))
        for sort, size in load.items():
            if size > 0:
                one = self._find_sums(sort)
                share = growth * size * one.ratio / expected
                taught[sort] = CalibrationSums(one.estimated + size, one.reported + share)
        models = {**self.models, self.model: MappingProxyType(taught)}
        return replace(self, models=MappingProxyType(models))

    def _find_sums(self, sort: ContentKind) -> CalibrationSums:
        return self._find_model_sums(self.model).get(sort) or CalibrationSums(
            reported=PRIOR_WEIGHT_TOKENS * self.prior.get(sort, 1.0)
        )

    def _find_model_sums(self, model: str | None) -> Mapping[ContentKind, CalibrationSums]:
        return self.models.get(model, _NOTHING)


def make_uniform_ratios(ratio: float) -> dict[ContentKind, float]:
    """Return one ratio for all kinds but media, which follow the provider's own rule."""
    return {kind: ratio for kind in ContentKind if kind is not ContentKind.MEDIA}


def is_credible(context: int, expected: float) -> bool:
    """Check whether a reported context is possible, given the expected tokens.

    The lower limit is the density of text, the upper one the size of a provider's own prompt.
    """
    return (
        MIN_RATIO * expected <= context <= MAX_RATIO * expected + MAX_UNSEEN_TOKENS and context > 0
    )
