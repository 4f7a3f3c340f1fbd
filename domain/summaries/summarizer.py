"""Defines the input and output of a summarizer, and summarizers that describe nothing."""

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from ..compaction_events import Digest
from ..item import WindowItem, group_messages
from ..ranges import Ranges
from ..session_events import Usage
from ..token_estimate import estimate_text

ALWAYS_SMALL_TOKENS = 32
"""The tokens that a text may always have, even if it replaces fewer."""


@dataclass(frozen=True)
class Material:
    """The blocks that left the view and need a text in their place."""

    removed_items: tuple[WindowItem, ...]
    """Blocks to summarize, in order: those that leave now, and those of an unknown earlier summary.
    """
    covers: Ranges
    """All positions that the text will cover, including those of the previous summary."""
    budget: int
    """The most estimated tokens of the text."""
    prefix: Ranges = Ranges()
    """For a split turn: the positions of its beginning, to be summarized separately."""
    previous: str | None = None
    previous_sections: dict[str, str] = field(default_factory=dict)
    digest: Digest = Digest()
    """The exact inventory of everything hidden, including earlier boundaries."""
    instructions: str | None = None
    """What the user wants the summary to pay attention to."""
    turn_budget: int = 0
    """The most tokens for a split turn's beginning, if it has a separate budget."""
    template: "SummaryTemplate | None" = None
    """How the policy requests and assembles the summary; None is cutbank's own way."""
    kept_items: tuple[WindowItem, ...] = ()
    """Blocks that stay in the view, which a summary need not repeat."""
    originals: Callable[[Ranges], Iterable[WindowItem]] | None = None
    """Reads covered blocks from the log by position, in order, also those of earlier summaries."""
    served_prompt: Callable[[str], Mapping[str, Any]] | None = None
    """Returns the current view's request in a provider's format (`anthropic`, `openai-chat`,
    `openai-responses`), whose prefix may be in the provider's cache."""

    @property
    def total_budget(self) -> int:
        """Tokens of the whole text, including a split turn's separate budget."""
        return self.budget + (self.turn_budget if self.prefix else 0)

    @property
    def removed_tokens(self) -> int:
        return sum(item.tokens for item in self.removed_items)

    @property
    def replaced_tokens(self) -> int:
        """The estimated tokens that a text replaces: the blocks, and the earlier summary."""
        return self.removed_tokens + estimate_text(self.previous or "")

    @property
    def max_useful_tokens(self) -> int:
        """The most tokens of a text that still makes the view smaller."""
        return max(self.replaced_tokens - 1, ALWAYS_SMALL_TOKENS)


class SummaryPart(StrEnum):
    """The subject of one request for a summary."""

    HISTORY = "history"
    """Everything that leaves, except the beginning of a split turn."""
    TURN = "turn"
    """The beginning of a turn whose end stays."""


@dataclass(frozen=True, slots=True)
class SummaryRequest:
    part: SummaryPart
    items: tuple[WindowItem, ...]
    """The items to summarize, in order."""
    budget: int
    """The most tokens of the answer."""
    previous: str | None = None
    """The summary to update."""


class SummaryTemplate(Protocol):
    """How one reference document writes summaries. Implementations are frozen values.

    The prompts are in cutbank's own words. A template holds what a document fixes: the requests,
    the rendering of the conversation, the sections, and how the answers become one text. An
    optional `find_touches(call) -> TouchedPaths` replaces cutbank's rule of what a call does to
    files.
    """

    @property
    def sections(self) -> tuple[str, ...]:
        """The requested headings, in order; `Progress: Done` is below `Progress`."""
        ...

    @property
    def turn_sections(self) -> tuple[str, ...]:
        """The headings for a split turn's beginning; empty if it has no separate summary."""
        ...

    def plan_requests(self, material: Material, /) -> tuple[SummaryRequest, ...]:
        """Return the requests, which may run in parallel; empty if the text needs none."""
        ...

    def render_conversation(self, items: Sequence[WindowItem], /) -> str: ...

    def join_answers(self, texts: Mapping[SummaryPart, str], material: Material, /) -> str:
        """Return the whole summary from the answers to the requests."""
        ...


@dataclass(frozen=True, slots=True)
class Draft:
    """A summary before the gate."""

    text: str
    sections: dict[str, str] = field(default_factory=dict)
    cites: Ranges = Ranges()
    model: str | None = None
    usage: Usage | None = None
    cost_usd: float | None = None
    was_truncated: bool = False
    """Whether the provider stopped at its output limit."""


class Summarizer(Protocol):
    """Writes the text that replaces what left.

    An asynchronous one can be cancelled and has a time limit. Any other runs in its own thread,
    which is abandoned when its time is over.
    """

    @property
    def name(self) -> str:
        """The name recorded on the Summary event."""
        ...

    def summarize(self, material: Material, /) -> Draft | Awaitable[Draft]:
        """Return a draft within the budget, or an awaitable of one.

        Raises SummarizerFailedError, which says whether a retry may succeed; other exceptions are
        not retried. In both cases the store goes on to the next summarizer.
        """
        ...


# Summarizers that describe nothing, and cannot fail

_MAX_RANGES_CHARS = 400
"""The longest list of ranges, so that scattered ranges stay small."""


@dataclass(frozen=True)
class ListingSummarizer:
    """Counts and handles only, so nothing can be wrong or fail."""

    name: str = "listing"

    def summarize(self, material: Material) -> Draft:
        kinds = Counter(item.kind.value for item in material.removed_items)
        counts = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
        ranges = str(material.covers)
        if len(ranges) > _MAX_RANGES_CHARS and material.covers:
            ranges = f"#{material.covers.runs[0][0]}-{material.covers.runs[-1][1]}"
        return Draft(text=f"Earlier blocks left the view ({counts}). Recall them: {ranges}.")


NOTICE_SECTION = "Pruned"
HIDDEN_TEXT = "[Blocks were hidden, and are not shown.]"
"""The text if nothing else replaces what left."""


@dataclass(frozen=True)
class NoticeSummarizer:
    """One line below the earlier summary: how many messages were removed so far.

    The view names the handles of everything that left next to it. It cannot fail.
    """

    name: str = "notice"

    def summarize(self, material: Material) -> Draft:
        told = material.previous_sections.get(NOTICE_SECTION, "")
        above = (material.previous or "").removesuffix(told).rstrip()
        counted = _COUNT.search(told)
        before = int(counted[1].replace(",", "")) if counted else 0
        removed = before + len(group_messages(material.removed_items))
        old = f"{removed:,} old {'message' if removed == 1 else 'messages'}"
        line = f"[Context Pruned: Removed {old} to stay within context limits]"
        text = f"{above}\n\n{line}" if above else line
        return Draft(text, {**material.previous_sections, NOTICE_SECTION: line})


_COUNT = re.compile(r"Removed ([\d,]{1,15})\b")
