"""Formats blocks as passages for a model, fences them, and divides them into chunks that fit."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import chain
from typing import TypeVar

from ....domain.blocks import UNSENT_KINDS, AnyBlock, Block, Kind, Media, ToolCall, ToolResult
from ....domain.item import Item, group_blocks
from ....domain.summaries.clean_text import make_printable
from ....domain.summaries.summarizer import Material

_T = TypeVar("_T")

MAX_CHARACTERS_BY_KIND: dict[Kind, int] = {
    Kind.THINKING: 2_000,
    Kind.TOOL_CALL: 4_000,
    Kind.TOOL_RESULT: 6_000,
}
"""The most characters shown of a block; messages are shown whole, tool data is not."""


@dataclass(frozen=True, slots=True)
class Passage:
    position: int
    head: str
    body: str


_CONTINUED = ", continued"
"""Ends the heads of all pieces of a passage but the first."""
PassageGroup = tuple[Passage, ...]
"""Passages that belong together: the pieces of one message, a call and its result."""


def make_passage_groups(items: Sequence[Item]) -> list[PassageGroup]:
    """Return the blocks as passages, in order, in groups that should not be split."""
    heads = {item.position: item for item in items}
    ends = _find_group_ends(items)
    groups: list[PassageGroup] = []
    current: list[Passage] = []
    reached = -1
    for index, item in enumerate(items):
        body = make_printable(_block_text(item.block)).strip("\n")
        if item.kind not in UNSENT_KINDS and body.strip():
            body = _shorten_middle(body, MAX_CHARACTERS_BY_KIND.get(item.kind, len(body)))
            current.append(Passage(item.position, _make_head(item, heads), body))
        reached = max(reached, ends[item.position])
        if reached == index and current:
            groups.append(tuple(current))
            current = []
    return groups


def _find_group_ends(items: Sequence[Item]) -> dict[int, int]:
    """Return, by the position of each block, the index of the last one that belongs to it."""
    index_of = {item.position: index for index, item in enumerate(items)}
    ends: dict[int, int] = {}
    for group in group_blocks(items):
        positions = [item.position for item in group]
        ends |= dict.fromkeys(positions, max(map(index_of.__getitem__, positions)))
    return ends


def _make_head(item: Item, known: dict[int, Item]) -> str:
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
    Kind.USER: "user",
    Kind.IMAGE: "user shows an image",
    Kind.DOCUMENT: "user hands over a document",
    Kind.ASSISTANT: "the agent",
    Kind.THINKING: "the agent thinks",
    Kind.DEVELOPER: "the program around the agent (not the user)",
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
) -> tuple[Sequence[Item], str | None]:
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


def measure_passages(passages: Sequence[Passage]) -> int:
    return sum(count_cautiously(passage.body) + PASSAGE_FRAME_TOKENS for passage in passages)


def make_chunks(groups: Sequence[PassageGroup], room: int) -> list[PassageGroup]:
    """Return the passages in order, in chunks of at most `room` tokens, each as full as possible.

    Only groups and passages larger than `room` are split.
    """
    parts = chain.from_iterable(_split_group(group, room) for group in groups)
    packed = pack(parts, room, measure_passages)
    return [tuple(chain.from_iterable(chunk)) for chunk in packed]


def pack(parts: Iterable[_T], room: int, measure: Callable[[_T], int]) -> list[list[_T]]:
    """Return the parts in order, in lists of at most `room` tokens or of one part."""
    packed: list[list[_T]] = []
    used = 0
    for part in parts:
        tokens = measure(part)
        if not packed or used + tokens > room:
            packed.append([])
            used = 0
        packed[-1].append(part)
        used += tokens
    return packed


def _split_group(group: PassageGroup, room: int) -> Iterator[PassageGroup]:
    """Yield a group whole if it fits, or else its passages, those too long in halves of halves."""
    if measure_passages(group) <= room:
        yield group
        return
    for passage in group:
        if len(group) > 1:
            yield from _split_group((passage,), room)
        else:
            yield from _split_passage(passage, room)


def _split_passage(passage: Passage, room: int) -> Iterator[PassageGroup]:
    body = passage.body
    if len(body) <= 1:
        yield (passage,)
        return
    # Between lines if possible.
    end = body.rfind("\n", len(body) // 4, len(body) * 3 // 4) + 1 or len(body) // 2
    rest = passage.head.removesuffix(_CONTINUED) + _CONTINUED
    yield from _split_group((replace(passage, body=body[:end]),), room)
    yield from _split_group((replace(passage, head=rest, body=body[end:]),), room)


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


def make_fence(passages: Iterable[Passage], *texts: str) -> Fence:
    return Fence([*texts, *(text for p in passages for text in (p.head, p.body))])
