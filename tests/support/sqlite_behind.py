"""What stands behind a store on SQLite, for tests that look behind the door."""

from cutbank import SessionStore
from cutbank.adapters.storage.databases.sqlite_recorder import SQLiteRecorder
from cutbank.adapters.storage.event_log.event_store import EventStore


def sqlite_recorder(store: SessionStore | EventStore) -> SQLiteRecorder:
    recorder = store.recorder if isinstance(store, EventStore) else store.events.recorder
    assert isinstance(recorder, SQLiteRecorder)
    return recorder
