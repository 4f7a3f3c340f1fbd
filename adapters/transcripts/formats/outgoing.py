"""Defines the input of a format's writer: a session as parts, messages and own entries."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import PurePath
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

from pydantic import JsonValue

from ....domain.blocks import UNSENT_KINDS, AnyBlock, BlockKind, ToolCall
from ....domain.cached_property import cached_property
from ....domain.compaction import RECORDED_LINEAGE
from ....domain.compaction_events import CompactBoundary, Summary
from ....domain.event import parse_source_time
from ....domain.item import Role
from ....domain.session_events import ModelCalled, Parent, Usage
from ....projections.history_view import HistoryView
from ....projections.rendering import sendable


@dataclass(frozen=True, slots=True)
class OutgoingBlock:
    position: int
    turn: int
    time: datetime
    """The time of recording; `block.origin.time` is the source's time, in its notation."""
    block: AnyBlock
    is_retracted: bool = False
    """Whether it was retracted, by its source or since its import, and is in no view."""
    is_removed: bool = False
    """Whether it was retracted since its import."""
    is_cancelled_result: bool = False
    """Whether cutbank made this result for a call that will never be answered."""


@dataclass(frozen=True, slots=True)
class OutgoingCall:
    """A call of a model, after the blocks of its answer."""

    position: int
    call: ModelCalled


@dataclass(frozen=True, slots=True)
class OutgoingCompaction:
    """A served boundary, at its place in the log.

    A compacted view begins with one.
    """

    boundary: CompactBoundary
    summary: Summary | None
    time: datetime


OutgoingPart = OutgoingBlock | OutgoingCall | OutgoingCompaction


@dataclass(frozen=True, slots=True)
class OutgoingMessage:
    """A message: pieces of a model's message are together, even if results of its first calls came
    before its last piece.
    """

    role: Role
    outgoing_blocks: tuple[OutgoingBlock, ...]
    call: ModelCalled | None = None

    @property
    def blocks(self) -> list[AnyBlock]:
        return [one.block for one in self.outgoing_blocks]


LineNumber = tuple[int, int]
"""The number of a file among a session's sources, and of a line in it."""


@dataclass(frozen=True, slots=True)
class KeptSource:
    """The files that a session was imported from, as they were read."""

    files: Mapping[str, int]
    """The file of each segment, by the segment's digest."""
    read_files: Callable[[], Iterator[Iterator[bytes]]]
    """Returns the pieces of each file."""

    def read_whole(self) -> bytes:
        return b"".join(piece for pieces in self.read_files() for piece in pieces)

    def read_lines(self) -> Iterator[tuple[LineNumber, bytes]]:
        """Yield each line with its line end; the last one of a file may have none."""
        for file, pieces in enumerate(self.read_files()):
            rest, number = b"", 0
            for piece in pieces:
                *whole, rest = (rest + piece).split(b"\n")
                for line in whole:
                    number += 1
                    yield (file, number), line + b"\n"
            if rest:
                yield (file, number + 1), rest

    def find_lines(
        self, outgoing: "OutgoingSession"
    ) -> Iterator[tuple[LineNumber | None, OutgoingPart]]:
        """Yield each part of the log, with the line that it came from."""
        file = 0
        for part in outgoing.read_parts():
            origin = part.block.origin if isinstance(part, OutgoingBlock) else None
            if origin is None or origin.format != outgoing.source or origin.line is None:
                yield None, part
                continue
            # A segment that a later import replaced by a longer one is of the same file.
            file = self.files.get(origin.segment or "", file)
            yield (file, origin.line), part


@dataclass
class OutgoingSession:
    """A session to export: all of its log, or a compacted view of it."""

    key: str
    title: str | None
    source: str | None
    """The format that the session was imported from."""
    project: str | None
    parent: Parent | None
    opened_at: datetime
    system_prompt: str | None
    tools: Sequence[JsonValue]
    settings: dict[str, JsonValue]
    read_parts: Callable[[], Iterator[OutgoingPart]]
    """Returns all parts, read again each time."""
    load_view: Callable[[], HistoryView]
    is_view: bool = False
    """Whether this is a compacted view and not the log."""
    forks: "tuple[OutgoingSession, ...]" = ()
    """The forks of this session from the same import, without what they share."""
    has_new_request: bool = False
    """Whether the system prompt, the tools or the settings were set since the import."""
    kept_source: KeptSource | None = None
    """Its source, if the session is written in the format that it came in."""
    losses: Counter[str] = field(default_factory=Counter)

    @property
    def folder(self) -> str:
        """The agent's working folder, from which another agent goes on; the root if unknown."""
        return self.project if self.project and PurePath(self.project).is_absolute() else "/"

    def count_loss(self, what: str, count: int = 1) -> None:
        """Record what the target cannot hold: `images in tool results`, in the plural."""
        if count:
            self.losses[what] += count

    def count_missing(self, *, holds_prompt: bool = False, holds_tools: bool = False) -> None:
        """Record what of the session, and of its requests, a format has no place for."""
        in_source = is_as_imported if self.kept_source else lambda _: False
        self.count_loss("branches", sum(not in_source(one) for one in self.forks))
        if not self.kept_source:
            self.count_loss("system prompts", bool(self.system_prompt and not holds_prompt))
            self.count_loss("tool definitions", 0 if holds_tools else len(self.tools))
            self.count_loss("request settings", len(self.settings.keys() - {"model"}))

    def count_shortened(self, boundary: CompactBoundary) -> None:
        """Record the blocks that a compaction shortened, for formats that cannot say so."""
        if not self.is_view:
            shortened = len(boundary.trims) + len(boundary.replacements)
            self.count_loss("blocks that a compaction shortened", shortened)

    def parse_arguments(self, call: ToolCall) -> dict[str, Any]:
        """Return a call's arguments as an object; anything else is a loss, and under `_raw`."""
        try:
            arguments = sendable.parse_sendable_json(call.arguments)
        except ValueError:
            arguments = None
        if isinstance(arguments, dict):
            return arguments
        self.count_loss("tool arguments that are not a JSON object")
        return {"_raw": call.arguments}

    @cached_property
    def view(self) -> HistoryView:
        """Everything to write, as one view.

        For the whole log it has no boundary, but every block that was not retracted.
        """
        return self.load_view()

    @cached_property
    def model(self) -> str | None:
        """The last model that was called, or set for the session."""
        called = [part.call.model for part in self.read_parts() if isinstance(part, OutgoingCall)]
        asked = self.settings.get("model")
        return next(
            (name for name in reversed(called) if name), asked if isinstance(asked, str) else None
        )


