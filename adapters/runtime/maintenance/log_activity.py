"""Whether somebody writes to the log, or has just done so."""

from datetime import datetime, timedelta

from ...storage.event_log.event_mapper import load_json
from ...storage.event_log.event_store import EventStore


class LogActivity:
    """Asks the log itself, so that it does not matter whose process or machine it is."""

    def __init__(self, store: EventStore, rest: timedelta) -> None:
        self.store = store
        self.rest = rest

    def read_newest(self) -> int:
        """The newest notification: while it stays, nobody writes."""
        return self.store.recorder.max_notification_id()

    def find_quiet_time(self, now: datetime) -> datetime:
        """From when on nobody has written for long enough; a moment that is past if it is so now.

        The clock of an event that says it is of a time to come tells nothing.
        """
        newest = self.read_newest()
        for event in self.store.recorder.select_notifications(newest, 1) if newest else ():
            try:
                said = load_json(self.store.mapper.read_plaintext(event))
                at = datetime.fromisoformat(said["timestamp"])
            except Exception:  # noqa: BLE001 - in cipher, or damaged, which `verify` tells
                return now
            return at + self.rest if at <= now else now
        return now
