"""Collects the blocks and the steps of one source entry, and its outcome."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from ....domain.blocks import (
    AnyBlock,
    Block,
    Kind,
    Media,
    Native,
    Origin,
    ResultPart,
    Text,
    ToolCall,
    ToolResult,
)
from . import media_text
from .fields import JsonDict, MalformedError
from .json_lines import NestedTooDeeplyError, SourceLine
from .placeholders import (
    EarlierValue,
    JsonPath,
    Placeholder,
    PlaceholderForm,
    find_copies,
    make_remainder,
)
from .steps import Append, EntryEnd, ImportStep, SkippedEntry, SourceProblem, UnknownEntry


@dataclass(frozen=True, slots=True)
class EntryLocation:
    format: str
    key: str
    line: SourceLine
    number: int
    id: str | None = None
    time: str | None = None
    follows: str | None = None
    """As in the origin of a block."""


@dataclass(frozen=True, slots=True)
class SourceImage:
    media: Media
    text: str
    form: PlaceholderForm = "address"


ContentPart = tuple[str | SourceImage, JsonPath]
"""A text or an image, and its path in the entry."""


@dataclass(slots=True)
class EntryBlocks:
    blocks: list[AnyBlock] = field(default_factory=list)
    placeholders: list[Placeholder] = field(default_factory=list)
    earlier_values: list[EarlierValue] = field(default_factory=list)

    def add(self, block: AnyBlock, at: JsonPath | None = None) -> int:
        """Add a block, and return its index; `at` is the path of its text, if it has any."""
        if at is not None:
            self.placeholders.append(Placeholder(at, block_index=len(self.blocks)))
        self.blocks.append(block)
        return len(self.blocks) - 1

    def add_json(self, block: AnyBlock, at: JsonPath | None) -> None:
        """Add a block whose text is the JSON of the value at that path, if there is one."""
        if at is not None:
            self.placeholders.append(Placeholder(at, "json", block_index=len(self.blocks)))
        self.blocks.append(block)

    @property
    def call_ids(self) -> list[str]:
        return [block.tool_call_id for block in self.blocks if isinstance(block, ToolCall)]

    def add_text(self, kind: Kind, text: str, at: JsonPath, **more: Any) -> None:
        """Add a text, unless it is empty."""
        if text:
            self.add(Block(kind=kind, text=text, **more), at)

    def add_parts(self, kind: Kind, parts: Iterable[ContentPart]) -> None:
        """Add texts of this kind, and images."""
        for value, at in parts:
            if isinstance(value, str):
                self.add_text(kind, value, at)
            else:
                self._add_media_placeholder(value, at, None)
                self.blocks.append(Block(kind=Kind.IMAGE, media=value.media))

    def add_summary(self, text: str, at: JsonPath) -> None:
        """Add a summary of content outside the session."""
        self.add_text(Kind.DEVELOPER, text, at, name="summary")

    def mark_as_summary(self, text: str) -> None:
        """Convert the first text to a summary; its mark stays in the entry."""
        self.placeholders = [hole for hole in self.placeholders if hole.block_index != 0]
        self.blocks[0] = Block.developer(text, name="summary")

    def name_blocks(self, name: str) -> None:
        self.blocks = [block.model_copy(update={"name": name}) for block in self.blocks]

    def add_native(self, block: Block, at: JsonPath) -> None:
        """Add a piece with the provider's native item at this path."""
        self.placeholders.append(Placeholder(at, "native", block_index=len(self.blocks)))
        self.blocks.append(block)

    def add_tool_result(
        self, call: str, parts: list[ContentPart], *, is_error: bool = False
    ) -> None:
        kept: list[ResultPart] = []
        for value, at in parts:
            if isinstance(value, str):
                if value or len(parts) == 1:
                    self.placeholders.append(Placeholder(at, "text", len(kept), len(self.blocks)))
                    kept.append(Text(text=value))
            else:
                self._add_media_placeholder(value, at, len(kept))
                kept.append(value.media)
        alone = kept[0].text if len(kept) == 1 and isinstance(kept[0], Text) else None
        content = alone if alone is not None else tuple(kept)
        self.blocks.append(ToolResult(tool_call_id=call, content=content or "", is_error=is_error))

    def make_appends(
        self,
        whence: EntryLocation,
        entry: Any,
        message_id: str | None = None,
        *,
        with_copies: bool = True,
    ) -> Iterator[Append]:
        """Yield the blocks as steps; the first one has the remainder of the entry.

        With copies, texts of blocks are also replaced where the entry repeats them.
        """
        line = whence.line
        holes: list[Placeholder | EarlierValue] = [*self.placeholders, *self.earlier_values]
        holes += find_copies(entry, self.blocks, holes) if with_copies else ()
        rest = line.to_json(make_remainder(entry, holes))
        shared = Origin(format=whence.format, id=whence.id, time=whence.time, line=whence.number)
        first = shared.model_copy(update={"entry": rest, "follows": whence.follows})
        for index, block in enumerate(self.blocks):
            origin = shared if index else first
            said = block.model_copy(update={"origin": origin, "message_id": message_id})
            yield Append(f"{whence.key}:{index}", said, whence.id or whence.key)

    def _add_media_placeholder(self, picture: SourceImage, at: JsonPath, part: int | None) -> None:
        # Media whose encoding would differ stay in the entry as well.
        if media_text.encode_media(picture.media, picture.form) == picture.text:
            self.placeholders.append(Placeholder(at, picture.form, part, len(self.blocks)))


