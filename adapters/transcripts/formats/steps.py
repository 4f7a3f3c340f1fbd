"""Defines the steps that reading a transcript of any format yields, in the order of the source."""

from dataclasses import dataclass
from typing import Any

from ....domain.blocks import AnyBlock
from ....domain.compaction_events import Trigger

REWOUND = "rewound in the source"
ANSWERED_LATER = "answered later"
SOURCE_RETRACTIONS = (REWOUND, ANSWERED_LATER)
"""The reasons of retractions that come from a source."""


@dataclass(frozen=True, slots=True)
class SessionStart:
    """The start of a session, or the return to it.

    It is repeated for the same key if the source returns to a session, or has a new title.
    """

    key: str
    """The session's key: the source's own session id, made unique for sub-agents."""
    title: str | None = None
    parent_key: str | None = None
    """For a sub-agent: the key of its parent session."""
    parent_call: str | None = None
    """For a sub-agent: the id of the tool call that started it, if known."""
    fork_of: str | None = None
    """For a branch in the source: the key of the session that it leaves."""
    fork_at: str | None = None
    """The source id of the last shared entry with content; None if they share nothing."""
    project: str | None = None
    """The agent's working folder, or the source's name of the project."""


@dataclass(frozen=True, slots=True)
class SubAgentLink:
    """The tool call that started the sub-agent `key`, which the sub-agent's own file lacks."""

    key: str
    parent_key: str
    parent_call: str


@dataclass(frozen=True, slots=True)
class Append:
    key: str
    """Append identity: the entry's own id and the block's index; the same at every reading."""
    block: AnyBlock
    source_id: str | None = None
    """The entry's own id; later steps name it (`Rewind.to`, `SourceCompaction.kept_ids`)."""
    is_server_call: bool = False
    """Whether it is a call that the provider answered in the same item; reports count it."""


@dataclass(frozen=True, slots=True)
class ReportedCall:
    """One call of a model, reported once; `fields` are those of ModelCalled but the coordinate."""

    key: str
    fields: dict[str, Any]
    first_answer_id: str | None = None
    """The source id of the first entry of the answer: the call saw what precedes it."""


@dataclass(frozen=True, slots=True)
class RequestParameters:
    """The request parameters from here on; None if the source does not have them."""

    key: str
    system_prompt: str | None = None
    tools: list[Any] | None = None
    settings: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Rewind:
    """A step back in the source: all blocks after those of entry `to` are retracted."""

    key: str
    to: str | None
    """None retracts everything."""


@dataclass(frozen=True, slots=True)
class ReplacementText:
    """A text that the model saw from then on instead of an entry's content."""

    source_id: str
    text: str
    tool_call_id: str | None = None
    """The call of the result, if the entry may hold several; None for all of the entry."""


@dataclass(frozen=True, slots=True)
class SourceCompaction:
    """A compaction of the source: everything so far left, except `kept_ids`."""

    key: str
    trigger: Trigger
    summary: str | None
    """The summary of what left; None if the source does not have it."""
    kept_ids: tuple[str, ...] = ()
    """Source ids of earlier entries that stayed in context."""
    pre_tokens: int | None = None
    post_tokens: int | None = None
    source_time: str | None = None
    partial_reason: str | None = None
    """What the source lacks: `the summary is encrypted`."""
    replacements: tuple[ReplacementText, ...] = ()
    is_shortening: bool = False
    """Whether nothing left the context, and only the texts of some entries were replaced."""
    summary_call: dict[str, Any] | None = None
    """The model, usage, cost_usd and latency_s of the call that wrote the summary, if known."""


@dataclass(frozen=True, slots=True)
class SkippedEntry:
    """An entry of a known type that has no content of the session."""

    reason: str


@dataclass(frozen=True, slots=True)
class UnknownEntry:
    """An entry, or a piece of one, of an unknown type."""

    type: str
    line: int | None = None


@dataclass(frozen=True, slots=True)
class SourceProblem:
    """A problem in the source: its place and its reason. The rest is imported."""

    line: int
    reason: str


@dataclass(frozen=True, slots=True)
class EntryEnd:
    """The end of one entry of the source. Its steps since the last one say how it went."""

    offset: int
    """Bytes of the source read so far."""
    answers: int = 0
    """Tool results in it, by the source's count, that answer no tool call."""


ImportStep = (
    SessionStart
    | SubAgentLink
    | Append
    | ReportedCall
    | RequestParameters
    | Rewind
    | SourceCompaction
    | SkippedEntry
    | UnknownEntry
    | SourceProblem
    | EntryEnd
)
