"""The blocks of one entry in the making, each with the place that it was taken from."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from .....domain.blocks import AnyBlock, Block, Kind, Media, Native, Origin, Part, Text, ToolResult
from ..content import media_text
from ..content.holes import At, Form, Hole, Same, copies, rest_of
from ..json_lines import Line
from ..steps import Append


@dataclass(frozen=True, slots=True)
class Whence:
    """Where an entry stands."""

    format: str
    key: str
    """Its append identity."""
    line: Line
    """What it was read from: spells its parts."""
    number: int
    id: str | None = None
    time: str | None = None


@dataclass(frozen=True, slots=True)
class Picture:
    """An image, and the text that it was read from."""

    media: Media
    text: str
    form: Form = "address"


@dataclass(slots=True)
class Pieces:
    """What an entry says, piece by piece."""

    blocks: list[AnyBlock] = field(default_factory=list)
    holes: list[Hole] = field(default_factory=list)
    same: list[Same] = field(default_factory=list)

    def add(self, block: AnyBlock, at: At | None = None) -> None:
        """A block; `at` is where its text stands, if it does."""
        if at is not None:
            self.holes.append(Hole(at, block=len(self.blocks)))
        self.blocks.append(block)

    def text(self, kind: Kind, text: str, at: At, **more: Any) -> None:
        """A text, unless it is empty."""
        if text:
            self.add(Block(kind=kind, text=text, **more), at)

    def picture(self, picture: Picture, at: At, **more: Any) -> None:
        """An image."""
        self._held(picture, at, None)
        self.blocks.append(Block(kind=Kind.IMAGE, media=picture.media, **more))

    def summary(self, text: str, at: At) -> None:
        """A summary that stands where nothing was said before: nobody's own words."""
        self.text(Kind.DEVELOPER, text, at, name="summary")

    def call_summary(self, text: str) -> None:
        """The first text turned out to be a summary: its mark stays in the entry."""
        self.holes = [hole for hole in self.holes if hole.block != 0]
        self.blocks[0] = Block.developer(text, name="summary")

    def name(self, name: str) -> None:
        """Say of all blocks what they are about."""
        self.blocks = [block.model_copy(update={"name": name}) for block in self.blocks]

    def signed(self, block: Block, at: At) -> None:
        """A piece that goes back to its provider as it came: its native item stands there."""
        self.holes.append(Hole(at, "native", block=len(self.blocks)))
        self.blocks.append(block)

    def result(
        self,
        call: str,
        parts: list[tuple[str | Picture, At]],
        *,
        is_error: bool = False,
        **more: Any,
    ) -> None:
        """A tool's answer: texts and images, each with its place."""
        kept: list[Part] = []
        for value, at in parts:
            if isinstance(value, str):
                if value or len(parts) == 1:
                    self.holes.append(Hole(at, "text", len(kept), len(self.blocks)))
                    kept.append(Text(text=value))
            else:
                self._held(value, at, len(kept))
                kept.append(value.media)
        alone = kept[0].text if len(kept) == 1 and isinstance(kept[0], Text) else None
        content = alone if alone is not None else tuple(kept)
        self.blocks.append(
            ToolResult(tool_call_id=call, content=content or "", is_error=is_error, **more)
        )

    def appends(
        self, whence: Whence, entry: Any, message_id: str | None = None
    ) -> Iterator[Append]:
        """The blocks as steps; the first one has the rest of the entry."""
        line = whence.line
        holes: list[Hole | Same] = [*self.holes, *self.same]
        holes += copies(entry, self.blocks, holes)
        rest = line.json(rest_of(entry, holes))
        for index, block in enumerate(self.blocks):
            origin = Origin(
                format=whence.format,
                id=whence.id,
                time=whence.time,
                entry=rest if index == 0 else None,
                line=whence.number,
            )
            said = block.model_copy(update={"origin": origin, "message_id": message_id})
            yield Append(f"{whence.key}:{index}", said, whence.id or whence.key)

    def _held(self, picture: Picture, at: At, part: int | None) -> None:
        # What would not be spelt the same again stays in the entry as well.
        if media_text.spelt(picture.media, picture.form) == picture.text:
            self.holes.append(Hole(at, picture.form, part, len(self.blocks)))


def picture_of(address: str) -> Picture | None:
    """An image by its address: bytes where it holds them."""
    if not address:
        return None
    found = media_text.in_address(address)
    media = _image(found[1], found[0] or "image/png") if found else None
    return Picture(media or Media(type="image", mime="image/*", url=address), address)


def picture_in(data: str, mime: str) -> Picture | None:
    """An image by its bytes as text."""
    media = _image(data, mime)
    return Picture(media, data, "base64") if media else None


def thinking_block(item: dict[str, Any], line: Line) -> Block:
    """A thought that was signed: it goes back to the provider as it came."""
    thought = item.get("thinking")
    native = Native(provider="anthropic", item=line.json(item))
    return Block.thinking(thought if isinstance(thought, str) else "", native=native)


def _image(data: str, mime: str) -> Media | None:
    found = media_text.bytes_of(data)
    return None if found is None else Media(type="image", mime=mime, data=found)
