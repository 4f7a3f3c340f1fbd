"""Defines a session for fidelity: each text, its author, and the first call that could see it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


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
