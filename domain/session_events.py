"""Every fact that can be recorded of a session: the storage format of its stream."""

from pydantic import AwareDatetime, JsonValue

from .blocks import Block, ToolCall, ToolResult
from .event import Event
from .ranges import Ranges
from .record import Record, ReportedAmount, ReportedCount


class Parent(Record):
    """The session, and the call in it, that a sub-agent works for."""

    namespace: str
    key: str
    tool_call_id: str | None = None


class Fork(Record):
    """Where a fork leaves its parent: it shares all up to `position` and copies nothing."""

    namespace: str
    key: str
    position: int
    lineage: str = "main"
    """The parent's lineage that goes on in the fork: `recorded` for a branch that was imported."""
    lineage_version: int = 0
    """The version of the parent's lineage that was in effect at `position`."""


class SessionOpened(Event):
    """A session begins. A fork's stream begins one past the position it was forked at."""

    key: str
    namespace: str
    parent: Parent | None = None
    fork: Fork | None = None
    source: str | None = None
    """What the session was imported from: a format's name."""
    title: str | None = None
    project: str | None = None
    """Where the agent worked: the path of a folder, or a name."""
    reopened: dict[str, int] = {}
    """Calls that are open at a fork's position: id to position."""


class SessionTitled(Event):
    """What the session is called from here on."""

    title: str


class ParentNamed(Event):
    """Whom the session works for, where that was not known when it was opened."""

    parent: Parent


class SystemPromptSet(Event):
    """The system prompt from here on."""

    text: str


class ToolsSet(Event):
    """The tools that the model is offered from here on, as the provider's own definitions."""

    tools: list[JsonValue]


class RequestSettingsSet(Event):
    """What else a request holds from here on: model, temperature, thinking, ..."""

    settings: dict[str, JsonValue]


class TurnStarted(Event):
    """A user's prompt opens turn `turn`."""

    turn: int


class TurnEnded(Event):
    """The agent came to rest."""

    turn: int
    outcome: str | None = None


class BlockAppended(Event):
    """A piece of a turn that is not a tool call or its result."""

    block: Block
    turn: int


class ToolCalled(Event):
    """The model asked for a tool."""

    block: ToolCall
    turn: int


class Ends(Record):
    """What views show of a text: so many characters of its beginning and of its end."""

    head: int
    tail: int


class ToolReturned(Event):
    """A tool answered the call at position `call`."""

    block: ToolResult
    turn: int
    call: int
    shown: Ends | None = None
    """For an answer that was too large for any view, from the first on."""


class ToolCallAbandoned(Event):
    """Nobody will answer the call at position `call`; this stands where its result would."""

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
    """These were taken back (pop, rewind): they leave the view at once and stay in the log."""

    positions: Ranges
    reopened: dict[str, int] = {}
    """Calls that are open again because their result was taken back: id to position."""
    reason: str | None = None
    previous: int = 0
    """Where the retraction before this one stands, so that all are found without a search."""


class Usage(Record):
    """What a provider reported of one call, in tokens."""

    input: ReportedCount = None
    """Uncached prompt tokens."""
    cache_read: ReportedCount = None
    cache_write: ReportedCount = None
    cache_write_1h: ReportedCount = None
    """Of `cache_write`, the tokens that the provider keeps for an hour, at a higher price."""
    output: ReportedCount = None
    reasoning: ReportedCount = None

    @property
    def context(self) -> int | None:
        """Size of the prompt that was sent, cached or not; None where nothing was reported."""
        parts = [
            part for part in (self.input, self.cache_read, self.cache_write) if part is not None
        ]
        return sum(parts) if parts else None


INTERRUPTED_STOP_REASONS = frozenset({"aborted", "error"})
"""Stop reasons of calls whose reported usage says nothing about the view (S3.5)."""


class ModelCalled(Event):
    """A model was called. With a fingerprint, the view at the coordinate is what it was sent.

    Where one `call_id` was recorded more than once (a transcript grew while it was imported),
    the last one counts.
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
    """Format and version of what was sent, as `anthropic/1`."""
    fingerprint: str | None = None
    """None where the call was imported: what was sent can only be reconstructed."""
    source_time: str | None = None
    context_window: ReportedCount = None
    """Tokens that the model's context holds, where the source or the provider reports it."""

    @property
    def context(self) -> int | None:
        """Size of the prompt that was sent; None where the report does not tell."""
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
    """The agent will go on by itself at `at`: until then the session is not at rest.

    None takes back what was scheduled before.
    """

    at: AwareDatetime | None
    reason: str | None = None


class SessionClosed(Event):
    """Nothing follows, until the session is opened again."""

    reason: str | None = None


BlockEvent = BlockAppended | ToolCalled | ToolReturned | ToolCallAbandoned
"""The events that stand for a block at their position."""
