"""Reads a log and checks that the content of each row is unchanged."""

from typing import Any
from uuid import UUID

from ....domain.ranges import Ranges
from ....projections.history_view import HistoryFold
from ....projections.recorded_event import RecordedEvent
from ...storage.event_log.chain import Chain
from ...storage.event_log.event_store import EventStore


class CheckedReads:
    """A read-only event store that records which events have changed content.

    Fingerprints are computed from the digests stored with events, so they do not detect content
    that no longer matches its digest.
    """

    def __init__(self, store: EventStore) -> None:
        self._store = store
        self.found: dict[tuple[UUID, int], str] = {}
        """The problems, by stream and version."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def read(self, chain: Chain, positions: Ranges) -> list[RecordedEvent]:
        """Return the events at these positions, in order, as EventStore does."""
        read: list[RecordedEvent] = []
        for originator, runs in chain.split_by_stream(positions):
            for row in self._store.recorder.select_runs(originator, runs):
                for complaint in self._store.find_row_problems(row):
                    self.found[originator, row.originator_version] = complaint
                read.append(self._store.make_recorded(row))
        return read

    def find_problems(self, history: HistoryFold, session: Chain, lineage: Chain) -> list[str]:
        """Return the problems with what a view shows: its blocks, its request and its summary."""
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
