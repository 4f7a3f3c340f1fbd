"""Defines one block as a view shows it."""

from dataclasses import dataclass

from ..domain.blocks import AnyBlock


@dataclass(frozen=True, slots=True)
class ViewEntry:
    position: int
    block: AnyBlock
    """As recorded, whatever the view shows of it."""
    turn: int
    tokens: int
    """Estimated size of what the view shows."""
    digest: bytes
    call: int | None = None
    """For a tool result: the position of its call."""
    shown: str | None = None
    """The text shown instead of the block's own: trimmed, or a hidden block's replacement."""
    is_pinned: bool = False

    @property
    def text(self) -> str:
        return self.block.text if self.shown is None else self.shown
