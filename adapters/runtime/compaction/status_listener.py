"""Tells whether a compaction is running, to whatever shows it: a bar, a light, a line."""

from collections.abc import Callable

from ....domain.hooks import CompactionEvent, CompactionEventKind, Listener

_START_KINDS = frozenset({CompactionEventKind.REQUESTED})
_END_KINDS = frozenset({CompactionEventKind.RECORDED, CompactionEventKind.FAILED})


def make_status_listener(shows: Callable[[bool], None]) -> Listener:
    """A listener that has True shown once a compaction has something to do, and False after it.

    Each True is followed by one False, whatever came of it.
    """

    def listens(happening: CompactionEvent) -> None:
        if happening.moment in _START_KINDS:
            shows(True)
        elif happening.moment in _END_KINDS:
            shows(False)

    return listens
