"""Formats blocks as passages for a model, fences them, and divides them into chunks that fit."""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import chain

from ...domain.blocks import UNSENT_KINDS, AnyBlock, Block, BlockKind, Media, ToolCall, ToolResult
from ...domain.item import WindowItem
from ...domain.summaries.clean_text import make_printable
from ...domain.summaries.summarizer import Material

MAX_CHARACTERS_BY_KIND: dict[BlockKind, int] = {
    BlockKind.THINKING: 2_000,
    BlockKind.TOOL_CALL: 4_000,
    BlockKind.TOOL_RESULT: 6_000,
}
"""The most characters shown of a block; messages are shown whole, tool data is not."""


@dataclass(frozen=True, slots=True)
class Passage:
    position: int
    head: str
    body: str


_CONTINUED = ", continued"
"""Ends the heads of all pieces of a passage but the first."""


def make_passages(items: Sequence[WindowItem]) -> list[Passage]:
    """Return the blocks as passages, in order, without those that say nothing."""
    known = {item.position: item for item in items}
    passages: list[Passage] = []
    for item in items:
        body = make_printable(_block_text(item.block)).strip("\n")
        if item.kind not in UNSENT_KINDS and body.strip():
            body = _shorten_middle(body, MAX_CHARACTERS_BY_KIND.get(item.kind, len(body)))
            passages.append(Passage(item.position, _make_head(item, known), body))
    return passages


def _make_head(item: WindowItem, known: dict[int, WindowItem]) -> str:
    block = item.block
    if isinstance(block, ToolCall):
        return f"the agent calls {_describe_call(block)}"
    if isinstance(block, ToolResult):
        call = known.get(item.call) if item.call is not None else None
        of = f" of #{item.call}" if item.call is not None else ""
        name = f" {_describe_call(call.block)}" if call and isinstance(call.block, ToolCall) else ""
        return f"result{of}{name}" + (", an error" if block.is_error else "")
    return _HEADS.get(block.kind, str(block.kind))


def _describe_call(call: ToolCall) -> str:
    return " ".join(make_printable(call.name).split())[:80]


_HEADS = {
    BlockKind.USER: "user",
    BlockKind.IMAGE: "user shows an image",
    BlockKind.DOCUMENT: "user hands over a document",
    BlockKind.ASSISTANT: "the agent",
    BlockKind.THINKING: "the agent thinks",
    BlockKind.DEVELOPER: "the program around the agent (not the user)",
}


def _block_text(block: AnyBlock) -> str:
    if isinstance(block, ToolCall):
        return block.arguments
    media = block.media if isinstance(block, ToolResult) else [block.media]
    name = [block.name] if isinstance(block, Block) and block.name else []
    shown = [_describe_media(medium) for medium in media if medium is not None]
    return "\n".join([*name, *([block.text] if block.text else []), *shown])


def _describe_media(media: Media) -> str:
    where = media.url if media.url and not media.data else f"{len(media.data):,} bytes"
    return f"[{media.type} {media.mime} {media.name or ''} {where}]".replace("  ", " ")


def _shorten_middle(text: str, most: int) -> str:
    """Return both ends of a long text, with the number of characters left out."""
    if len(text) <= most:
        return text
    head, tail = most * 2 // 3, most // 3
    left_out = len(text) - head - tail
    return f"{text[:head]}\n[... {left_out:,} characters are not shown here ...]\n{text[-tail:]}"


async def read_source(
    material: Material, *, from_originals: bool
) -> tuple[Sequence[WindowItem], str | None]:
    """Return the blocks to sum up, and the earlier summary unless its originals replace it."""
    originals = material.originals
    if not from_originals or originals is None:
        return material.removed_items, material.previous
    return await asyncio.to_thread(lambda: list(originals(material.covers))), None


PASSAGE_FRAME_TOKENS = 16
"""The tokens of a passage apart from its body: head, marks and handle."""


def count_cautiously(text: str) -> int:
    """Return an upper bound of tokens: one per three ASCII characters, one per other character."""
    if text.isascii():
        return -(-len(text) // 3)
    plain = len(text.encode("ascii", "ignore"))
    return -(-plain // 3) + (len(text) - plain)


def measure_passage(passage: Passage) -> int:
    return count_cautiously(passage.body) + PASSAGE_FRAME_TOKENS


def make_chunks(passages: Iterable[Passage], room: int) -> list[list[Passage]]:
    """Return the passages in order, in chunks of at most `room` tokens, each as full as possible.

    Only passages larger than `room` are split.
    """
    chunks: list[list[Passage]] = []
    used = 0
    for part in chain.from_iterable(_split_passage(passage, room) for passage in passages):
        tokens = measure_passage(part)
        if not chunks or used + tokens > room:
            chunks.append([])
            used = 0
        chunks[-1].append(part)
        used += tokens
    return chunks


def _split_passage(passage: Passage, room: int) -> Iterator[Passage]:
    """Yield a passage whole if it fits, or else in halves of halves, cut between lines."""
    body = passage.body
    if len(body) <= 1 or measure_passage(passage) <= room:
        yield passage
        return
    end = body.rfind("\n", len(body) // 4, len(body) * 3 // 4) + 1 or len(body) // 2
    rest = passage.head.removesuffix(_CONTINUED) + _CONTINUED
    yield from _split_passage(replace(passage, body=body[:end]), room)
    yield from _split_passage(replace(passage, head=rest, body=body[end:]), room)


class Fence:
    """Marks with a word that occurs in none of the fenced texts.

    The word is derived from the texts, so the same prompt is always the same request.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        texts = tuple(texts)
        digest = sha256()
        for text in texts:
            digest.update(text.encode("utf-8", "surrogatepass"))
        self.word = digest.hexdigest()[:8]
        while any(self.word in text for text in texts):
            digest.update(b"again")
            self.word = digest.hexdigest()[:8]

    def wrap_text(self, name: str, text: str) -> str:
        """Return the text fenced under that name."""
        return f"<{name}-{self.word}>\n{text}\n</{name}-{self.word}>"

    def wrap_passages(self, passages: Iterable[Passage]) -> str:
        """Return the passages, each under a line that only this fence can produce."""
        return "\n".join(
            f"{self.word} #{passage.position} {passage.head}:\n{passage.body}"
            for passage in passages
        )
