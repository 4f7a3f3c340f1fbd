"""What is told of a compaction while it runs, and what those who listen may answer."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from .compaction_events import Trigger
from .session_events import Usage


class CompactionEventKind(StrEnum):
    """What happens, in the order in which it does."""

    PRE_COMPACT = "pre_compact"
    """A plan was made. A listener may add instructions to the summary, or veto it."""
    REQUESTED = "requested"
    SUMMARIZING = "summarising"
    """A summariser begins to write; told again for each one that is tried."""
    REJECTED = "rejected"
    """A draft failed the gate, a summariser failed, or a hook vetoed: `reason` says why."""
    SUMMARIZED = "summarised"
    """A draft passed the gate: who wrote it, and what it took."""
    RECORDED = "recorded"
    ACTIVATED = "activated"
    SESSION_START = "session_start"
    """The session goes on with a view that begins at a boundary; `source` is `compact`."""
    DROPPED = "dropped"
    """A prepared boundary no longer fits and will not be served: `reason` says why."""
    FAILED = "failed"
    """The compaction came to nothing; the view is as it was."""
    REVERTED = "reverted"
    CONTEXT_WARNING = "context_warning"
    """Before a call, so much is in use that something will have to leave soon, and nothing has."""
    CONTEXT_PRUNED = "context_pruned"
    """Blocks have left, and nothing was summed up."""
    TOOL_RESPONSE_TRUNCATED = "tool_response_truncated"
    """A tool's answer is larger than is shown of one; the log keeps all of it."""


@dataclass(frozen=True, slots=True)
class ViewStats:
    """A view in numbers."""

    tokens: int
    blocks: int
    summaries: int = 0
    """Summaries that stand in it for earlier blocks."""


@dataclass(frozen=True, slots=True)
class CompactionEvent:
    """One moment of one compaction, or of a context that is filling up."""

    moment: CompactionEventKind
    session: str
    namespace: str
    lineage: str
    trigger: Trigger | None = None
    policy: str | None = None
    before: ViewStats | None = None
    after: ViewStats | None = None
    """The view once the boundary is served; told from `recorded` on."""
    compacted_blocks: int | None = None
    """How many blocks leave, by the plan."""
    instructions: str | None = None
    """What the summary was asked to care about so far."""
    summariser: str | None = None
    boundary: int | None = None
    source: str | None = None
    reason: str | None = None
    rule: str | None = None
    """The gate's rule that a rejected draft broke."""
    error: str | None = None
    """The kind of error by which a summariser failed, or a shadow's policy."""
    model: str | None = None
    """Which model wrote a draft; `usage`, `cost_usd` and `latency_s` say what that took."""
    usage: Usage | None = None
    cost_usd: float | None = None
    latency_s: float | None = None
    message: Mapping[str, Any] | None = None
    """What it says to those who speak the protocol of a policy's document: `context_warning`,
    `context_pruned`, `tool_response_truncated`; of a boundary that begins to be served, the Claude
    Agent SDK's `compact_boundary`."""

    def to_json(self) -> dict[str, Any]:
        """All that is known, as JSON has it."""
        known = {name: value for name, value in asdict(self).items() if value is not None}
        if self.usage is not None:
            known["usage"] = self.usage.model_dump(exclude_none=True)
        return known


@dataclass(frozen=True, slots=True)
class Veto:
    """What a listener answers to `pre_compact`; to other moments its answer is not heard."""

    instructions: str | None = None
    """What the summary should care about, besides what others ask for."""
    veto: str | None = None
    """Why the session must not be compacted now."""


Listener = Callable[[CompactionEvent], Veto | None]
"""Is told every moment, in the thread that compacts; whatever it raises is logged, and no more."""
