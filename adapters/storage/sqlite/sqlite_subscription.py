"""Follows the log on SQLite, which eventsourcing itself does not offer."""

import sqlite3

from ....domain.errors import StorageError
from ..event_log.polling_subscription import PollingSubscription


class SQLiteSubscription(PollingSubscription):
    """SQLite has no notifications, but says for nothing whether somebody else has committed."""

    failures = (sqlite3.Error, StorageError)

    def read_marker(self) -> object:
        return self._recorder.datastore.read_one("PRAGMA data_version")
