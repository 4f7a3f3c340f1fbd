"""Provides the server's clock to all of its workers, however wrong their machines' clocks are."""

from collections.abc import Callable
from datetime import datetime, timedelta

from ...storage.event_log.event_store import EventStore
from ...storage.event_log.recorder import Recorder

CLOCK_TOLERANCE = timedelta(seconds=1)
"""A difference that the query itself may cause, and that does leases no harm."""


class ServerClock:
    """This machine's clock, corrected by the server's if it is off by more than a second."""

    def __init__(self, recorder: Recorder, machine: Callable[[], datetime]) -> None:
        self.recorder = recorder
        self.machine = machine
        self.off = timedelta()

    def __call__(self) -> datetime:
        return self.machine() + self.off

    def compare(self) -> timedelta:
        """Ask the server for its time; return the correction of the machine's clock."""
        said = self.recorder.read_server_time()
        if said is not None:
            off = said - self.machine()
            self.off = off if abs(off) > CLOCK_TOLERANCE else timedelta()
        return self.off


def read_store_time(events: EventStore) -> datetime:
    """Return the time by the workers' common clock."""
    clock = ServerClock(events.recorder, events.clock)
    clock.compare()
    return clock()
