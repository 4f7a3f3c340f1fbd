"""Imports files in parallel, in a pool of processes that each import whole files."""

import fcntl
import logging
import os
import signal
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, wait
from contextlib import ExitStack
from dataclasses import asdict
from hashlib import blake2b
from multiprocessing import get_context, parent_process
from multiprocessing.util import Finalize
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock, Thread
from typing import Any, NamedTuple

from pebble import ProcessExpired, ProcessPool

from ....domain.cached_property import cached_property
from ...storage.event_log.log_tables import ImportRow
from ...storage.event_log.storage_errors import translate_storage_errors
from ...transcripts.formats.steps import SubAgentLink
from ...transcripts.reports import FileReport
from ..sessions.session_store import SessionStore, open_store
from ..sessions.store_context import Opening
from .file_import import WantedFile, import_file
from .transcript_import import ImportOptions, SubAgentLinks

REPORT_INTERVAL_S = 0.1
_SPAWN = get_context("spawn")
"""A fork would share the connections to the database."""


class _Shared(NamedTuple):
    """What the processes of one import share."""

    offsets: Any
    """How far each file was read, in bytes."""
    stop: Any
    """Whether the imports have to end."""
    folder: str
    """A file below it for each session is locked by the process that stores it."""


class _Outcome(NamedTuple):
    report: FileReport
    unsettled: list[ImportRow]
    links: dict[str, SubAgentLink]
    """The sub-agents that the file names, by key."""


def import_in_processes(  # noqa: PLR0917 - the caller's own values
    opening: Opening,
    options: ImportOptions,
    files: Sequence[WantedFile],
    processes: int,
    links: SubAgentLinks,
    report_progress: Callable[[int], None],
) -> Generator[FileReport]:
    """Yield the files' reports in the files' order; `report_progress` gets the bytes read in all.

    Adds what the files say of sub-agents to `links`. A process that dies costs the file that it
    was importing. Raises StorageError if the database fails; ends all processes at its end.
    """
    with TemporaryDirectory() as folder:
        offsets = _SPAWN.Array("q", len(files), lock=False)
        shared = _Shared(offsets, _SPAWN.Value("b", 0, lock=False), folder)
        about = (asdict(opening), options, shared)
        pool = ProcessPool(processes, initializer=_open_worker, initargs=about, context=_SPAWN)
        try:
            futures = [pool.schedule(_import_file, one) for one in enumerate(files)]
            for number, future in enumerate(futures):
                while wait([future], REPORT_INTERVAL_S).not_done:
                    report_progress(sum(offsets))
                report = _take_report(future, files[number].path, links)
                offsets[number] = report.bytes or offsets[number]
                yield report
            report_progress(sum(offsets))
        finally:
            shared.stop.value = 1
            pool.close()  # type: ignore[no-untyped-call]
            pool.join()


def _take_report(future: Future[_Outcome], path: Path, links: SubAgentLinks) -> FileReport:
    try:
        report, unsettled, known = future.result()
    except ProcessExpired:
        reason = "the process that imported it ended: import it again to go on"
        return FileReport(path=str(path), errors=[f"{path}: {reason}"])
    links.known |= known
    links.unsettled += unsettled
    return report


class _SessionLocks(SubAgentLinks):
    """The links of one file, which is stored when no other process stores its session."""

    def __init__(self, folder: str, opened: ExitStack) -> None:
        super().__init__()
        self.folder = folder
        self.opened = opened

    def begin(self, key: str) -> None:
        """Wait until no other process is storing a file of this session."""
        name = blake2b(key.encode(errors="replace")).hexdigest()[:32]
        lock = self.opened.enter_context(Path(self.folder, name).open("w"))  # noqa: SIM115 - the stack closes it
        fcntl.flock(lock, fcntl.LOCK_EX)  # it ends with the file, or with the process


class _Worker:
    """A process of the pool, with its own connection to the database."""

    def __init__(self, opening: dict[str, Any], options: ImportOptions, shared: _Shared) -> None:
        self.opening = opening
        self.options = options
        self.shared = shared
        self.is_orphan = False
        self.is_busy = Lock()
        Thread(target=self._end_with_parent, daemon=True).start()

    @cached_property
    def store(self) -> SessionStore:
        opening = dict(self.opening)
        address, counter = opening.pop("address"), opening.pop("counter")
        store = open_store(address, **opening)
        Finalize(None, store.close, exitpriority=0)  # `atexit` does not run in such a process
        if counter is not None:
            store.set_tokenizer(counter)
        return store

    def import_file(self, number: int, file: WantedFile) -> _Outcome:
        def report_offset(offset: int) -> None:
            self.shared.offsets[number] = max(offset, self.shared.offsets[number])
            if self.is_orphan or self.shared.stop.value:
                raise KeyboardInterrupt  # what was read is stored, with its progress

        report_offset(0)
        with self.is_busy, translate_storage_errors(self.store.name), ExitStack() as opened:
            links = _SessionLocks(self.shared.folder, opened)
            report = import_file(self.store, self.options, file, links, report_offset)
            return _Outcome(report, links.unsettled, links.known)

    def _end_with_parent(self) -> None:
        parent = parent_process()
        assert parent is not None, "a worker is started by a pool"
        parent.join()
        self.is_orphan = True
        with self.is_busy:
            os._exit(1)


_workers: list[_Worker] = []
"""The one of this process, if it is a worker's."""


def _open_worker(opening: dict[str, Any], options: ImportOptions, shared: _Shared) -> None:
    # A terminal interrupts the whole group: the parent alone decides when to stop.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.getLogger("cutbank.storage").disabled = True  # the parent has logged it
    _workers.append(_Worker(opening, options, shared))


def _import_file(number: int, file: WantedFile) -> _Outcome:
    return _workers[0].import_file(number, file)
