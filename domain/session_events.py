"""Defines every event of a session: the storage format of its stream."""

from pydantic import AwareDatetime, JsonValue

from .blocks import Block, ToolCall, ToolResult
from .event import Event, ReportedAmount, ReportedCount, StoredBytes, StoredValue
from .native_item import CutItem
from .ranges import Ranges


class Parent(StoredValue):
    """The session, and the call in it, for which a sub-agent works."""

    namespace: str
    key: str
    tool_call_id: str | None = None


class Fork(StoredValue):
    """Where a fork leaves its parent: it shares all up to `position` and copies nothing."""

    namespace: str
    key: str
    position: int
    lineage: str = "main"
    """The parent's lineage that continues in the fork: `recorded` for an imported branch."""
    lineage_version: int = 0
    """The version of the parent's lineage that was in effect at `position`."""
    generation: int = 0
    """The parent's generation, which tells it from later sessions of its name."""


class SessionOpened(Event):
    """A session begins; a fork's stream begins one position after its fork point."""

    key: str
    namespace: str
    parent: Parent | None = None
    fork: Fork | None = None
    source: str | None = None
    """The name of the format that the session was imported from."""
    title: str | None = None
    project: str | None = None
    """Where the agent worked: the path of a folder, or a name."""
    reopened: dict[str, int] = {}
    """Calls that are open at a fork's position: id to position."""
    generation: int = 0
    """How many sessions of this name were deleted before."""


class SessionTitled(Event):
    title: str


class ParentNamed(Event):
    """The session's parent, if it was unknown when the session was opened."""

    parent: Parent


class SystemPromptSet(Event):
    text: str


class ToolsSet(Event):
    """The tools that the model is offered from here on, as the provider's own definitions."""

    tools: list[JsonValue]


class RequestSettingsSet(Event):
    """The other parameters of requests from here on: model, temperature, thinking, ..."""

    settings: dict[str, JsonValue]


class TurnStarted(Event):
    turn: int


class TurnEnded(Event):
    """The agent finished a turn."""

    turn: int
    outcome: str | None = None


class BlockAppended(Event):
    block: Block
    turn: int
    item: CutItem | None = None
    """The item that ends with this block, if it was given as one of an item's."""


class ToolCalled(Event):
    block: ToolCall
    turn: int
    item: CutItem | None = None


class Ends(StoredValue):
    """How many characters of a text's beginning and end views show."""

    head: int
    tail: int


class ToolReturned(Event):
    block: ToolResult
    turn: int
    call: int
    shown: Ends | None = None
    """Set for an answer that is too large for any view."""
    item: CutItem | None = None


class ToolCallAbandoned(Event):
    """The call at position `call` will have no answer; this event takes the place of its result."""

    tool_call_id: str
    reason: str
    turn: int
    call: int


class BlocksHidden(Event):
    """These leave the view at the next boundary, or show `replacement` in their place."""

    positions: Ranges
    replacement: str | None = None


class BlockPinned(Event):
    """These stay in the view, word for word, from the next boundary on."""

    positions: Ranges


class BlockUnpinned(Event):
    """These may leave the view again."""

    positions: Ranges


class BlocksRetracted(Event):
    """These were retracted (pop, rewind): they leave the view immediately and stay in the log."""

    positions: Ranges
    reopened: dict[str, int] = {}
    """Calls that are open again because their result was retracted: id to position."""
    reason: str | None = None
    previous: int = 0
    """The position of the retraction before this one, so that all are found without a search."""


class Usage(StoredValue):
    """The tokens of one call, as the provider reported them."""

    input: ReportedCount = None
    """Uncached prompt tokens."""
    cache_read: ReportedCount = None
    cache_write: ReportedCount = None
    cache_write_1h: ReportedCount = None
    """The part of `cache_write` that the provider keeps for an hour, at a higher price."""
    output: ReportedCount = None
    reasoning: ReportedCount = None

    @property
    def context(self) -> int | None:
        """The size of the prompt, cached or not; None if nothing was reported."""
        parts = [
            part for part in (self.input, self.cache_read, self.cache_write) if part is not None
        ]
        return sum(parts) if parts else None


INTERRUPTED_STOP_REASONS = frozenset({"aborted", "error"})
"""Stop reasons of calls whose reported usage says nothing about the view (S3.5)."""


class ModelCalled(Event):
    """A model was called; with a fingerprint, it was sent exactly the view at the coordinate.

    If one `call_id` was recorded more than once (a transcript grew while it was imported), the last
    one counts.
    """

    call_id: str
    model: str | None = None
    usage: Usage | None = None
    cost_usd: ReportedAmount = None
    latency_s: ReportedAmount = None
    stop_reason: str | None = None
    position: int
    lineage: str = "main"
    lineage_version: int = 0
    renderer: str | None = None
    """Format and version of the rendering, such as `anthropic/1`."""
    fingerprint: str | None = None
    """None if the call was imported, since its prompt can only be reconstructed."""
    source_time: str | None = None
    context_window: ReportedCount = None
    """Tokens of the model's context, if the source or the provider reports them."""

    @property
    def context(self) -> int | None:
        """The size of the prompt; None if the report does not say."""
        if self.usage is None or self.stop_reason in INTERRUPTED_STOP_REASONS:
            return None
        return self.usage.context


class ContextOverflowed(Event):
    """A provider refused a request as too long."""

    message: str
    model: str | None = None
    lineage: str = "main"
    lineage_version: int = 0


class WakeScheduled(Event):
    """The agent will resume by itself at `at`; until then the session is not idle.

    None cancels what was scheduled before.
    """

    at: AwareDatetime | None
    reason: str | None = None


class RecordPut(Event):
    """A program's own state, no part of the conversation; the newest value of a name counts."""

    name: str
    text: str | None = None
    """The value as JSON text; None for bytes."""
    data: StoredBytes | None = None


class RecordRemoved(Event):
    """A name has no value from here on."""

    name: str


class SessionClosed(Event):
    """The session accepts no more events until it is opened again."""

    reason: str | None = None


class SessionDeleted(Event):
    """The session ends for good, and its name is free: the next session of it is another one."""

    by: str | None = None
    reason: str | None = None


class SessionErased(Event):
    """All content of a deleted session is removed; this is the last event of its stream."""

    by: str | None = None
    reason: str | None = None


BlockEvent = BlockAppended | ToolCalled | ToolReturned | ToolCallAbandoned
"""The events that hold a block at their position."""

RecordEvent = RecordPut | RecordRemoved
"""The events that no view, count, search or idle work reads."""
RECORD_TOPICS = frozenset({RecordPut.TOPIC, RecordRemoved.TOPIC})
