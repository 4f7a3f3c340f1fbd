"""What a summariser is given and gives back."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from ..compaction_events import Digest
from ..item import Item
from ..ranges import Ranges
from ..session_events import Usage


@dataclass(frozen=True)
class Material:
    """What left the view and needs a text in its place."""

    removed_items: tuple[Item, ...]
    """Blocks to be summed up, in order: those that leave now, and those that earlier left for a
    summary of which nobody has the text."""
    covers: Ranges
    """All positions that the text will stand for, those of the previous summary included."""
    budget: int
    """Estimated tokens that the text may take."""
    prefix: Ranges = Ranges()
    """For a split turn: the positions of its beginning, to be summarised apart."""
    previous: str | None = None
    """The text that stood for what left before."""
    previous_sections: dict[str, str] = field(default_factory=dict)
    digest: Digest = Digest()
    """The exact inventory of all that is hidden, earlier boundaries included."""
    instructions: str | None = None
    """What a person asked the summary to care about."""
    turn_budget: int = 0
    """Of the beginning of a split turn, where that has an allowance of its own."""
    template: "SummaryTemplate | None" = None
    """How the policy has it asked for and put together; None is cutbank's own way."""
    originals: Callable[[], Iterable[Item]] | None = None
    """Reads from the log every block that the text will stand for, in order, those that earlier
    summaries stand for included."""
    served_prompt: Callable[[str], Mapping[str, Any]] | None = None
    """The request that the view so far is in a provider's format (`anthropic`, `openai-chat`,
    `openai-responses`), whose prefix the provider may hold in its cache."""

    @property
    def total_budget(self) -> int:
        """Tokens that the whole text may take, a split turn's own allowance included."""
        return self.budget + (self.turn_budget if self.prefix else 0)


class SummaryPart(StrEnum):
    """What one request for a summary is about."""

    HISTORY = "history"
    """All that leaves but the beginning of a split turn."""
    TURN = "turn"
    """The beginning of a turn whose end stays."""


@dataclass(frozen=True, slots=True)
class SummaryRequest:
    """One request to whoever writes summaries."""

    part: SummaryPart
    items: tuple[Item, ...]
    """What is to be summed up, in order."""
    budget: int
    """Tokens that the answer may take."""
    previous: str | None = None
    """The summary that is to be brought up to date."""


class SummaryTemplate(Protocol):
    """The way of one reference document. Implementations are frozen values.

    Their prompts are in our own words (adapters/summarisers/prompts.py); what stands here is what
    a document fixes: which requests are made, what a writer is shown, which sections it is asked
    for, and how the answers become one text. A form may have `touches(call) -> Touch` as well: what
    a call does to files, where the document lists other files than cutbank's own rule does.
    """

    @property
    def sections(self) -> tuple[str, ...]:
        """Headings that are asked for, in order; `Progress: Done` stands below `Progress`."""
        ...

    @property
    def turn_sections(self) -> tuple[str, ...]:
        """Headings for the beginning of a split turn; none where that is not summed up apart."""
        ...

    def plan_requests(self, material: Material, /) -> tuple[SummaryRequest, ...]:
        """The requests to make, side by side; none where the text is known without."""
        ...

    def render_conversation(self, items: Sequence[Item], /) -> str:
        """The conversation as the writer is shown it."""
        ...

    def join_answers(self, texts: Mapping[SummaryPart, str], material: Material, /) -> str:
        """The whole summary, of the answers by what they are about."""
        ...


@dataclass(frozen=True, slots=True)
class Draft:
    """A summary before the gate."""

    text: str
    sections: dict[str, str] = field(default_factory=dict)
    cites: Ranges = Ranges()
    """Handles that the text names."""
    model: str | None = None
    usage: Usage | None = None
    cost_usd: float | None = None
    was_truncated: bool = False
    """The provider stopped at its output limit."""


class Summarizer(Protocol):
    """Writes the text that stands for what left.

    One that waits for others is asynchronous: it can be cancelled, and is given a time limit. One
    that is not is called in a thread of its own, and left behind there when its time is over.
    """

    @property
    def name(self) -> str:
        """As recorded on the Summary event."""
        ...

    def summarize(self, material: Material, /) -> Draft | Awaitable[Draft]:
        """A draft within the budget, or the promise of one.

        Raises SummariserFailedError, which says whether it is worth another try; whatever else
        is raised is not tried again. Either way the store falls back to the next summariser.
        """
        ...
