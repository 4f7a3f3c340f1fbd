"""Defines the input of a format's writer: a session as parts, messages and own entries."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

from pydantic import JsonValue, ValidationError

from ....domain.blocks import UNSENT_KINDS, AnyBlock, Block, Kind, ToolCall, ToolResult
from ....domain.compaction import RECORDED_LINEAGE
from ....domain.compaction_events import CompactBoundary, Summary
from ....domain.event import parse_source_time
from ....domain.messages import Role
from ....domain.session_events import Fork, ModelCalled, Parent
from ....projections.history_view import HistoryView
from .json_lines import parse_line
from .placeholders import fill_entry


@dataclass(frozen=True, slots=True)
class OutgoingBlock:
    position: int
    turn: int
    time: datetime
    """The time of recording; `block.origin.time` is the source's time, in its notation."""
    block: AnyBlock
    is_retracted: bool = False
    """Whether it was retracted since, and is in no view."""
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


@dataclass
class OutgoingSession:
    """A session to export: all of its log, or a compacted view of it."""

    key: str
    title: str | None
    source: str | None
    """The format that the session was imported from."""
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
    fork: Fork | None = None
    """Where it left another session, if it is a fork."""
    losses: Counter[str] = field(default_factory=Counter)

    def count_loss(self, what: str, count: int = 1) -> None:
        """Record what the target cannot hold: `images in tool results`, in the plural."""
        self.losses[what] += count

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
    parts: Iterator[OutgoingPart],
) -> Iterator[OutgoingMessage | OutgoingCompaction]:
    """Yield the parts as messages, to write a format other than the session's source.

    Each tool result is a message after that of its call. Retracted blocks, notes and artifacts are
    left out, and an abandoned call stays unanswered. At most one model's message is buffered.
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
                if held and held[0].call is None:
                    held[0] = OutgoingMessage(held[0].role, held[0].outgoing_blocks, call)
            case OutgoingBlock(block=block, is_retracted=retracted):
                if retracted or part.is_cancelled_result or block.kind in UNSENT_KINDS:
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


@dataclass(frozen=True, slots=True)
class OutgoingEntry:
    """An entry of a session's own source, to be restored."""

    remainder: dict[str, Any] | None
    """The remainder without what blocks hold; None if the entry was kept raw."""
    raw: str | None
    """The whole entry, if it has no blocks."""
    outgoing_blocks: tuple[OutgoingBlock, ...]


def group_outgoing_entries(
    parts: Iterator[OutgoingPart], own: str
) -> Iterator[OutgoingEntry | OutgoingBlock | OutgoingCall | OutgoingCompaction]:
    """Yield the parts from the format `own` as its entries; yield the others one by one.

    Blocks of one entry share `origin.line` and `origin.id`; the first has the remainder in
    `origin.entry`. A note with an origin and without a remainder is an entry that was kept raw.
    Refused blocks that were kept as notes are restored.
    """
    rest: dict[str, Any] | None = None
    pieces: list[OutgoingBlock] = []

    def let_go() -> Iterator[OutgoingEntry]:
        if pieces:
            yield OutgoingEntry(rest, None, tuple(pieces))
        pieces.clear()

    for part in parts:
        if not isinstance(part, OutgoingBlock):
            # A call is recorded between the entries of one message; a compaction is not.
            if isinstance(part, OutgoingCompaction):
                yield from let_go()
            yield part
            continue
        if part.is_cancelled_result:
            continue
        origin = part.block.origin
        if origin is None or origin.format != own:
            yield from let_go()
            yield part
        elif origin.entry is not None:
            yield from let_go()
            rest = json.loads(origin.entry)
            pieces.append(_restore_refused(part))
        elif pieces and _entry_location(part) == _entry_location(pieces[0]):
            pieces.append(_restore_refused(part))
        else:
            yield from let_go()
            yield OutgoingEntry(None, part.block.text, (part,))
    yield from let_go()


def _entry_location(said: OutgoingBlock) -> tuple[int | None, str | None] | None:
    origin = said.block.origin
    return (origin.line, origin.id) if origin else None


