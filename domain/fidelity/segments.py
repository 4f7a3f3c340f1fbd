"""Defines what a model was sent while one boundary was in effect."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..ranges import Ranges


@dataclass(frozen=True, slots=True)
class ViewSegment:
    """What the calls of one boundary saw, from `call` on: these rows, and all later ones."""

    call: int
    after: int
    """All rows after this position show in full."""
    kept: Ranges
    """The rows up to `after` that show."""
    shown: Mapping[int, str] = field(default_factory=dict)
    """The texts of kept rows that do not show whole."""
    summary: str = ""
    tokens: int = 0
    first_kept: int = 0
    """Where the kept window begins; 0 if the whole history is sent."""


WHOLE_HISTORY = ViewSegment(call=1, after=0, kept=Ranges())
