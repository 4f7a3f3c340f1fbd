"""Every fact that can be recorded of a lineage: what is served, and what stands for what."""

from enum import StrEnum
from uuid import UUID

from pydantic import JsonValue

from .event import Event
from .ranges import Ranges
from .record import BoundedCount, Record, ReportedAmount
from .session_events import Usage


class Trigger(StrEnum):
    """What set a compaction off."""

    THRESHOLD = "threshold"
    OVERFLOW = "overflow"
    MANUAL = "manual"
    IDLE = "idle"


class LineageBase(Record):
    """The lineage, and the version of it, that another one continues."""

    originator_id: UUID
    lineage: str
    version: int


class CompactionOpened(Event):
    """A lineage begins. One with a base begins one past the base's version."""

    namespace: str
    key: str
    lineage: str
    base: LineageBase | None = None


class CompactionRequested(Event):
    """Somebody wants the session compacted, and begins to: a lease on deciding it.

    A boundary or a failure ends it. If neither follows before the lease has run out, whoever was
    at it has died, and the next one to ask takes over.
    """

    trigger: Trigger
    policy: str
    settings: dict[str, JsonValue] = {}
    after: int
    instructions: str | None = None
    idempotency_key: str | None = None
    by: str | None = None
    """The worker that is at it; None where whoever asked does it."""
    lease_s: float | None = None
    """For how long nobody else need begin, in seconds from the event's timestamp on."""
    activate: bool = True
    """Whether the boundary is to be served at once; else it is prepared, and nobody waits."""


class Trim(Record):
    """A tool output that stays in the view shortened: its first and last characters."""

    position: int
    head: int
    tail: int = 0


class Replacement(Record):
    """A hidden block that shows this text in its place."""

    position: int
    text: str


class SplitTurn(Record):
    """A cut inside a turn: its beginning is summarised apart."""

    turn: int
    prefix: Ranges


class Repair(Record):
    """What the store changed in a policy's raw plan so that the view stays legal."""

    rule: str
    wanted: int | None = None
    """The position that the policy cut at, where the cut was moved."""
    got: int | None = None
    """The position that the boundary cuts at."""
    stays: Ranges = Ranges()
    """Blocks that the policy would have taken out."""
    leaves: Ranges = Ranges()
    """Blocks that the policy would have kept."""
    trimmed: Ranges = Ranges()
    """Tool results that are shown shortened, and the policy would have kept whole."""


class CompactBoundary(Event):
    """What of the session up to `after` stays in the view. References only, never content.

    A boundary's name is its version in the lineage.
    """

    after: int
    first_kept: int
    """Where the kept window begins; what is kept before it was pinned or is still open."""
    kept: Ranges
    """All positions up to `after` that stay, pinned, trimmed and replaced ones included."""
    pinned: Ranges = Ranges()
    hidden: Ranges = Ranges()
    trims: tuple[Trim, ...] = ()
    replacements: tuple[Replacement, ...] = ()
    split_turn: SplitTurn | None = None
    trigger: Trigger
    policy: str
    pre_tokens: BoundedCount
    post_tokens: BoundedCount
    repairs: tuple[Repair, ...] = ()
    previous: int | None = None
    """The boundary that this one builds upon."""
    source_time: str | None = None
    partial: str | None = None
    """What the source does not tell of it, where it was imported from one that does not tell
    all: its summary is encrypted, say."""


class Artifact(Record):
    """Something that a tool made, as its result at `position` says."""

    position: int
    path: str
    mime: str | None = None
    kind: str | None = None
    visibility: str | None = None
    """Who was shown it, as `external`."""
    tool: str | None = None
    sources: tuple[str, ...] = ()


class MemoryRead(Record):
    """A call that looked something up in a memory, and what was found."""

    position: int
    query: str = ""
    hits: int = 0
    turns: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()


class HiddenBlock(Record):
    """A block that was hidden, and what it showed in its place."""

    position: int
    replacement: str | None = None


class Digest(Record):
    """The exact inventory of what a boundary hides, taken from events."""

    read_files: tuple[str, ...] = ()
    modified_files: tuple[str, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    commands: Ranges = Ranges()
    """The calls that ran a command; those that left at earlier boundaries are told by theirs."""
    memory_reads: tuple[MemoryRead, ...] = ()
    hidden: tuple[HiddenBlock, ...] = ()


class Summary(Event):
    """The text that stands for what `boundary` took out of the view."""

    boundary: int
    text: str
    sections: dict[str, str] = {}
    digest: Digest = Digest()
    covers: Ranges
    """Every position that the text stands for, those of earlier summaries included."""
    cites: Ranges = Ranges()
    summariser: str
    model: str | None = None
    usage: Usage | None = None
    cost_usd: ReportedAmount = None
    latency_s: ReportedAmount = None
    """How long it took to write, its retries included."""
    tokens: int
    """Estimated size of the text in the view."""


class BoundaryActivated(Event):
    """From the session's position `effective_from` on, views begin at `boundary`."""

    boundary: int
    effective_from: int
    previous: int | None = None
    """What the boundary builds upon, so that it can be reverted without a search."""
    trigger: Trigger | None = None
    """What had a boundary served that was prepared before; None where a person did, or where it was
    drawn to be served at once."""


class PreparationDropped(Event):
    """The prepared boundary no longer fits what the session has become; it will not be served."""

    boundary: int
    reason: str


class CompactionRejected(Event):
    """A draft summary was not used. What it cost was spent all the same."""

    request: int | None = None
    """The request that it was written for, which others may have overtaken."""
    reason: str
    rule: str
    summariser: str
    model: str | None = None
    usage: Usage | None = None
    cost_usd: ReportedAmount = None
    latency_s: ReportedAmount = None


class CompactionFailed(Event):
    """A compaction came to nothing, or to less than was asked for."""

    reason: str
    tried: tuple[str, ...] = ()
    """One line for each attempt: who, and what went wrong."""
    stood_in: str | None = None
    """Who wrote the summary all the same; None where there was no boundary."""
    after: int = 0
    """The position up to which would have been decided: not tried again until there is more."""
    cancelled: bool = False
    """Whether somebody stopped it, so that nothing speaks against trying again at once."""


class CompactionReverted(Event):
    """From `effective_from` on, views are as if `boundary` had not been; `to` is served again."""

    boundary: int
    to: int | None
    effective_from: int
    previous: int | None = None
    """What `to` builds upon."""
