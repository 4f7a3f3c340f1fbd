"""Formats blocks as text for a model, each under a head with its handle and kind."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ....domain.blocks import UNSENT_KINDS, AnyBlock, Block, Kind, Media, ToolCall, ToolResult
from ....domain.item import Item
from ....domain.summaries.extraction.clean_text import make_printable

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

    def split(self, most: int) -> Iterator["Passage"]:
        """Yield pieces of at most that many characters, cut between lines if possible."""
        bodies = list(_cut_text(self.body, most))
        for number, body in enumerate(bodies, 1):
            yield replace(self, head=f"{self.head}, part {number} of {len(bodies)}", body=body)


PassageGroup = tuple[Passage, ...]
"""Passages that belong together: the pieces of one message, a call and its result."""


def make_passage_groups(
    items: Sequence[Item], shown: dict[Kind, int] | None = None
) -> list[PassageGroup]:
    """Return the blocks as passages, in order, in groups that should not be split."""
    longest = MAX_CHARACTERS_BY_KIND if shown is None else shown
    heads = {item.position: item for item in items}
    groups: list[PassageGroup] = []
    current: list[Passage] = []
    for item, is_last in zip(items, _find_group_ends(items), strict=True):
        if item.kind not in UNSENT_KINDS:
            current += _make_passages(item, heads, longest)
        if is_last and current:
            groups.append(tuple(current))
            current = []
    return groups


def _make_passages(
    item: Item, known: dict[int, Item], longest: dict[Kind, int]
) -> Iterator[Passage]:
    body = make_printable(_block_text(item.block)).strip("\n")
    if body.strip():
        most = longest.get(item.kind, len(body))
        yield Passage(item.position, _make_head(item, known), _shorten_middle(body, most))


def _find_group_ends(items: Sequence[Item]) -> list[bool]:
    """Return for each block whether a group ends there: no call is open and the message ends."""
    last: dict[tuple[str, object], int] = {}
    for index, item in enumerate(items):
        for key in _find_ties(item):
            last[key] = index
    ends: list[bool] = []
    reaches = -1
    for index, item in enumerate(items):
        reaches = max(reaches, *(last[key] for key in _find_ties(item)))
        ends.append(reaches <= index)
    return ends


def _find_ties(item: Item) -> list[tuple[str, object]]:
    """Return keys that a block shares with related blocks."""
    ties: list[tuple[str, object]] = [("block", item.position)]
    if item.call is not None:
        ties.append(("block", item.call))
    if item.block.message_id is not None:
        ties.append(("message", item.block.message_id))
    return ties


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


def _cut_text(text: str, most: int) -> Iterator[str]:
    while len(text) > most:
        line = text.rfind("\n", most // 2, most)
        end = line + 1 if line >= 0 else most
        yield text[:end]
        text = text[end:]
    yield text
