"""The clock that all workers on one server share, however wrong their machines' own may be."""

from collections.abc import Callable
from datetime import datetime, timedelta

from ...storage.event_log.event_store import EventStore
from ...storage.event_log.recorder import Recorder

CLOCK_TOLERANCE = timedelta(seconds=1)
"""A difference that asking alone may make, and that does no harm to leases."""


class ServerClock:
    """This machine's clock, set right by the server's where it goes wrong by more than a second."""

    def __init__(self, recorder: Recorder, machine: Callable[[], datetime]) -> None:
        self.recorder = recorder
        self.machine = machine
        self.off = timedelta()
        """What has to be added to the machine's clock."""

    def __call__(self) -> datetime:
        return self.machine() + self.off

    def compare(self) -> timedelta:
        """Ask the server; returns by how much the machine's clock is to be put forward."""
        said = self.recorder.read_server_time()
        if said is not None:
            off = said - self.machine()
            self.off = off if abs(off) > CLOCK_TOLERANCE else timedelta()
        return self.off


def read_store_time(events: EventStore) -> datetime:
    """What the workers of a store agree that the time is, for whoever only asks."""
    clock = ServerClock(events.recorder, events.clock)
    clock.compare()
    return clock()
