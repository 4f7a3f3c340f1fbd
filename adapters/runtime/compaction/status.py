"""Tells whether a compaction is running, to whatever shows it: a bar, a light, a line."""

from collections.abc import Callable

from ....domain.hooks import Happening, Listener, Moment

BEGINS = frozenset({Moment.REQUESTED})
ENDS = frozenset({Moment.RECORDED, Moment.FAILED})


def status_of(shows: Callable[[bool], None]) -> Listener:
    """A listener that has True shown once a compaction has something to do, and False after it.

    Each True is followed by one False, whatever came of it.
    """

    def listens(happening: Happening) -> None:
        if happening.moment in BEGINS:
            shows(True)
        elif happening.moment in ENDS:
            shows(False)

    return listens
