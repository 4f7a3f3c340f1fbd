"""Imports transcripts: one file, all files below a folder, or those that were found."""

import os
from collections.abc import Generator, Sequence
from functools import partial
from pathlib import Path

from ....domain.errors import ImportFileError
from ....domain.hooks import Progress
from ...storage.event_log.storage_errors import translate_storage_errors
from ...transcripts.formats.catalog import find_transcripts
from ...transcripts.formats.source import TranscriptSource
from ...transcripts.reports import FileReport
from ..sessions.session_store import SessionStore
from .file_import import WantedFile, import_file, report_unchanged
from .transcript_import import ImportOptions, SubAgentLinks, record_parents

MIN_BYTES_PER_PROCESS = 40_000_000
"""The bytes that one process imports while another one starts."""


def import_transcripts(
    store: SessionStore, path: str | Path, *, namespace: str = "default"
) -> list[FileReport]:
    """Import a transcript, or all below a folder, adding only what is new.

    The faults of a file are in its report, and the rest is imported. Raises ImportFileError if
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
    keep_sources: bool = True,
) -> Generator[FileReport]:
    """Import a transcript, or every transcript below a folder; yield one report per file.

    `progress` is called with the bytes read and the bytes in all. Entries that are already stored
    are recognized by their own ids and skipped. Without `namespace`, sessions go to `default`, and
    those of a database to their old namespace. `skip_unchanged` skips files that have not changed
    since an import without errors. `jobs` is the number of processes; None picks one by cores and
    size. `redact` replaces secrets before anything is stored; it needs the extra `redact`. Without
    `keep_sources`, the files' bytes are not kept. Raises ImportFileError if there is nothing at
    `path` to import.
    """
    yield from import_files(
        store,
        list_wanted_files(path),
        ImportOptions(namespace, redact, keep_sources),
        progress=progress,
        skip_unchanged=skip_unchanged,
        jobs=jobs,
    )


def list_wanted_files(path: Path) -> list[WantedFile]:
    """Return the files to import for `path`."""
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
    options: ImportOptions,
    *,
    progress: Progress | None = None,
    skip_unchanged: bool = False,
    jobs: int | None = 1,
) -> Generator[FileReport]:
    """Import these files in their order; yield one report each, those of skipped files first."""
    if skip_unchanged:
        changed: list[WantedFile] = []
        for file in files:
            with translate_storage_errors(store.name):
                report = report_unchanged(store, options, file.path)
            if report:
                yield report
            else:
                changed.append(file)
        files = changed
    total = sum(_file_size(file.path) for file in files)
    processes = _count_processes(store, len(files), total, jobs)

    def report_progress(done: int, offset: int = 0) -> None:
        if progress:
            progress(done + offset, total)

    links = SubAgentLinks()
    if processes > 1:
        from .import_pool import import_in_processes  # noqa: PLC0415 - a few files need no processes

        opening = store.context.opening
        assert opening is not None, "else there is one process"
        yield from import_in_processes(opening, options, files, processes, links, report_progress)
        with translate_storage_errors(store.name):
            record_parents(store, options.target_namespace, links.known.values())
    else:
        done = 0
        for file in files:
            with translate_storage_errors(store.name):
                report = import_file(store, options, file, links, partial(report_progress, done))
            yield report
            done += report.bytes
            report_progress(done)
    with translate_storage_errors(store.name):
        # All is read now, so mark as complete also the files that waited for their sub-agents.
        store.events.save(imports=links.unsettled)


def _count_processes(store: SessionStore, files: int, size: int, jobs: int | None) -> int:
    """Return how many processes import; 1 means only this one."""
    opening = store.context.opening
    if files < 2 or jobs == 1 or opening is None or store.events.recorder.is_in_memory:
        return 1  # only this process has its database in memory
    if jobs is not None:
        return min(jobs, files)
    return min(_count_cores(), files, 1 + size // MIN_BYTES_PER_PROCESS)


def _file_size(path: Path) -> int:
    try:
        return TranscriptSource(path).size
    except OSError:
        return 0


def _count_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
