"""Reads a log and looks at each row whether its content is what was stored."""

from typing import Any
from uuid import UUID

from ....domain.ranges import Ranges
from ....projections.history_view import History
from ....projections.recorded import Recorded
from ...storage.event_log.chain import Chain
from ...storage.event_log.event_store import EventStore
from ...storage.event_log.intact import complaints


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

    def read(self, chain: Chain, positions: Ranges) -> list[Recorded]:
        """The events at these positions, in order; as EventStore has it."""
        read: list[Recorded] = []
        for originator, runs in chain.split(positions):
            for row in self._store.recorder.select_runs(originator, runs):
                for complaint in complaints(self._store, row):
                    self.found[originator, row.originator_version] = complaint
                read.append(self._store.recorded(row))
        return read

    def complaints(self, history: History, session: Chain, lineage: Chain) -> list[str]:
        """What is wrong with what a view shows: its blocks, its request and its summary."""
        if not self.found:
            return []
        request = (history.system, history.tools, history.settings)
        shown = {*history.entries, *(one.position for one in request if one)}
        said = [
            f"#{at}: {self.found[session.holding(at), at]}"
            for at in sorted(shown)
            if (session.holding(at), at) in self.found
        ]
        if history.boundary is not None:
            number = history.boundary.originator_version
            stream = lineage.holding(number)
            said += [
                f"version {at} of the lineage: {self.found[stream, at]}"
                for at in (number, number + 1)
                if (stream, at) in self.found
            ]
        return said
