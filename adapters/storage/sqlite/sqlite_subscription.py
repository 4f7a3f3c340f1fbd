import sqlite3

from ....domain.errors import StorageError
from ..event_log.polling_subscription import PollingSubscription


class SQLiteSubscription(PollingSubscription):
    """Polls SQLite's data version, which changes with each commit of another connection."""

    failures = (sqlite3.Error, StorageError)

    def read_marker(self) -> object:
        return self._recorder.datastore.read_one("PRAGMA data_version")
