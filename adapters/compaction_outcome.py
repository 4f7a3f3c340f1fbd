"""What a compaction answers with."""

from dataclasses import dataclass

from ..domain.compaction_events import Repair
from ..domain.ranges import Ranges


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a compaction did, or why it did nothing."""

    compacted: bool
    reason: str
    policy: str
    pre_tokens: int
    post_tokens: int
    boundary: int | None = None
    after: int | None = None
    first_kept: int | None = None
    left: Ranges = Ranges()
    """The blocks that left the view with this boundary."""
    kept: Ranges = Ranges()
    repairs: tuple[Repair, ...] = ()
    split_turn: int | None = None
    summary: str | None = None
    summariser: str | None = None
    rejected: tuple[str, ...] = ()
    """Why other summarisers' drafts were not taken, if this one stood in."""
