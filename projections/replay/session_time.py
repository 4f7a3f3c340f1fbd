"""Tells the time in a replayed session by its own clock, never by that of an import.

An imported block has the source's own time, or none. All other events of an import have the time of
the import, which is ignored.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime

from ..read_models.timestamps import get_event_block, read_source_time
from ..view_content import RecordedEvent
from .recording import Recording


class SessionTime:
    """A clock that only goes forward, because a source's messages may be out of order.

    The log may grow while it is in use.
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._position = 0
        self.is_told = False
        """Whether any event had a time."""
        self.now = self._find_first_time()

    def advance(self, position: int) -> datetime:
        """Return the time at which everything up to a position was in the log."""
        for told in self._iter_times(self._recording.log[self._position : position]):
            self.now = max(self.now, told)
            self.is_told = True
        self._position = max(self._position, position)
        return self.now

    def _find_first_time(self) -> datetime:
        """Return the first time in the log; if a source has none, the time of the import."""
        log = self._recording.log
        return next(self._iter_times(log), log[0].event.timestamp)

    def _iter_times(self, log: Sequence[RecordedEvent]) -> Iterator[datetime]:
        for recorded in log:
            event = recorded.event
            block = get_event_block(event)
            if block is not None and block.origin is not None:
                if (told := read_source_time(block)) is not None:
                    yield told
            elif block is not None or not self._recording.is_imported:
                yield event.timestamp
