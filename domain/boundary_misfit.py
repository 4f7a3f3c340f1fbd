"""Whether a boundary that was prepared may still be served, after what has happened since."""

from collections.abc import Collection
from typing import NamedTuple

from .compaction_events import CompactBoundary, Summary
from .ranges import Ranges


class ChangesSince(NamedTuple):
    """What was said of a session's blocks after a boundary was prepared."""

    retracted: Ranges = Ranges()
    reopened: Ranges = Ranges()
    """Calls that wait for an answer again."""
    pinned: Ranges = Ranges()
    """All that is pinned by now."""
    hidden: Collection[int] = ()
    """Blocks that are to be hidden from the next boundary on."""
    shown: Collection[int] = ()
    """Blocks that the view to come would show."""


def explain_misfit(
    boundary: CompactBoundary,
    summary: Summary | None,
    since: ChangesSince,
    *,
    beneath: int,
    served: int,
) -> str | None:
    """Why a prepared boundary must not be served any more; None where nothing speaks against it.

    A boundary that is decided now would take account of all that was said up to now, and so has
    one that was prepared earlier: `beneath` is what it was built upon, `served` what is served.
    """
    if beneath != served:
        return f"it builds upon {_describe_boundary(beneath)}, and by now {_describe_boundary(served)} is served"
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
