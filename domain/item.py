"""Defines the item: one visible block with its turn and size, as a policy sees it."""

from dataclasses import dataclass
from operator import attrgetter

from .blocks import AnyBlock, Kind


@dataclass(frozen=True, slots=True)
class Item:
    position: int
    block: AnyBlock
    turn: int
    tokens: int
    """Estimated size as shown in the view."""
    call: int | None = None
    """For a tool result: the position of its call."""
    is_open: bool = False
    """For a tool call: it has no answer yet."""
    is_pinned: bool = False
    is_unfinished: bool = False
    """For a piece of a model's message: the model was interrupted before it ended."""
    length: int | None = None
    """The number of characters shown, if that is not the block's own text."""
    behind: int | None = None
    """For a late result: the position of the block that it follows in the view."""

    @property
    def kind(self) -> Kind:
        return self.block.kind

    @property
    def message(self) -> str | None:
        """The id of its message; None for a late result, which is apart from the other pieces."""
        return self.block.message_id if self.behind is None else None

    @property
    def place(self) -> int:
        """Its place in the view, as a position; the items of a window are in this order."""
        return self.position if self.behind is None else self.behind


get_place = attrgetter("place")
