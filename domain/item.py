"""Defines the item: one visible block with its turn and size, as a policy sees it."""

from dataclasses import dataclass
from operator import attrgetter

from .blocks import AnyBlock, Kind


@dataclass(frozen=True, slots=True)
class Item:
    """One visible block, as a policy sees it."""

    position: int
    block: AnyBlock
    turn: int
    tokens: int
    """Estimated size as shown in the view."""
    call: int | None = None
    """For a tool result: the position of its call."""
    is_open: bool = False
    """For a tool call: nobody has answered it yet."""
    is_pinned: bool = False
    is_unfinished: bool = False
    """For a piece of a model's message: the model was cut off before it came to an end."""
    length: int | None = None
    """Characters of what is shown, where that is not the block's own text."""
    behind: int | None = None
    """For a result that came late: the position of the block it stands behind in the view."""

    @property
    def kind(self) -> Kind:
        return self.block.kind

    @property
    def message(self) -> str | None:
        """The message that it is a piece of; none for a late result, which stands apart from the
        other pieces."""
        return self.block.message_id if self.behind is None else None

    @property
    def place(self) -> int:
        """Where it stands in the view, as a position; items of a window come in this order."""
        return self.position if self.behind is None else self.behind


get_place = attrgetter("place")
