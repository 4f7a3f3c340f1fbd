"""Reads a log and looks at each row whether its content is what was stored."""

from typing import Any
from uuid import UUID

from ....domain.ranges import Ranges
from ....projections.history_view import HistoryFold
from ....projections.recorded_event import RecordedEvent
from ...storage.event_log.chain import Chain
from ...storage.event_log.event_store import EventStore
from ...storage.event_log.row_integrity import find_row_problems


class CheckedReads:
    """An event store to whoever reads from it, which remembers what it found changed.

    A fingerprint is made of the digests that stand beside events: that the content still matches
    them has to be seen by itself. A view that is rebuilt reads all that it shows.
    """

    def __init__(self, store: EventStore) -> None:
        self._store = store
        self.found: dict[tuple[UUID, int], str] = {}
        """What is wrong, by stream and version; empty where nothing is."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def read(self, chain: Chain, positions: Ranges) -> list[RecordedEvent]:
        """The events at these positions, in order; as EventStore has it."""
        read: list[RecordedEvent] = []
        for originator, runs in chain.split_by_stream(positions):
            for row in self._store.recorder.select_runs(originator, runs):
                for complaint in find_row_problems(self._store, row):
                    self.found[originator, row.originator_version] = complaint
                read.append(self._store.make_recorded(row))
        return read

    def find_problems(self, history: HistoryFold, session: Chain, lineage: Chain) -> list[str]:
        """What is wrong with what a view shows: its blocks, its request and its summary."""
        if not self.found:
            return []
        request = (history.system, history.tools, history.settings)
        shown = {*history.entries, *(one.position for one in request if one)}
        said = [
            f"#{at}: {self.found[session.find_stream(at), at]}"
            for at in sorted(shown)
            if (session.find_stream(at), at) in self.found
        ]
        if history.boundary is not None:
            number = history.boundary.originator_version
            stream = lineage.find_stream(number)
            said += [
                f"version {at} of the lineage: {self.found[stream, at]}"
                for at in (number, number + 1)
                if (stream, at) in self.found
            ]
        return said
