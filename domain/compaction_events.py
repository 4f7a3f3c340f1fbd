"""Defines every event of a lineage: which view is served, and which text replaces which blocks."""

from enum import StrEnum
from uuid import UUID

from pydantic import Field, JsonValue

from .event import BoundedCount, Event, ReportedAmount, StoredValue
from .ranges import Ranges
from .session_events import Usage


class Trigger(StrEnum):
    THRESHOLD = "threshold"
    OVERFLOW = "overflow"
    MANUAL = "manual"
    IDLE = "idle"

    @property
    def is_automatic(self) -> bool:
        """Whether no user waits for the compaction, so that doing nothing is no error."""
        return self in {Trigger.THRESHOLD, Trigger.IDLE}


class LineageBase(StoredValue):
    """The lineage, and its version, that another one continues."""

    originator_id: UUID
    lineage: str
    version: int


class CompactionOpened(Event):
    """A lineage begins; with a base, one version after it."""

    namespace: str
    key: str
    lineage: str
    base: LineageBase | None = None
    generation: int = 0
    """The generation of the session, as its opening has it."""


class CompactionRequested(Event):
    """A compaction begins, and holds the lease on deciding it.

    A boundary or a failure ends the lease. If neither follows before it expires, the next request
    takes over, because the holder must have died.
    """

    trigger: Trigger
    policy: str
    settings: dict[str, JsonValue] = {}
    after: int
    instructions: str | None = None
    idempotency_key: str | None = None
    by: str | None = None
    """The worker that does it; None if the requester does."""
    lease_s: float | None = None
    """How long others wait, in seconds from the event's timestamp."""
    activate: bool = True
    """Whether to serve the boundary immediately; otherwise it is only prepared."""


class Trim(StoredValue):
    """A tool output that the view shows shortened to its first and last characters."""

    position: int
    head: int
    tail: int = 0


class Replacement(StoredValue):
    """A hidden block that shows this text in its place."""

    position: int
    text: str


class SplitTurn(StoredValue):
    """A cut inside a turn, whose beginning is summarized separately."""

    turn: int
    prefix: Ranges


class Repair(StoredValue):
    """A change that the store made to a policy's plan to keep the view legal."""

    rule: str
    wanted: int | None = None
    """The position at which the policy cut, if the cut was moved."""
    got: int | None = None
    """The position at which the boundary cuts."""
    stays: Ranges = Ranges()
    """Blocks that the policy would have removed."""
    leaves: Ranges = Ranges()
    """Blocks that the policy would have kept."""
    trimmed: Ranges = Ranges()
    """Tool results that are shortened although the policy would have kept them whole."""


class RecordedCalibration(StoredValue):
    """The token ratios that calls before a boundary revealed, and the size of the request."""

    model: str | None = None
    ratios: dict[str, float]
    """The model's tokens for one estimated token, by the name of a ContentKind."""
    request_tokens: BoundedCount
    """Tokens of everything that was sent except the blocks and the summary."""


class CompactBoundary(Event):
    """What stays in the view of the session up to `after`: references only, never content.

    A boundary's name is its version in the lineage.
    """

    after: int
    first_kept: int
    """Where the kept window begins; blocks that are kept before it were pinned or still open."""
    kept: Ranges
    """All positions up to `after` that stay, including pinned, trimmed and replaced ones."""
    pinned: Ranges = Ranges()
    hidden: Ranges = Ranges()
    trims: tuple[Trim, ...] = ()
    replacements: tuple[Replacement, ...] = ()
    split_turn: SplitTurn | None = None
    trigger: Trigger
    policy: str
    pre_tokens: BoundedCount
    post_tokens: BoundedCount
    calibration: RecordedCalibration | None = None
    """How tokens were counted here, so that the view after it is counted alike."""
    repairs: tuple[Repair, ...] = ()
    previous: int | None = None
    source_time: str | None = None
    partial: str | None = None
    """What the source of an import does not tell, for example because its summary is encrypted."""


class Artifact(StoredValue):
    """Something that a tool made, as reported by its result at `position`."""

    position: int
    path: str
    mime: str | None = None
    kind: str | None = None
    visibility: str | None = None
    """The audience, for example `external`."""
    tool: str | None = None
    sources: tuple[str, ...] = ()


class MemoryRead(StoredValue):
    """A call that searched a memory, and what it found."""

    position: int
    query: str = ""
    hits: int = 0
    turns: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()


class HiddenBlock(StoredValue):
    """A block that was hidden, and the text in its place."""

    position: int
    replacement: str | None = None


class Digest(StoredValue):
    """The exact inventory of what a boundary hides, derived from events."""

    read_files: tuple[str, ...] = ()
    modified_files: tuple[str, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    commands: Ranges = Ranges()
    """The calls that ran a command, except those that earlier boundaries list."""
    memory_reads: tuple[MemoryRead, ...] = ()
    hidden: tuple[HiddenBlock, ...] = ()


class Summary(Event):
    """The text that replaces what `boundary` removed from the view."""

    boundary: int
    text: str
    sections: dict[str, str] = {}
    digest: Digest = Digest()
    covers: Ranges
    """Every position that the text summarizes, including those of earlier summaries."""
    cites: Ranges = Ranges()
    summarizer: str = Field(validation_alias="summariser", serialization_alias="summariser")
    model: str | None = None
    usage: Usage | None = None
    cost_usd: ReportedAmount = None
    latency_s: ReportedAmount = None
    """Time to write it, including retries."""
    tokens: int
    """Estimated size of the text in the view."""


class BoundaryActivated(Event):
    """From the session's position `effective_from` on, views begin at `boundary`."""

    boundary: int
    effective_from: int
    previous: int | None = None
    """What the boundary builds upon, so that it can be reverted without a search."""
    trigger: Trigger | None = None
    """What activated a prepared boundary; None if a person did, or if it was served immediately."""


class PreparationDropped(Event):
    """The prepared boundary no longer fits the session and will not be served."""

    boundary: int
    reason: str


class CompactionRejected(Event):
    """A draft summary was not used; its cost is counted all the same."""

    request: int | None = None
    """The request that it was written for; others may have overtaken it."""
    reason: str
    rule: str
    summarizer: str = Field(validation_alias="summariser", serialization_alias="summariser")
    model: str | None = None
    usage: Usage | None = None
    cost_usd: ReportedAmount = None
    latency_s: ReportedAmount = None


class CompactionFailed(Event):
    """A compaction failed, or did less than was requested."""

    reason: str
    tried: tuple[str, ...] = ()
    """One line for each attempt: the summarizer and its error."""
    stood_in: str | None = None
    """The summarizer that replaced the failed ones; None if there was no boundary."""
    after: int = 0
    """The position up to which it would have decided; it is not retried before the session grows.
    """
    cancelled: bool = False
    """Whether someone stopped it, so that a retry is allowed immediately."""


class CompactionReverted(Event):
    """From `effective_from` on, views ignore `boundary`, and `to` is served again."""

    boundary: int
    to: int | None
    effective_from: int
    previous: int | None = None


class LineageDeleted(Event):
    """The lineage's session was deleted, so nothing more is decided on it."""
