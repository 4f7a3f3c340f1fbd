"""Defines the events of a running compaction and the answers that listeners may give."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from .compaction_events import Trigger
from .session_events import Usage


class CompactionEventKind(StrEnum):
    """The kinds of events, in the order in which they occur."""

    PRE_COMPACT = "pre_compact"
    """A plan was made. A listener may add instructions to the summary, or veto it."""
    REQUESTED = "requested"
    SUMMARIZING = "summarising"
    """A summarizer begins to write; repeated for each one that is tried."""
    REJECTED = "rejected"
    """A draft failed the gate, a summarizer failed, or a hook vetoed: `reason` says why."""
    SUMMARIZED = "summarised"
    """A draft passed the gate: who wrote it, and what it took."""
    RECORDED = "recorded"
    ACTIVATED = "activated"
    SESSION_START = "session_start"
    """The session goes on with a view that begins at a boundary; `source` is `compact`."""
    DROPPED = "dropped"
    """A prepared boundary no longer fits and will not be served: `reason` says why."""
    FAILED = "failed"
    """The compaction failed; the view is unchanged."""
    REVERTED = "reverted"
    CONTEXT_WARNING = "context_warning"
    """Before a call: the context is so full that something must leave soon, and nothing has."""
    CONTEXT_PRUNED = "context_pruned"
    """Blocks left without a summary."""
    TOOL_RESPONSE_TRUNCATED = "tool_response_truncated"
    """A tool's answer is larger than the view shows; the log keeps all of it."""


@dataclass(frozen=True, slots=True)
class ViewStats:
    """The size of a view."""

    tokens: int
    blocks: int
    summaries: int = 0


JSON_NAMES = {"summarizer": "summariser"}
"""Fields whose JSON key is spelled as it was, because programs and logs have it."""


@dataclass(frozen=True, slots=True)
class CompactionEvent:
    """One event of a compaction, or of a context that is filling up."""

    moment: CompactionEventKind
    session: str
    namespace: str
    lineage: str
    trigger: Trigger | None = None
    policy: str | None = None
    before: ViewStats | None = None
    after: ViewStats | None = None
    """The view once the boundary is served; set from `recorded` on."""
    compacted_blocks: int | None = None
    """How many blocks leave according to the plan."""
    instructions: str | None = None
    """The instructions for the summary so far."""
    summarizer: str | None = None
    boundary: int | None = None
    source: str | None = None
    reason: str | None = None
    rule: str | None = None
    """The gate's rule that a rejected draft broke."""
    error: str | None = None
    """The kind of error of a failed summarizer."""
    model: str | None = None
    """The model that wrote a draft; `usage`, `cost_usd` and `latency_s` say what that took."""
    usage: Usage | None = None
    cost_usd: float | None = None
    latency_s: float | None = None
    message: Mapping[str, Any] | None = None
    """The event in the protocol of a policy's document: `context_warning`, `context_pruned`,
    `tool_response_truncated`; for a served boundary, the Claude Agent SDK's `compact_boundary`."""

    def to_json(self) -> dict[str, Any]:
        known = {
            JSON_NAMES.get(name, name): value
            for name, value in asdict(self).items()
            if value is not None
        }
        if self.usage is not None:
            known["usage"] = self.usage.model_dump(exclude_none=True)
        return known


@dataclass(frozen=True, slots=True)
class HookAnswer:
    """A listener's answer to `pre_compact`; answers to other events are ignored."""

    instructions: str | None = None
    """What the summary should pay attention to, in addition to other instructions."""
    veto: str | None = None
    """Why the session must not be compacted now."""


Listener = Callable[[CompactionEvent], HookAnswer | None]
"""Receives every event in the thread that compacts; its exceptions are only logged."""


Progress = Callable[[int, int], None]
"""Called with how much is done, and how much there is in all."""
