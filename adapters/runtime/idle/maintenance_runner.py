"""Defines what a worker needs of maintenance."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from ..sessions.session_store import SessionStore

if TYPE_CHECKING:
    from ...settings.maintenance_settings import MaintenanceSettings
    from ..maintenance.maintenance import Maintenance


class MaintenanceReport(Protocol):
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
        """Whether it was interrupted and goes on later."""
        ...


class MaintenanceRunner(Protocol):
    """Maintenance tasks of the storage; only one worker at a time runs each."""

    def apply_settings(self, settings: "MaintenanceSettings") -> None: ...

    def find_next_time(self) -> datetime | None:
        """Return when the earliest task is due; None if there are no tasks."""
        ...

    def run_due(self, now: datetime, go_on: Callable[[], bool]) -> Sequence[MaintenanceReport]:
        """Run what is due for as long as `go_on` returns True."""
        ...


def make_maintenance(store: SessionStore) -> "Maintenance":
    """Return the maintenance that a store's settings ask for."""
    # The module imports stores, which import this one.
    from ..maintenance.maintenance import Maintenance  # noqa: PLC0415

    def clock() -> datetime:
        # A worker may replace the store's clock when it begins.
        return store.events.clock()

    return Maintenance(store, store.settings.maintenance, clock)
