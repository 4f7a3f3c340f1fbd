"""What a worker asks of whoever keeps the storage in order."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from ..sessions.session_store import SessionStore

if TYPE_CHECKING:
    from ...settings.maintenance_settings import MaintenanceSettings
    from ..maintenance.maintenance import Maintenance


class MaintenanceReport(Protocol):
    """What became of a chore."""

    @property
    def chore(self) -> str: ...

    @property
    def reason(self) -> str | None: ...

    @property
    def took_s(self) -> float: ...

    @property
    def next_at(self) -> datetime: ...

    @property
    def has_failed(self) -> bool: ...

    @property
    def was_stopped(self) -> bool:
        """Whether it is to go on later."""
        ...


class MaintenanceRunner(Protocol):
    """Chores of the storage, each of which is done by one worker of all at a time."""

    def apply_settings(self, settings: "MaintenanceSettings") -> None:
        """Go by these settings from the next run on."""
        ...

    def find_next_time(self) -> datetime | None:
        """When the earliest is due; None where none ever is."""
        ...

    def run_due(self, now: datetime, go_on: Callable[[], bool]) -> Sequence[MaintenanceReport]:
        """Do what is due, as long as `go_on` says that there is nothing better to do."""
        ...


def make_maintenance(store: SessionStore) -> "Maintenance":
    """The chores that the settings of a store ask for."""
    # They look at stores themselves.
    from ..maintenance.maintenance import Maintenance  # noqa: PLC0415

    def clock() -> datetime:
        # Which one the store goes by is decided when a worker begins.
        return store.events.clock()

    return Maintenance(store, store.settings.maintenance, clock)
