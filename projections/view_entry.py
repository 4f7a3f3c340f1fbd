"""One block as a view shows it."""

from dataclasses import dataclass

from ..domain.blocks import AnyBlock


@dataclass(frozen=True, slots=True)
class ViewEntry:
    """One block of a view."""

    position: int
    block: AnyBlock
    """As recorded, whatever is shown of it."""
    turn: int
    tokens: int
    """Estimated size of what is shown."""
    digest: bytes
    call: int | None = None
    """For a tool result: the position of its call."""
    shown: str | None = None
    """Text that is shown instead of the block's own: trimmed, or a hidden block's replacement."""
    is_pinned: bool = False

    @property
    def text(self) -> str:
        """What the view shows of the block's text."""
        return self.block.text if self.shown is None else self.shown
