"""Reports whether a compaction is running, for status displays."""

from collections.abc import Callable

from ....domain.hooks import CompactionEvent, CompactionEventKind, Listener

_START_KINDS = frozenset({CompactionEventKind.REQUESTED})
_END_KINDS = frozenset({CompactionEventKind.RECORDED, CompactionEventKind.FAILED})


def make_status_listener(shows: Callable[[bool], None]) -> Listener:
    """Return a listener that shows True when a compaction starts work, and False after it.

    Each True is followed by one False, however the compaction ends.
    """

    def listens(happening: CompactionEvent) -> None:
        if happening.moment in _START_KINDS:
            shows(True)
        elif happening.moment in _END_KINDS:
            shows(False)

    return listens
