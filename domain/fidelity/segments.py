"""What a model was sent while one boundary was in effect, as far as facts can be in it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..ranges import Ranges


@dataclass(frozen=True, slots=True)
class ViewSegment:
    """From one boundary to the next: the calls from `call` on saw these rows, and what followed."""

    call: int
    """Number of the first call that was sent this."""
    after: int
    """All rows behind this position show as they are."""
    kept: Ranges
    """Of those up to it, the rows that show."""
    shown: Mapping[int, str] = field(default_factory=dict)
    """What shows of kept rows that do not show whole."""
    summary: str = ""
    tokens: int = 0
    """Of the summary."""
    first_kept: int = 0
    """Where the kept window begins; 0 where the whole history is sent."""


WHOLE_HISTORY = ViewSegment(call=1, after=0, kept=Ranges())
"""The full history: nothing ever left."""
