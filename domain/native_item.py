"""Stores the item of a provider or framework once: without what its blocks hold, to be filled in.

An item is one JSON value, such as a message, that was read into blocks. Its last block's event
keeps the JSON text; each text, argument, image and native item that a block holds is cut out.
"""

import json
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from .blocks import AnyBlock, Block, Media, Native, NativePart, Text, ToolCall, ToolResult
from .cached_property import cached_property
from .errors import InvalidSettingError
from .event import StoredValue

_MIN_CUT_CHARS = 32
"""Shorter texts stay in the item, as a cut would need as many bytes."""

Spelling = Literal["json", "ascii", "raw"]
"""How an item writes a text: in a JSON string, in one with ASCII alone, or as JSON itself."""


class Cut(StoredValue):
    """A place of an item's text where something of a block is filled in."""

    at: int
    """The characters of the stored text before it."""
    piece: int = 0
    """Which of the item's blocks holds it."""
    part: int = 0
    """Which of the block's texts it is, as `_list_texts` orders them."""
    spelling: Spelling = "json"


class CutItem(Native):
    """An item as stored: `item` is its JSON text without what its blocks hold."""

    cuts: tuple[Cut, ...] = ()
    pieces: tuple[int, ...] = ()
    """The positions of its other blocks, which all come before the one that keeps it."""


@dataclass(frozen=True)
class Item:
    """A message or another item as a provider or a framework has it, and what it says as blocks.

    Appended as one, it comes back field for field, the fields in their order. Its blocks share a
    message id, so they leave a view together.
    """

    json: Mapping[str, Any] | Sequence[Any] | str
    """The item, or its JSON text."""
    blocks: Sequence[AnyBlock]
    provider: str = ""
    """Whose item it is: a name of your own, or a wire format such as `openai-responses`."""

    def __post_init__(self) -> None:
        if not self.blocks:
            raise InvalidSettingError("an item needs at least one block that says what it holds")
        if len({block.message_id for block in self.blocks} - {None}) > 1:
            raise InvalidSettingError("the blocks of one item need one message_id, or none")
        self.text  # noqa: B018 - to refuse here what is no JSON

    @cached_property
    def text(self) -> str:
        """The item as JSON text."""
        try:
            if not isinstance(self.json, str):
                return json.dumps(self.json, ensure_ascii=False)
            json.loads(self.json)
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidSettingError(f"the item is not JSON: {error}") from None
        return self.json

    @cached_property
    def cut(self) -> CutItem:
        """The item as it is stored, once the positions of its blocks are known."""
        owners: dict[tuple[str, Spelling], list[tuple[int, int]]] = {}
        for piece, block in enumerate(self.blocks):
            for part, source in enumerate(_list_texts(block)):
                for spelling, written in _spell(source):
                    owners.setdefault((written, spelling), []).append((piece, part))
        left: list[str | Cut] = [self.text]
        # The longest first, as a shorter one may be a part of it.
        for (written, spelling), owned in sorted(owners.items(), key=lambda one: -len(one[0][0])):
            left = list(_cut_out(left, written, spelling, owned))
        kept, cuts, at = list[str](), list[Cut](), 0
        for one in left:
            if isinstance(one, Cut):
                cuts.append(one.model_copy(update={"at": at}))
            else:
                kept.append(one)
                at += len(one)
        return CutItem(provider=self.provider, item="".join(kept), cuts=tuple(cuts))

    def make_pieces(self, position: int) -> list[AnyBlock]:
        """Return the blocks; if there are several, with a message id to hold them together.

        `position` is where the first may come, which no other item has.
        """
        named = next((block.message_id for block in self.blocks if block.message_id), None)
        if named is None and len(self.blocks) > 1:
            named = f"#{position}"
        shared = {"message_id": named}
        return [
            block if block.message_id == named else block.model_copy(update=shared)
            for block in self.blocks
        ]


def _cut_out(
    left: Iterable[str | Cut], written: str, spelling: Spelling, owners: Sequence[tuple[int, int]]
) -> Iterator[str | Cut]:
    """Yield what is left of an item's text, with cuts wherever a text is written.

    Blocks that hold the same text own one place each, in their order, and the last one the rest.
    """
    number = 0
    for one in left:
        if isinstance(one, Cut) or written not in one:
            yield one
            continue
        before, *behind = one.split(written)
        yield before
        for text in behind:
            piece, part = owners[min(number, len(owners) - 1)]
            yield Cut(at=0, piece=piece, part=part, spelling=spelling)
            yield text
            number += 1


def fill_item(
    item: CutItem, blocks: Sequence[AnyBlock], shown: Mapping[int, str] | None = None
) -> str | None:
    """Return an item's JSON text, with what its blocks hold in place.

    `shown` has the shortened texts by the index of their blocks. None if one of them cannot take
    the block's place in the item: it is not the one text that the block holds.
    """
    shown, texts = shown or {}, [_list_texts(block) for block in blocks]
    if any(not _is_one_text(blocks[piece], piece, item.cuts) for piece in shown):
        return None
    filled, end = list[str](), 0
    for cut in item.cuts:
        source = shown.get(cut.piece, texts[cut.piece][cut.part])
        filled += [item.item[end : cut.at], _spell_as(cut.spelling, source)]
        end = cut.at
    return "".join([*filled, item.item[end:]])


def _is_one_text(block: AnyBlock, piece: int, cuts: Sequence[Cut]) -> bool:
    """Check whether all that an item has of a block is one text, in the item's strings."""
    mine = [cut for cut in cuts if cut.piece == piece]
    is_text = not isinstance(block, ToolCall) and len(_list_texts(block)) == 1
    return bool(mine) and is_text and all(cut.spelling != "raw" for cut in mine)


def _list_texts(block: AnyBlock) -> list[str]:
    """Return what a block holds, in a fixed order that stored cuts refer to."""
    texts: list[str] = []
    if not isinstance(block, ToolResult):
        texts.append(block.text)
        if isinstance(block, Block) and block.media and block.media.data:
            texts.append(_encode(block.media))
    elif isinstance(block.content, str):
        texts.append(block.content)
    else:
        for part in block.content:
            match part:
                case Text(text=text):
                    texts.append(text)
                case NativePart(native=native):
                    texts.append(native.item)
                case _:
                    texts.append(_encode(part))
    if block.native:
        texts.append(block.native.item)
    return texts


def _encode(media: Media) -> str:
    return b64encode(media.data).decode("ascii")


def _spell(source: str) -> Iterator[tuple[Spelling, str]]:
    """Yield the ways in which an item may write a text, if it is worth a cut."""
    if len(source) < _MIN_CUT_CHARS:
        return
    written = set[str]()
    spellings: tuple[Spelling, ...] = ("json", "ascii", "raw")
    for spelling in spellings:
        text = _spell_as(spelling, source)
        if text not in written and (spelling != "raw" or source[0] in '{["'):
            written.add(text)
            yield spelling, text


def _spell_as(spelling: Spelling, source: str) -> str:
    return source if spelling == "raw" else _ENCODERS[spelling](source)[1:-1]


_ENCODERS = {
    "json": json.JSONEncoder(ensure_ascii=False).encode,
    "ascii": json.JSONEncoder().encode,
}
"""How a string is written in JSON, by its spelling."""
