"""Collects the blocks and the steps of one source entry, and its outcome."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from ....domain.blocks import (
    AnyBlock,
    Block,
    BlockKind,
    Media,
    Native,
    Origin,
    Text,
    ToolCall,
    ToolResult,
)
from . import media_text
from .fields import JsonDict, MalformedError
from .json_lines import NestedTooDeeplyError, SourceLine
from .steps import Append, EntryEnd, ImportStep, SkippedEntry, SourceProblem, UnknownEntry


@dataclass(frozen=True, slots=True)
class EntryLocation:
    format: str
    key: str
    line: SourceLine
    number: int
    id: str | None = None
    time: str | None = None

    def make_origin(self) -> Origin:
        return Origin(format=self.format, id=self.id, time=self.time, line=self.number)


ContentPart = str | Media
"""A text, or an image."""


@dataclass(slots=True)
class EntryBlocks:
    """The blocks of one source entry."""

    blocks: list[AnyBlock] = field(default_factory=list)

    @property
    def call_ids(self) -> list[str]:
        return [block.tool_call_id for block in self.blocks if isinstance(block, ToolCall)]

    def add(self, block: AnyBlock) -> None:
        self.blocks.append(block)

    def add_text(self, kind: BlockKind, text: str, **more: Any) -> None:
        """Add a text, unless it is empty."""
        if text:
            self.blocks.append(Block(kind=kind, text=text, **more))

    def add_parts(self, kind: BlockKind, parts: Iterable[ContentPart], **more: Any) -> None:
        """Add texts of this kind, and images."""
        for part in parts:
            if isinstance(part, str):
                self.add_text(kind, part, **more)
            else:
                self.blocks.append(Block(kind=BlockKind.IMAGE, media=part, **more))

    def add_summary(self, text: str) -> None:
        """Add a summary of content outside the session."""
        self.add_text(BlockKind.DEVELOPER, text, name="summary")

    def add_tool_result(
        self, call: str, parts: Sequence[ContentPart], *, is_error: bool = False
    ) -> None:
        content = make_result_content(parts)
        self.blocks.append(ToolResult(tool_call_id=call, content=content, is_error=is_error))

    def make_appends(
        self, whence: EntryLocation, message_id: str | None = None
    ) -> Iterator[Append]:
        """Yield the blocks as steps."""
        origin = whence.make_origin()
        for index, block in enumerate(self.blocks):
            said = block.model_copy(update={"origin": origin, "message_id": message_id})
            yield Append(f"{whence.key}:{index}", said, whence.id or whence.key)


def make_result_content(parts: Sequence[ContentPart]) -> str | tuple[Text | Media, ...]:
    """Return a tool result's content: a string if it has one text, without empty ones otherwise."""
    if len(parts) == 1 and isinstance(parts[0], str):
        return parts[0]
    kept = tuple(Text(text=one) if isinstance(one, str) else one for one in parts if one)
    alone = kept[0] if len(kept) == 1 else None
    return (alone.text if isinstance(alone, Text) else kept) or ""


def image_from_address(address: str) -> Media | None:
    """Return the image at a URL, with its bytes if the URL holds them."""
    if not address:
        return None
    if found := media_text.split_data_url(address):
        media = image_from_data(found[1], found[0] or "image/png")
        if media:
            return media
    return Media(type="image", mime="image/*", url=address)


def image_from_data(data: str, mime: str) -> Media | None:
    """Return the image of base64 data."""
    found = media_text.base64_to_bytes(data)
    return None if found is None else Media(type="image", mime=mime, data=found)


def make_thinking_block(item: JsonDict, line: SourceLine) -> Block:
    """Return a signed thought, which the provider gets back unchanged."""
    thought = item.get("thinking")
    native = Native(provider="anthropic", item=line.to_json(item))
    return Block.thinking(thought if isinstance(thought, str) else "", native=native)


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
