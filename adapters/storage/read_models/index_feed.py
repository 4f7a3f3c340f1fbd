"""Feeds the session index, the digest, the context meter and the compaction ledger."""

from collections.abc import Sequence

from sqlite_utils import Database

from ..event_log.event_store import EventStore
from ..event_log.stored_row import LogNotification
from .context_batch import ContextReader, ResolveLimit
from .index_batch import IndexBatch
from .read_model_file import ReadModelDatabase


class IndexFeed:
    """Feeds all that needs no large text, writing a session's row once per batch."""

    name = "index"
    page = 2_000

    def __init__(self, store: EventStore, file: ReadModelDatabase, limit_of: ResolveLimit) -> None:
        self.store = store
        self.file = file
        self._contexts = ContextReader(store, limit_of)

    def apply(self, db: Database, events: Sequence[LogNotification]) -> int:
        batch = IndexBatch(self.store, db, self.file.read_settings(db), self._contexts)
        for event in events:
            batch.add_event(event)
        batch.write()
        return len(events)