def _restore_refused(said: OutgoingBlock) -> OutgoingBlock:
    """Restore a tool call or result that was refused and kept as a note."""
    block = said.block
    if not isinstance(block, Block) or block.kind is not Kind.NOTE or not block.origin:
        return said
    kind = _REFUSED_BLOCKS.get(block.name or "")
    try:
        return replace(said, block=kind.model_validate_json(block.text)) if kind else said
    except ValidationError:
        return said  # an own item with the same name


_REFUSED_BLOCKS: dict[str, type[ToolCall | ToolResult]] = {
    "tool_call": ToolCall,
    "tool_result": ToolResult,
}
_ROLES = {
    Kind.TOOL_RESULT: Role.TOOL_RESULT,
    Kind.DEVELOPER: Role.DEVELOPER,
    **dict.fromkeys((Kind.ASSISTANT, Kind.THINKING, Kind.TOOL_CALL), Role.ASSISTANT),
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


REFUSED_ENTRY = "refused"
"""The name of notes that hold what a reader could not read."""


def group_own_entries(
    outgoing: OutgoingSession, own: str, *, with_refused: bool = False
) -> Iterator[OutgoingEntry | OutgoingMessage | OutgoingCompaction]:
    """Yield the source's own entries, and messages for everything else.

    Calls and compactions of the source are among its entries. Refused entries are included only
    `with_refused`: some agents cannot resume with entries that they cannot read. A view is all
    messages, since it may keep only a part of an entry.
    """
    if outgoing.is_view or outgoing.source != own:
        yield from group_outgoing_messages(outgoing.read_parts())
        return
    loose: list[OutgoingPart] = []
    for part in group_outgoing_entries(outgoing.read_parts(), own):
        if isinstance(part, OutgoingCompaction) and part.boundary.policy == RECORDED_LINEAGE:
            continue
        if not isinstance(part, OutgoingEntry):
            loose.append(part)
        elif part.remainder is None and part.outgoing_blocks[0].block.kind is not Kind.NOTE:
            loose += part.outgoing_blocks
        elif is_partial_note(part):
            pass  # the entry itself holds it
        elif read_entry_type(part) == REFUSED_ENTRY and not (
            with_refused and is_json(part.raw or "")
        ):
            outgoing.count_loss("entries that were refused")
        else:
            yield from group_outgoing_messages(iter(loose))
            loose.clear()
            yield part
    yield from group_outgoing_messages(iter(loose))


def is_partial_note(entry: OutgoingEntry) -> bool:
    """Return whether it is a note about an unreadable part of another entry."""
    origin = entry.outgoing_blocks[0].block.origin
    return read_entry_type(entry) == REFUSED_ENTRY and (origin is None or origin.line is None)


def is_json(text: str) -> bool:
    """Return whether a raw text is JSON: an unreadable line may be anything."""
    return parse_line(text.encode()).problem is None


@dataclass(slots=True)
class EntryRestorer:
    earlier: dict[int, Any] = field(default_factory=dict)

    def restore(self, entry: OutgoingEntry) -> Any:
        """Return the original entry, from its blocks and its remainder, or as it was kept; None if
        it was retracted since.
        """
        blocks: Sequence[AnyBlock] = [said.block for said in entry.outgoing_blocks]
        if entry.remainder is None:
            whole = json.loads(entry.raw or "null")
        else:
            whole = fill_entry(entry.remainder, blocks, self.earlier)
        origin = blocks[0].origin
        if origin and origin.line is not None:
            self.earlier[origin.line] = whole
        is_gone = entry.remainder is not None and all(
            said.is_retracted for said in entry.outgoing_blocks
        )
        return None if is_gone else whole


def read_entry_type(entry: OutgoingEntry) -> str:
    """Return the type of an entry that was kept raw; empty for an entry with blocks."""
    block = entry.outgoing_blocks[0].block
    return (block.name or "") if entry.raw is not None and isinstance(block, Block) else ""
