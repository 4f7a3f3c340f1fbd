"""Keeps the file of read models quick and small: statistics, the index of words, free pages."""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from ....domain.errors import StorageError
from ...storage.event_log.plain_errors import speaking_plainly
from ...storage.read_models.schema import APPLICATION_ID
from ...storage.sqlite.chore_records import keep_in, records_in
from ...storage.sqlite.lock_file import alone_by
from ...storage.sqlite.storage import cut_off_log
from .chore import GoOn, Work
from .chore_record import ChoreRecord

LOCK_TIMEOUT = 30.0
"""Seconds to wait for another process's batch."""
MERGED = 200
"""Pages of the index that are merged in one transaction."""
ANALYSED = 1_000
"""Rows of an index that are looked at."""
FREE = 0.25
"""What part of the pages has to be free for the file to be written anew."""
WORTH_IT = 1_000_000
"""Bytes that have to be free."""
LARGEST = 1_000_000_000
"""Bytes of a file up to which it is written anew: others wait for that."""


@dataclass
class ReadModelFile:
    """The file of this machine's read models; what is known of its chores goes with it."""

    file: Path

    def is_there(self) -> bool:
        """Whether there are read models; of a damaged file whoever needs it makes another one."""
        try:
            with self.opened() as connection:
                return connection is not None
        except StorageError:
            return False

    def alone(self) -> AbstractContextManager[bool]:
        return alone_by(Path(f"{self.file}-chores"))

    def records(self) -> Mapping[str, str]:
        with self.opened() as connection:
            return records_in(connection) if connection else {}

    def keep(self, chore: str, record: str) -> None:
        with self.opened() as connection:
            if connection:
                connection.execute("BEGIN IMMEDIATE")
                keep_in(connection, chore, record)
                connection.execute("COMMIT")

    @contextmanager
    def opened(self) -> Iterator[sqlite3.Connection | None]:
        """A connection of its own, for a while; None where there are no read models.

        Not that of ReadFile: that keeps temporary files in memory, and a file that is written anew
        is one. And nobody of this process waits for a lock of Python's.
        """
        if not self.file.exists():
            yield None
            return
        with speaking_plainly(str(self.file)), closing(connected(self.file)) as found:
            found.execute("PRAGMA synchronous = NORMAL")
            (application,) = found.execute("PRAGMA application_id").fetchone()
            yield found if application == APPLICATION_ID else None


@dataclass
class ReadModelCare:
    """Each step is a transaction of its own; the file can be made anew from the log anyway."""

    place: ReadModelFile
    every: timedelta
    name: str = "read-models"

    def run(self, record: ChoreRecord, go_on: GoOn) -> Work:
        del record
        with self.place.opened() as connection:
            if connection is None:
                return Work(note="there are none any more")
            if not _merge_words(connection, go_on):
                return Work(is_whole=False)
            connection.execute(f"PRAGMA analysis_limit = {ANALYSED}")
            connection.execute("ANALYZE")
            if not go_on():
                return Work(is_whole=False)
            saved, note = _give_back(connection)
            cut_off_log(connection, self.place.file)
            return Work(saved, note=note)


def connected(file: Path) -> sqlite3.Connection:
    uri = f"{file.resolve().as_uri()}?mode=rw"
    return sqlite3.connect(uri, LOCK_TIMEOUT, isolation_level=None, uri=True)


def _merge_words(connection: sqlite3.Connection, go_on: GoOn) -> bool:
    """Merge pieces of the index of words where there are several of a size; False if stopped."""
    while go_on():
        before = connection.total_changes
        connection.execute(
            "INSERT INTO blocks_fts (blocks_fts, rank) VALUES ('merge', ?)", (MERGED,)
        )
        # SQLite counts two changes at least where there was something to merge.
        if connection.total_changes - before < 2:
            return True
    return False


def _give_back(connection: sqlite3.Connection) -> tuple[int, str | None]:
    """Write the file anew without its free pages, where there are many; the bytes saved."""
    pages, free, size = connection.execute(
        "SELECT page_count, freelist_count, page_size"
        " FROM pragma_page_count, pragma_freelist_count, pragma_page_size"
    ).fetchone()
    if free * size < WORTH_IT or free < pages * FREE:
        return 0, None
    if (pages - free) * size > LARGEST:
        return 0, f"{free * size:,} bytes of it are free: they are used as it grows"
    connection.execute("VACUUM")
    return (pages - connection.execute("PRAGMA page_count").fetchone()[0]) * size, None
