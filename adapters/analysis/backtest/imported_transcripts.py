"""Transcripts as sessions of a database of their own, which is gone with the backtest."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from ....domain.errors import BacktestError
from ...runtime.importing.importer import Progress, import_path
from ...runtime.sessions.session_store import SessionStore, open_store
from ...runtime.sessions.store_context import Opening
from ...settings.settings import Settings
from ...transcripts.reports import FileReport

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
"""When transcripts are imported here: it is no part of what they say, and so the same each time."""


@contextmanager
def import_temporarily(
    path: Path, settings: Settings | Path | str | None = None, progress: Progress | None = None
) -> Iterator[tuple[SessionStore, list[FileReport]]]:
    """The transcript at `path`, or all below it: as sessions, and what became of each file.

    Raises ImportFileError where there is nothing to import, BacktestError where nothing came of it.
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
            # Those that measure only read, and need no clock.
            store.context.opening = Opening(address, "NORMAL", compress=False)
            yield store, reports


def find_unread(reports: list[FileReport]) -> dict[str, str]:
    """What is wrong with files of which nothing was imported, by path."""
    return {
        report.path: " ".join(report.errors[0].split())
        for report in reports
        if report.errors and not report.imported
    }
