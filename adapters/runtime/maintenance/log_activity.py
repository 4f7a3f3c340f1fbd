"""Detects whether the log is being written to, or was written to recently."""

from datetime import datetime, timedelta

from ...storage.event_log.event_mapper import load_json
from ...storage.event_log.event_store import EventStore


class LogActivity:
    """Reads the log itself, so that writers in all processes and machines count."""

    def __init__(self, store: EventStore, rest: timedelta) -> None:
        self.store = store
        self.rest = rest

    def read_newest(self) -> int:
        """Return the newest notification; while it stays the same, no process writes."""
        return self.store.recorder.max_notification_id()

    def find_quiet_time(self, now: datetime) -> datetime:
        """Return when the log will have been quiet for long enough; in the past if it is now.

        The time of an event from the future is ignored.
        """
        newest = self.read_newest()
        for event in self.store.recorder.select_notifications(newest, 1) if newest else ():
            try:
                said = load_json(self.store.mapper.read_plaintext(event))
                at = datetime.fromisoformat(said["timestamp"])
            except Exception:  # noqa: BLE001 - encrypted or damaged, which `verify` reports
                return now
            return at + self.rest if at <= now else now
        return now
