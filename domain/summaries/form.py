"""How a policy has its summaries asked for and put together: sections, labels, limits, order."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from ..blocks import ToolCall
from ..digest import Touch
from ..window import Item
from .summariser import Material


class Part(StrEnum):
    """What one request for a summary is about."""

    HISTORY = "history"
    """All that leaves but the beginning of a split turn."""
    TURN = "turn"
    """The beginning of a turn whose end stays."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One request to whoever writes summaries."""

    part: Part
    items: tuple[Item, ...]
    """What is to be summed up, in order."""
    budget: int
    """Tokens that the answer may take."""
    previous: str | None = None
    """The summary that is to be brought up to date."""


class SummaryForm(Protocol):
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

    def asked(self, material: Material, /) -> tuple[Asked, ...]:
        """The requests to make, side by side; none where the text is known without."""
        ...

    def said(self, items: Sequence[Item], /) -> str:
        """The conversation as the writer is shown it."""
        ...

    def joined(self, texts: Mapping[Part, str], material: Material, /) -> str:
        """The whole summary, of the answers by what they are about."""
        ...


def touches_of(form: SummaryForm | None) -> Callable[[ToolCall], Touch] | None:
    """A form's own rule of what calls do to files; None where cutbank's holds."""
    return getattr(form, "touches", None)
