"""What a summariser is given and gives back."""

from dataclasses import dataclass, field
from typing import Protocol

from ..compaction_events import Digest
from ..ranges import Ranges
from ..session_events import Usage
from ..window import Item


@dataclass(frozen=True)
class Material:
    """What left the view and needs a text in its place."""

    gone: tuple[Item, ...]
    """Blocks that leave now, in order; no earlier summary stands for them."""
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


class Summariser(Protocol):
    """Writes the text that stands for what left."""

    @property
    def name(self) -> str:
        """As recorded on the Summary event."""
        ...

    def summarise(self, material: Material, /) -> Draft:
        """A draft within the budget; raises whatever it likes, and the store falls back."""
        ...
