"""Keeps the read models fast: merges the word index, and refreshes statistics."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from ....domain.errors import StorageError
from ...storage.event_log.storage_errors import translate_storage_errors
from ...storage.read_models.schema import APPLICATION_ID
from ...storage.sqlite.sqlite_recorder import truncate_wal
from .maintenance_task import ShouldContinue, TaskRecord, TaskResult

_LOCK_TIMEOUT_S = 30.0
"""How long to wait for another process's batch."""
MERGE_PAGES = 200
"""The pages of the index that are merged in one transaction."""
ANALYSIS_LIMIT = 1_000
"""The rows of an index that are sampled."""


@dataclass
class ReadModelFile:
    """The file of this machine's read models, which can always be rebuilt from the log."""

    file: Path

    def is_there(self) -> bool:
        """Return whether there are read models; a damaged file is rebuilt when it is next used."""
        try:
            with self.open() as connection:
                return connection is not None
        except StorageError:
            return False

    @contextmanager
    def open(self) -> Iterator[sqlite3.Connection | None]:
        """Open a separate connection; yield None if there are no read models.

        That spares threads of this process the wait for the lock of ReadModelDatabase.
        """
        if not self.file.exists():
            yield None
            return
        uri = f"{self.file.resolve().as_uri()}?mode=rw"
        with (
            translate_storage_errors(str(self.file)),
            closing(sqlite3.connect(uri, _LOCK_TIMEOUT_S, isolation_level=None, uri=True)) as found,
        ):
            found.execute("PRAGMA synchronous = NORMAL")
            (application,) = found.execute("PRAGMA application_id").fetchone()
            yield found if application == APPLICATION_ID else None

    def maintain(self, record: TaskRecord, go_on: ShouldContinue) -> TaskResult:
        """Run the task; each step is its own transaction."""
        del record
        with self.open() as connection:
            if connection is None:
                return TaskResult(note="there are none any more")
            merged = 2
            while merged >= 2:  # SQLite counts at least two changes if it merged anything
                if not go_on():
                    return TaskResult(is_whole=False)
                before = connection.total_changes
                connection.execute(
                    "INSERT INTO blocks_fts (blocks_fts, rank) VALUES ('merge', ?)", (MERGE_PAGES,)
                )
                merged = connection.total_changes - before
            connection.execute(f"PRAGMA analysis_limit = {ANALYSIS_LIMIT}")
            connection.execute("ANALYZE")
            truncate_wal(connection, self.file)
            return TaskResult()