def group_outgoing_messages(
    outgoing: OutgoingSession, parts: Iterable[OutgoingPart]
) -> Iterator[OutgoingMessage | OutgoingCompaction]:
    """Yield parts of the session as messages.

    Each tool result is a message after that of its call. Retracted blocks, notes and artifacts are
    left out and counted as lost, and an abandoned call stays unanswered. At most one model's
    message is buffered.
    """
    held: list[OutgoingMessage] = []

    def let_go() -> Iterator[OutgoingMessage]:
        yield from held
        held.clear()

    for part in parts:
        match part:
            case OutgoingCompaction():
                yield from let_go()
                yield part
            case OutgoingCall(call=call):
                if held and held[0].role is Role.ASSISTANT and held[0].call is None:
                    held[0] = OutgoingMessage(held[0].role, held[0].outgoing_blocks, call)
                else:
                    outgoing.count_loss("usage of answers without content")
            case OutgoingBlock(block=block, is_retracted=retracted):
                if part.is_cancelled_result:
                    continue
                if retracted or block.kind in UNSENT_KINDS:
                    outgoing.count_loss("retracted blocks" if retracted else f"{block.kind}s")
                    continue
                role = _ROLES.get(block.kind, Role.USER)
                if held and _continues_message(held, role, block):
                    held[0] = OutgoingMessage(role, (*held[0].outgoing_blocks, part), held[0].call)
                elif role is Role.TOOL_RESULT and held:
                    held.append(OutgoingMessage(role, (part,)))
                else:
                    yield from let_go()
                    held.append(OutgoingMessage(role, (part,)))
    yield from let_go()


def is_added(outgoing: OutgoingSession, part: OutgoingPart) -> bool:
    """Return whether a part was added to an imported session since its import."""
    match part:
        case OutgoingBlock(block=block, is_cancelled_result=is_cancelled):
            return not is_cancelled and (
                block.origin is None or block.origin.format != outgoing.source
            )
        case OutgoingCall(call=call):
            return call.lineage != RECORDED_LINEAGE
        case OutgoingCompaction(boundary=boundary):
            return boundary.policy != RECORDED_LINEAGE


def is_as_imported(outgoing: OutgoingSession) -> bool:
    """Return whether nothing was added to the session, set or retracted since its import."""
    return not outgoing.has_new_request and not any(
        is_added(outgoing, part) or (isinstance(part, OutgoingBlock) and part.is_removed)
        for part in outgoing.read_parts()
    )


_ROLES = {
    BlockKind.TOOL_RESULT: Role.TOOL_RESULT,
    BlockKind.DEVELOPER: Role.DEVELOPER,
    **dict.fromkeys((BlockKind.ASSISTANT, BlockKind.THINKING, BlockKind.TOOL_CALL), Role.ASSISTANT),
}
"""The roles of blocks; all others are the user's."""


def _continues_message(held: list[OutgoingMessage], role: Role, block: AnyBlock) -> bool:
    """Return whether the block continues the buffered message: the message ids are equal, or both
    have none and the model wrote them in a row.
    """
    if role is not held[0].role or role is Role.TOOL_RESULT:
        return False
    named = held[0].outgoing_blocks[0].block.message_id
    if named is None and role is Role.ASSISTANT:
        return block.message_id is None and len(held) == 1
    return named is not None and named == block.message_id


def get_usage(call: ModelCalled | None) -> Usage:
    """Return the usage of a call, with zeros for what is not known."""
    usage = call.usage if call and call.usage else Usage()
    return Usage(**{name: count or 0 for name, count in usage})


def make_session_uuid(key: str) -> str:
    """Return the key if it is a UUID; else one derived from it."""
    try:
        return str(UUID(key))
    except ValueError:
        return str(uuid5(NAMESPACE_URL, key))


def get_time(recorded: datetime, source_time: str | None) -> datetime:
    """Return the source's time if it is known, or else the time of recording."""
    return (parse_source_time(source_time) if source_time else None) or recorded


def get_block_time(said: OutgoingBlock) -> datetime:
    return get_time(said.time, said.block.origin.time if said.block.origin else None)


def to_milliseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


def to_iso(moment: datetime) -> str:
    """Format as ISO 8601 with milliseconds, in UTC."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
