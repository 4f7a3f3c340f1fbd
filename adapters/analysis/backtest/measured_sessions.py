"""Makes the sessions of a backtest readable for its processes, and imports those of a path."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from ....domain.errors import BacktestError
from ....domain.hooks import Progress
from ...runtime.importing.importer import import_path
from ...runtime.sessions.session_store import SessionStore, open_store
from ...runtime.sessions.store_context import Opening
from ...settings.settings import Settings
from ...storage.event_log.addresses import is_postgres
from ...storage.sqlite.database_file import is_in_memory
from ...transcripts.reports import FileReport

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
"""A fixed import time, so that results are the same in each run."""


@contextmanager
def share_database(store: SessionStore) -> Iterator[str]:
    """Yield the address of a database that other processes can open: this, or a temporary copy."""
    opening = store.context.opening
    if opening is not None and not is_in_memory(opening.address):
        yield opening.address
        return
    if is_postgres(store.name):
        raise BacktestError("a server's database with a clock of one's own has no copy")
    with TemporaryDirectory(prefix="cutbank-backtest-") as folder:
        copy = Path(folder, "copy.db")
        store.backup(copy)
        yield str(copy)


@contextmanager
def import_temporarily(
    path: Path, settings: Settings | Path | str | None = None, progress: Progress | None = None
) -> Iterator[tuple[SessionStore, list[FileReport]]]:
    """Import the transcript at `path`, or all below it; yield the store and a report of each file.

    Raises ImportFileError if there is nothing to import, BacktestError if no session was imported.
    """
    with TemporaryDirectory(prefix="cutbank-backtest-") as folder:
        address = str(Path(folder, "transcripts.db"))
        with open_store(
            address, synchronous="NORMAL", settings=settings, clock=lambda: EPOCH
        ) as store:
            reports = list(import_path(store, path, progress=progress))
            if not store.sessions():
                wrong = next((error for one in reports for error in one.errors), "no transcripts")
                raise BacktestError(f"{path} holds no session: {wrong}")
            # Workers only read, and need no clock.
            store.context.opening = Opening(address, "NORMAL", compress=False)
            yield store, reports


def find_unread(reports: list[FileReport]) -> dict[str, str]:
    """Return the errors of files from which nothing was imported, by path."""
    return {
        report.path: " ".join(report.errors[0].split())
        for report in reports
        if report.errors and not report.imported
    }