def image_from_address(address: str) -> SourceImage | None:
    """Return the image at a URL, with its bytes if the URL holds them."""
    if not address:
        return None
    found = media_text.split_data_url(address)
    media = _make_media(found[1], found[0] or "image/png") if found else None
    return SourceImage(media or Media(type="image", mime="image/*", url=address), address)


def image_from_data(data: str, mime: str) -> SourceImage | None:
    """Return the image of base64 data."""
    media = _make_media(data, mime)
    return SourceImage(media, data, "base64") if media else None


def make_thinking_block(item: JsonDict, line: SourceLine) -> Block:
    """Return a signed thought, which the provider gets back unchanged."""
    thought = item.get("thinking")
    native = Native(provider="anthropic", item=line.to_json(item))
    return Block.thinking(thought if isinstance(thought, str) else "", native=native)


def _make_media(data: str, mime: str) -> Media | None:
    found = media_text.base64_to_bytes(data)
    return None if found is None else Media(type="image", mime=mime, data=found)


def digest_text(text: str) -> str:
    """Return a short name for a text, for sources without ids or with repeated ones."""
    return blake2b(text.encode(errors="replace"), digest_size=8).hexdigest()


def make_line_problem(line: SourceLine, reason: str) -> SourceProblem:
    """Return the problem of an unreadable line, which is kept unchanged."""
    return SourceProblem(line.number, reason, f"{line.digest}:{line.number}", line.text or None)


@dataclass(slots=True)
class EntrySteps:
    """The steps of entry `number`; `end` is the offset in the source after it."""

    number: int
    end: int
    steps: list[ImportStep] = field(default_factory=list)
    outcome: str = "imported"

    def add(self, *steps: ImportStep) -> None:
        self.steps += steps

    def skip(self, kind: str, reason: str) -> None:
        """Record that the entry is known and has no content."""
        self.outcome = "skipped"
        self.steps.append(SkippedEntry(kind, reason))

    def add_unknown(self, kind: str, raw: str, source_id: str | None = None) -> None:
        """Record that the entry, or a piece of it, has an unknown type."""
        if self.outcome != "error":
            self.outcome = "unknown"
        key = f"unknown:{source_id or self.number}:{digest_text(raw)}"
        self.steps.append(UnknownEntry(key, kind, raw, self.number, source_id))

    def refuse(self, line: SourceLine, reason: str) -> None:
        """Record that the line cannot be read."""
        self.outcome = "error"
        self.steps.append(make_line_problem(line, reason))

    def add_problem(self, reason: str, raw: str | None = None) -> None:
        """Record that the entry, or a piece of it, cannot be read."""
        self.outcome = "error"
        key = f"refused:{self.number}:{digest_text(raw)}" if raw else None
        self.steps.append(SourceProblem(self.number, reason, key, raw))

    def finish(self) -> Iterable[ImportStep]:
        return [*self.steps, EntryEnd(self.outcome, self.end)]


def read_entry_steps(
    line: SourceLine, number: int, read: Callable[..., None], item: Any, *more: Any
) -> Iterable[ImportStep]:
    """Return the steps of a document's entry, read with `read`; report all problems."""
    entry = EntrySteps(number, line.end)
    try:
        read(entry, item, *more)
    except (MalformedError, NestedTooDeeplyError) as error:
        entry.add_problem(str(error), line.to_json_or_none(item))
    return entry.finish()
