"""Decides whether a prepared boundary may still be served after later events."""

from collections.abc import Collection
from typing import NamedTuple

from .compaction_events import CompactBoundary, Summary
from .ranges import Ranges


class ChangesSince(NamedTuple):
    """What changed about a session's blocks after a boundary was prepared."""

    retracted: Ranges = Ranges()
    reopened: Ranges = Ranges()
    """Calls that wait for an answer again."""
    pinned: Ranges = Ranges()
    """All blocks that are pinned by now."""
    hidden: Collection[int] = ()
    """Blocks to hide from the next boundary on."""
    shown: Collection[int] = ()
    """Blocks that the new view would show."""


def explain_misfit(
    boundary: CompactBoundary,
    summary: Summary | None,
    since: ChangesSince,
    *,
    beneath: int,
    served: int,
) -> str | None:
    """Return why a prepared boundary must not be served any more, or None.

    `beneath` is the boundary that it builds upon, `served` the one that is served now.
    """
    if beneath != served:
        return (
            f"it builds upon {_describe_boundary(beneath)}, and by now "
            f"{_describe_boundary(served)} is served"
        )
    covers = summary.covers if summary else Ranges()
    gone = covers | boundary.hidden
    told = (
        (since.retracted & covers, "was taken back"),
        (since.reopened & gone, "waits for an answer again"),
        (since.pinned & gone, "was pinned"),
        (Ranges.of(at for at in since.hidden if at in since.shown), "was hidden"),
    )
    for positions, what in told:
        if positions:
            return f"{positions} {what} since it was prepared"
    return None


def _describe_boundary(boundary: int) -> str:
    return f"boundary {boundary}" if boundary else "the whole history"
