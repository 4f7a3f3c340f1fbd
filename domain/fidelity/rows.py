"""A session as fidelity reads it: what was said, by whom, and which call could see it first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class RowKind(StrEnum):
    """What a row is."""

    SYSTEM = "system"
    USER = "user"
    ATTACHMENT = "attachment"
    """What a harness put beside a user's words: reminders, files, developers' instructions."""
    ASSISTANT = "assistant"
    THINKING = "thinking"
    TOOL_CALL = "tool_call"
    TOOL_RESULT = "tool_result"


AGENT_KINDS = frozenset({RowKind.ASSISTANT, RowKind.THINKING, RowKind.TOOL_CALL})


@dataclass(frozen=True, slots=True)
class FidelityRow:
    """One block; recorded summaries are no rows, nor is what was taken back."""

    position: int
    kind: RowKind
    text: str
    """Of a tool call its name, a line feed, then the values of its arguments, one a line, never as
    JSON: escapes would glue words together."""
    call: int
    """For what the agent wrote the number of the call that wrote it, from 1 on; for all else the
    first call that could see it."""
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
    """How many calls of a model there were."""
    roots: tuple[str, ...] = ()
    """Working directories: paths are compared without them."""
