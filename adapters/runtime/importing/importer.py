"""Imports transcripts: one file, all files below a folder, or those that were found."""

import os
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from pathlib import Path

from ....domain.errors import ImportFileError
from ...storage.event_log.recorder import ImportRow
from ...storage.event_log.storage_errors import translate_storage_errors
from ...transcripts.formats.catalog import find_transcripts
from ...transcripts.formats.source import TranscriptSource
from ...transcripts.reports import FileReport
from ..sessions.session_store import SessionStore
from .file_import import FileImport, ImportOptions, WantedFile, report_unchanged
from .sub_agent_links import SubAgentLinks

Progress = Callable[[int, int], None]
ReportBytes = Callable[[int], None]

MIN_BYTES_PER_PROCESS = 40_000_000
"""Bytes that one process more imports in the time that it takes to start, and be waited for."""


def import_transcripts(
    store: SessionStore, path: str | Path, *, namespace: str = "default"
) -> list[FileReport]:
    """Import a transcript of another agent, or all below a folder; of known ones, what is new.

    What is wrong in a file is in its report, and the rest is imported. Raises ImportFileError if
    there is nothing at `path` to import.
    """
    return list(import_path(store, Path(path), namespace=namespace))


def import_path(
    store: SessionStore,
    path: Path,
    *,
    namespace: str | None = None,
    progress: Progress | None = None,
    skip_unchanged: bool = False,
    jobs: int | None = 1,
    redact: bool = False,
) -> Generator[FileReport]:
    """Import a transcript, or every transcript below a folder; one report a file.

    `progress` is told the bytes read and the bytes in all. What was imported before is
    recognised by the entries' own ids; only what is new is added. Without `namespace`, sessions go
    to `default`, and those of an archive to where they were. With `skip_unchanged` files that
    were imported without an error and have not changed since are not even read. `jobs` is how
    many processes import at once, each a file; None: as many as there are cores, and as it pays.
    `redact` replaces secrets before anything is stored; it takes the extra `redact`.
    Raises ImportFileError where there is nothing at `path` to import.
    """
    yield from import_files(
        store,
        list_wanted_files(path),
        ImportOptions(namespace, redact),
        progress=progress,
        skip_unchanged=skip_unchanged,
        jobs=jobs,
    )


def list_wanted_files(path: Path) -> list[WantedFile]:
    """What is to be imported where somebody named `path`."""
    if not path.exists():
        raise ImportFileError(f"{path} does not exist")
    if not path.is_dir():
        return [WantedFile(path)]
    files = [WantedFile(file, is_named=file == path) for file in find_transcripts(path)]
    if not files:
        raise ImportFileError(f"{path} holds no transcripts")
    return files


def import_files(
    store: SessionStore,
    files: Sequence[WantedFile],
    manner: ImportOptions,
    *,
    progress: Progress | None = None,
    skip_unchanged: bool = False,
    jobs: int | None = 1,
) -> Generator[FileReport]:
    """Import these files, in their order; one report each, those that are passed over first."""
    if skip_unchanged:
        changed: list[WantedFile] = []
        for file in files:
            with translate_storage_errors(store.name):
                report = report_unchanged(store, manner, file.path)
            if report:
                yield report
            else:
                changed.append(file)
        files = changed
    total = sum(_file_size(file.path) for file in files)
    processes = _count_processes(store, len(files), total, jobs)
    unsettled = list[ImportRow]()

    def heard(done: int) -> None:
        if progress:
            progress(done, total)

    if processes == 1:
        yield from _import_in_turn(store, files, manner, heard, unsettled)
    else:
        yield from _import_in_parallel(store, files, manner, heard, unsettled, processes)
    with translate_storage_errors(store.name):
        # All was read: those whose sub-agents had not been stored need not be read again, either.
        store.events.save(imports=unsettled)


def _import_in_turn(
    store: SessionStore,
    files: Sequence[WantedFile],
    manner: ImportOptions,
    heard: ReportBytes,
    unsettled: list[ImportRow],
) -> Generator[FileReport]:
    links = SubAgentLinks()
    done = 0
    for file in files:

        def heard_of_file(offset: int, before: int = done) -> None:
            heard(before + offset)

        with translate_storage_errors(store.name):
            importing = FileImport(store, manner, file, links, heard_of_file)
            report = importing.run()
        if importing.unsettled_row:
            unsettled.append(importing.unsettled_row)
        yield report
        done += report.bytes
        heard(done)


def _import_in_parallel(  # noqa: PLR0917 - all but one are its caller's own
    store: SessionStore,
    files: Sequence[WantedFile],
    manner: ImportOptions,
    heard: ReportBytes,
    unsettled: list[ImportRow],
    processes: int,
) -> Generator[FileReport]:
    from .import_pool import ImportPool  # noqa: PLC0415 - threads and processes, for few files not needed

    assert store.context.opening is not None, "else there is one process"
    crew = ImportPool(store.context.opening, manner, files, processes)
    done = 0
    with closing(crew.import_all()) as found:
        for one in found:
            if isinstance(one, FileReport):
                yield one
            else:
                done += one
                heard(done)
    unsettled += crew.unsettled


def _count_processes(store: SessionStore, files: int, size: int, jobs: int | None) -> int:
    """How many processes import; 1 is this one."""
    opening = store.context.opening
    if files < 2 or jobs == 1 or opening is None or store.events.recorder.get_storage() is None:
        return 1  # a database in memory is this process's alone
    if jobs is not None:
        return min(jobs, files)
    return min(_count_cores(), files, 1 + size // MIN_BYTES_PER_PROCESS)


def _file_size(path: Path) -> int:
    try:
        return TranscriptSource(path).size
    except OSError:
        return 0


def _count_cores() -> int:
    """Those that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
