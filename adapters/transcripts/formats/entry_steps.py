"""Collects the blocks and the steps of one entry of a source."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from ....domain.blocks import AnyBlock, Block, BlockKind, Origin, ToolResult
from .content import ContentPart, make_result_content
from .fields import MalformedError, UnknownItemError
from .json_lines import SourceLine
from .steps import Append, EntryEnd, ImportStep, SkippedEntry, SourceProblem, UnknownEntry

NOT_SENT = "no model was sent it"
"""The reason to skip an entry that only its agent needs, or only the user was shown."""


@dataclass(slots=True)
class EntrySteps:
    """An entry, the blocks that its reader finds in it, and the steps that it becomes."""

    format: str
    line: SourceLine
    """The entry's line, or the document that holds it."""
    number: int
    value: Any
    key: str = ""
    """The identity of the entry, with which the keys of its blocks begin."""
    id: str | None = None
    time: str | None = None
    blocks: list[AnyBlock] = field(default_factory=list)
    steps: list[ImportStep] = field(default_factory=list)
    answers: int = 0
    """Tool results in it, by the source's count, that answer no tool call."""
    origin: Origin | None = None
    """The origin of its blocks, once one is appended."""

    @property
    def raw(self) -> str:
        """The entry as JSON text."""
        return self.line.text if self.value is self.line.value else self.line.to_json(self.value)

    @property
    def has_appended(self) -> bool:
        return any(isinstance(step, Append) for step in self.steps)

    def make_origin(self) -> Origin:
        return Origin(format=self.format, id=self.id, time=self.time, line=self.number)

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

    def append(self, message_id: str | None = None) -> bool:
        """Append the blocks; skip the entry if it has none.

        The pieces of a model's message share `message_id`. Return whether there are any blocks.
        """
        if not self.blocks:
            self.skip()
            return False
        for index, block in enumerate(self.blocks):
            shared = None if isinstance(block, ToolResult) else message_id
            self.append_block(f"{self.key}:{index}", block, self.id or self.key, shared)
        return True

    def append_block(
        self,
        key: str,
        block: AnyBlock,
        source_id: str | None,
        message_id: str | None = None,
        *,
        is_server_call: bool = False,
    ) -> None:
        """Append a block that the reader has just made.

        It is changed in place, as nothing else holds it yet; copies would take 4 % of an import.
        """
        self.origin = self.origin or self.make_origin()
        object.__setattr__(block, "origin", self.origin)
        if message_id:
            object.__setattr__(block, "message_id", message_id)
        self.add(Append(key, block, source_id, is_server_call))

    def append_summary(self, text: str) -> None:
        """Append a summary of content outside the session."""
        block = Block.developer(text, name="summary", origin=self.make_origin())
        self.add(Append(f"{self.key}:summary", block, self.id))

    def mark_compaction(self, kind: str, key: str = "", source_id: str | None = None) -> None:
        """Append a note of this kind, which gives a compaction a place of its own in the log.

        So a rewind or a branch can leave it out, and no two are at the same place.
        """
        note = Block.note(kind, name=kind, origin=self.make_origin())
        self.add(Append(key or self.key, note, source_id or self.id))

    def add(self, *steps: ImportStep) -> None:
        self.steps += steps

    def skip(self, reason: str = NOT_SENT) -> None:
        """Record that the entry is known and has no content."""
        self.add(SkippedEntry(reason))

    def skip_known(self, kind: str, known: Collection[str]) -> None:
        """Skip an entry if its kind is among the known ones."""
        if kind in known:
            self.skip()
        else:
            self.add_unknown(kind)

    def add_unknown(self, kind: str) -> None:
        """Record that the entry, or a piece of it, has an unknown type."""
        self.add(UnknownEntry(kind, self.number))

    def add_problem(self, reason: str) -> None:
        """Record that the entry, or a piece of it, cannot be read."""
        self.add(SourceProblem(self.number, reason))

    def finish(self) -> list[ImportStep]:
        return [*self.steps, EntryEnd(self.line.end, self.answers)]


def digest_text(text: str) -> str:
    """Return a short name for a text, for sources without ids or with repeated ones."""
    return blake2b(text.encode(errors="replace"), digest_size=8).hexdigest()


def refuse_line(line: SourceLine, reason: str) -> Iterator[ImportStep]:
    """Yield the steps of a line, or of a document, of which nothing can be read."""
    yield SourceProblem(line.number, reason)
    yield EntryEnd(line.end)


def read_entry(entry: EntrySteps, read: Callable[..., None], *more: Any) -> list[ImportStep]:
    """Return the steps of an entry, read with `read`, and why it cannot be read, if it cannot."""
    if entry.line.problem:
        entry.add_problem(entry.line.problem)
        return entry.finish()
    try:
        read(entry, *more)
    except MalformedError as error:
        entry.add_problem(str(error))
    except UnknownItemError as error:
        entry.add_unknown(str(error))
    return entry.finish()
