"""Writes a session as lines: those of its own source unchanged, and entries for all else."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

from ....domain.blocks import BlockKind, ToolCall, ToolResult
from .fields import JsonDict
from .json_lines import encode_line, parse_line
from .outgoing import (
    LineNumber,
    OutgoingBlock,
    OutgoingCall,
    OutgoingCompaction,
    OutgoingMessage,
    OutgoingSession,
    group_outgoing_messages,
    is_added,
)


class OwnBlock(NamedTuple):
    """What a writer needs of a block that came from the line that it writes."""

    position: int
    is_retracted: bool
    is_removed: bool
    """Whether it was retracted since the import, and not by the source."""
    tool_call_id: str | None
    """The id of the call, if it is one."""
    tool_name: str | None
    is_note: bool
    """Whether it is kept for the record only, and no model was sent it."""
    answered_call: str | None
    """The id of the call that it answers, if it is a result."""


def make_own_block(part: OutgoingBlock) -> OwnBlock:
    block = part.block
    id, name = (block.tool_call_id, block.name) if isinstance(block, ToolCall) else (None, None)
    is_note = block.kind is BlockKind.NOTE
    answered = block.tool_call_id if isinstance(block, ToolResult) else None
    return OwnBlock(part.position, part.is_retracted, part.is_removed, id, name, is_note, answered)


@dataclass(frozen=True, slots=True)
class SourceEntry:
    """A line of the session's own source, and the blocks that were read from it."""

    raw: bytes
    """With its line end, if it has one."""
    own_blocks: tuple[OwnBlock, ...]
    line: LineNumber

    @property
    def value(self) -> Any:
        """The line's JSON value; None if it has none."""
        return parse_line(self.raw.strip()).value


def merge_with_source(
    outgoing: OutgoingSession, *, adds_at_end: bool
) -> Iterator[SourceEntry | OutgoingBlock | OutgoingCall | OutgoingCompaction]:
    """Yield the lines of the session's kept source, and what was added since.

    That is at its place among the lines, or with `adds_at_end` behind them. Without a kept source,
    yield all parts. Calls and compactions of the source are in its lines.
    """
    source = outgoing.kept_source
    if source is None:
        yield from outgoing.read_parts()
        return
    own: dict[LineNumber, list[OwnBlock]] = {}
    for line, part in source.find_lines(outgoing):
        if line and isinstance(part, OutgoingBlock):
            own.setdefault(line, []).append(make_own_block(part))
    lines = (SourceEntry(raw, tuple(own.get(line, ())), line) for line, raw in source.read_lines())
    following = next(lines, None)
    reached = (0, 0)
    for line, part in source.find_lines(outgoing):
        if line:
            reached = max(reached, line)
        elif is_added(outgoing, part):
            # Lines without blocks stay in front of what was added: they were in the file before it.
            while following and (
                adds_at_end or following.line <= reached or not following.own_blocks
            ):
                yield following
                following = next(lines, None)
            yield part
    if following:
        yield following
        yield from lines


class LineWriter(ABC):
    """A writer of entries in the order of the log; each format builds its own."""

    adds_at_end = False
    """Whether what was added follows the whole source, as the newest entry is where it goes on."""

    id_field = ""
    """In a format that is a tree: the field of an entry's id."""
    reference_fields: tuple[str, ...] = ()
    """In a format that is a tree: the fields that name an earlier entry, the parent first."""

    def __init__(self, outgoing: OutgoingSession) -> None:
        self.outgoing = outgoing
        self.title: str | None = None
        """The title in the last entry of the source that has one."""
        self.left_out: dict[Any, Any] = {}
        """In a tree: the parent of each entry that was left out."""
        self.kept_calls: set[str | None] = set()
        """Calls that were retracted and stay, since their entry has more: so do their results."""

    def begin(self) -> Iterable[JsonDict]:
        """Return the entries that precede all others, unless the source has them."""
        return ()

    @abstractmethod
    def follow(self, entry: JsonDict, own: Sequence[OwnBlock]) -> None:
        """Note an entry of the source, so that what was added can refer to it."""

    @abstractmethod
    def build_message(self, message: OutgoingMessage) -> Iterable[JsonDict]: ...

    @abstractmethod
    def build_compaction(self, compacted: OutgoingCompaction) -> Iterable[JsonDict]: ...

    @abstractmethod
    def build_title(self, title: str) -> Iterable[JsonDict]: ...

    def write(self) -> Iterator[bytes]:
        """Yield the lines of the session."""
        outgoing = self.outgoing
        if not outgoing.kept_source:
            yield from map(encode_line, self.begin())
        parts = merge_with_source(outgoing, adds_at_end=self.adds_at_end)
        for is_own, run in groupby(parts, key=lambda part: isinstance(part, SourceEntry)):
            write = self._copy if is_own else self.build
            yield from write(run)
        yield from self.end()

    def build(self, parts: Iterable[Any]) -> Iterator[bytes]:
        """Yield entries for parts of the log."""
        for one in group_outgoing_messages(self.outgoing, parts):
            if isinstance(one, OutgoingCompaction):
                yield from map(encode_line, self.build_compaction(one))
            else:
                yield from map(encode_line, self.build_message(one))

    def end(self) -> Iterator[bytes]:
        """Yield the title, if the source does not have it."""
        title = self.outgoing.title
        if title and title != self.title:
            yield from map(encode_line, self.build_title(title))

    def can_leave_out(self) -> bool:
        """Return whether entries of the source may be left out: branches may need them."""
        return not self.outgoing.forks

    def _copy(self, entries: Iterable[Any]) -> Iterator[bytes]:
        """Yield entries of the source, but for those that were retracted since the import."""
        for entry in entries:
            value, own = entry.value, entry.own_blocks
            if not isinstance(value, dict):
                yield entry.raw
                continue
            moved = self._move(value)
            removed = [one for one in own if one.is_removed]
            can_leave = self.can_leave_out() and not any(
                one.answered_call and one.answered_call in self.kept_calls for one in own
            )
            if removed and len(removed) == len(own) and can_leave:
                if self.id_field:
                    self.left_out[value.get(self.id_field)] = moved.get(self.reference_fields[0])
                continue
            self.kept_calls |= {one.tool_call_id for one in removed}
            self.outgoing.count_loss("retractions within the source", len(removed))
            self.follow(moved, own)
            yield entry.raw if moved is value else encode_line(moved)

    def _move(self, entry: JsonDict) -> JsonDict:
        """Return an entry that names, instead of one that was left out, what that one followed."""
        named = {name: entry.get(name) for name in self.reference_fields}
        moved = {
            name: self.left_out[id]
            for name, id in named.items()
            if isinstance(id, str) and id in self.left_out
        }
        return entry | moved if moved else entry
