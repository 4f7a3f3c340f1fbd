"""What reading a transcript yields, whatever its format: steps, in the order of the source."""

from dataclasses import dataclass
from typing import Any

from ....domain.blocks import AnyBlock
from ....domain.compaction_events import Trigger


@dataclass(frozen=True, slots=True)
class SessionStart:
    """The steps that follow belong to this session.

    It comes again for the same key where the source goes back to a session, or tells its title.
    """

    key: str
    """The session's key: the source's own session id, made unique for sub-agents."""
    title: str | None = None
    parent_key: str | None = None
    """For a sub-agent: the key of the session it works for."""
    parent_call: str | None = None
    """For a sub-agent: the id of the tool call that started it, where the source says so."""
    fork_of: str | None = None
    """For a branch that the source itself tells apart: the key of the session that it leaves."""
    fork_at: str | None = None
    """The source id of the last entry that both share and that became something there; None where
    they share nothing."""
    project: str | None = None
    """The folder that the agent worked in, or what the source calls the project."""


@dataclass(frozen=True, slots=True)
class SubAgentLink:
    """A tool call started the sub-agent `key`: what the sub-agent's own file does not say."""

    key: str
    parent_key: str
    parent_call: str


@dataclass(frozen=True, slots=True)
class Append:
    """One block of one entry."""

    key: str
    """Append identity: the entry's own id and the block's index; the same at every reading."""
    block: AnyBlock
    source_id: str | None = None
    """The entry's own id; later steps name it (`Rewind.to`, `Compacted.kept`)."""
    is_server_call: bool = False
    """A tool call that the provider answered itself, in the same item: it counts as a call."""


@dataclass(frozen=True, slots=True)
class ReportedCall:
    """One call of a model, reported once; `fields` are those of ModelCalled but the coordinate."""

    key: str
    fields: dict[str, Any]
    first_answer_id: str | None = None
    """The source id of the first entry that the call answered with: it saw what precedes that."""


@dataclass(frozen=True, slots=True)
class RequestParameters:
    """What requests hold from here on beside the messages; None where the source says nothing."""

    key: str
    system_prompt: str | None = None
    tools: list[Any] | None = None
    """The provider's own definitions."""
    settings: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class RawEntry:
    """A known entry that no model was sent and that the agent needs to go on: kept raw, as a note.

    It counts as imported.
    """

    key: str
    type: str
    raw: str
    source_id: str | None = None
    line: int | None = None
    follows: str | None = None
    """As in the origin of a block."""


@dataclass(frozen=True, slots=True)
class Rewind:
    """The source went back: all blocks after those of entry `to` are taken back."""

    key: str
    to: str | None
    """None takes back everything."""


@dataclass(frozen=True, slots=True)
class ReplacementText:
    """Another text that the model saw from then on in the place of what an entry says."""

    source_id: str
    text: str
    tool_call_id: str | None = None
    """The call whose result it is, where the entry may hold several; None for all of the entry."""


@dataclass(frozen=True, slots=True)
class SourceCompaction:
    """The source compacted the session itself: everything so far left, but for `kept`."""

    key: str
    trigger: Trigger
    summary: str | None
    """The text that stood in for what left; None where the source does not show it."""
    kept_ids: tuple[str, ...] = ()
    """Source ids of earlier entries that stayed in context."""
    pre_tokens: int | None = None
    post_tokens: int | None = None
    source_time: str | None = None
    partial_reason: str | None = None
    """What the source does not tell: `the summary is encrypted`."""
    replacements: tuple[ReplacementText, ...] = ()
    """What of the kept entries says something else from then on."""


@dataclass(frozen=True, slots=True)
class SourceShortening:
    """The source shortened earlier blocks in its context, and took none out."""

    key: str
    trigger: Trigger
    replacements: tuple[ReplacementText, ...]
    pre_tokens: int | None = None
    post_tokens: int | None = None
    source_time: str | None = None
    partial_reason: str | None = None


@dataclass(frozen=True, slots=True)
class SkippedEntry:
    """An entry that is known and says nothing a session holds."""

    type: str
    reason: str


@dataclass(frozen=True, slots=True)
class UnknownEntry:
    """An entry of a type that this reader does not know: kept raw, as a note, and counted."""

    key: str
    type: str
    raw: str
    line: int | None = None
    source_id: str | None = None
    follows: str | None = None


@dataclass(frozen=True, slots=True)
class SourceProblem:
    """Something wrong with the source: where and what. The rest is imported."""

    line: int
    reason: str
    key: str | None = None
    raw: str | None = None
    """What was refused, kept as a note like an Unknown; None where other steps hold it."""
    follows: str | None = None
    is_part: bool = False
    """Whether `raw` is a part of an entry whose rest is in the blocks of that entry."""
    append: Append | None = None
    """The tool result that was refused for want of its call: to be appended all the same where the
    session has the call from another file."""


@dataclass(frozen=True, slots=True)
class EntryEnd:
    """The end of one entry of the source: how it ended and how far the source was read."""

    outcome: str
    """`imported`, `skipped`, `unknown` or `error`."""
    offset: int
    """Bytes of the source read so far."""
    answers: int = 0
    """Answers in it that the source counts as tool results and that answer no tool call."""


ImportStep = (
    SessionStart
    | SubAgentLink
    | Append
    | ReportedCall
    | RequestParameters
    | RawEntry
    | Rewind
    | SourceCompaction
    | SourceShortening
    | SkippedEntry
    | UnknownEntry
    | SourceProblem
    | EntryEnd
)
