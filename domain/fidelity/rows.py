"""Defines sessions for fidelity, what calls were sent of them, and the counts of a measurement."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Self

from ..event import StoredValue
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


class Scores(StoredValue):
    """Counts over the stakes of one or more sessions."""

    boundaries: int = 0
    stakes: int = 0
    """Facts that the agent later used when they were only in hidden history."""
    hits: int = 0
    """Stakes that the view still carried."""
    hard_stakes: int = 0
    hard_hits: int = 0
    """The same for paths, URLs, hashes, errors and numbers only."""
    context_hits: int = 0
    """Hits with at least two of their former context words around them."""
    quoted_hits: int = 0
    """Hits with these words in the same quote, of four words or more; rows that show count whole.
    """
    pairs: int = 0
    pair_hits: int = 0
    """Pairs of words that the agent's prose used later, and those that the view carried."""
    modified: int = 0
    modified_named: int = 0
    """Files that hidden calls modified, and those that the view still names."""
    constraints: int = 0
    constraints_kept: int = 0
    """Users' sentences that state a rule, and those whose words survived."""
    novel: int = 0
    """Facts in summaries that occur nowhere in history: suspected inventions."""

    def __add__(self, other: Self) -> Self:
        return type(self)(
            **{name: getattr(self, name) + getattr(other, name) for name in type(self).model_fields}
        )

    @property
    def recall(self) -> float | None:
        """R; None if nothing was at stake."""
        return divide(self.hits, self.stakes)

    @property
    def context(self) -> float | None:
        """C: hits in their context, out of all stakes."""
        return divide(self.context_hits, self.stakes)

    @property
    def quoted_context(self) -> float | None:
        """Cq: hits in a quote of their context, out of all stakes."""
        return divide(self.quoted_hits, self.stakes)

    @property
    def prose(self) -> float | None:
        """P: pairs of words."""
        return divide(self.pair_hits, self.pairs)

    @property
    def f3(self) -> float | None:
        """The harmonic mean of R, C and P, the main score; a list of keywords is close to zero."""
        parts = (self.recall, self.context, self.prose)
        if any(part is None for part in parts):
            return None
        if not all(parts):
            return 0.0
        return 3 / sum(1 / part for part in parts if part)


def divide(part: float, whole: float) -> float | None:
    return part / whole if whole else None
