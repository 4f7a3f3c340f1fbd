"""Defines sessions for fidelity: each text and its author, and what its calls were sent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from ..ranges import Ranges


class RowKind(StrEnum):
    SYSTEM = "system"
    USER = "user"
    ATTACHMENT = "attachment"
    """Text that a harness added to a user's message: reminders, files, developer instructions."""
    ASSISTANT = "assistant"
    THINKING = "thinking"
    TOOL_CALL = "tool_call"
    TOOL_RESULT = "tool_result"


AGENT_KINDS = frozenset({RowKind.ASSISTANT, RowKind.THINKING, RowKind.TOOL_CALL})


@dataclass(frozen=True, slots=True)
class FidelityRow:
    """One block; there are no rows for recorded summaries or retracted blocks."""

    position: int
    kind: RowKind
    text: str
    """For a tool call: its name and its argument values, one a line, without JSON escapes, which
    would join words."""
    call: int
    """The call that wrote it, from 1 on, if it is the agent's; else the first call that could see
    it."""
    tool: str | None = None
    arguments: Mapping[str, Any] | None = None
    call_id: str | None = None
    is_error: bool = False

    @property
    def tokens(self) -> int:
        """Characters / 4, rounded up."""
        return -(-len(self.text) // 4)


@dataclass(frozen=True, slots=True)
class SessionRows:
    """All rows of a session, in order of position."""

    session: str
    rows: Sequence[FidelityRow]
    calls: int
    roots: tuple[str, ...] = ()
    """Working directories, which are removed from paths before comparison."""


@dataclass(frozen=True, slots=True)
class ViewSegment:
    """What the calls of one boundary saw, from `call` on: these rows, and all later ones."""

    call: int
    after: int
    """All rows after this position show in full."""
    kept: Ranges
    """The rows up to `after` that show."""
    shown: Mapping[int, str] = field(default_factory=dict)
    """The texts of kept rows that do not show whole."""
    summary: str = ""


WHOLE_HISTORY = ViewSegment(call=1, after=0, kept=Ranges())
