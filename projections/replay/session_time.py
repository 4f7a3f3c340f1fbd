"""Tells what time it is in a session that is run through again: its own, never that of an import.

What is imported says by the source's own clock when it was said, if at all. Everything else about
it, a turn's beginning for one, is stamped when it was imported, and tells nothing.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime

from ..read_models.timestamps import get_event_block, read_source_time
from ..recorded_event import RecordedEvent
from .recording import Recording


class SessionTime:
    """A clock that goes forward only: a source's messages may stand in another order than theirs.

    The log may grow while it is looked at.
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._position = 0
        self.is_told = False
        """Whether anything has said what time it is."""
        self.now = self._find_first_time()

    def advance(self, position: int) -> datetime:
        """What time it was when all up to a position was in the log."""
        for told in self._iter_times(self._recording.log[self._position : position]):
            self.now = max(self.now, told)
            self.is_told = True
        self._position = max(self._position, position)
        return self.now

    def _find_first_time(self) -> datetime:
        """When the first was said; of a source that tells no times, when it was opened here."""
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
