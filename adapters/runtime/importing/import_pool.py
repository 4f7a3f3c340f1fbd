"""Imports files in parallel, in a pool of processes that each import whole files."""

import fcntl
import logging
import os
import signal
from collections.abc import Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, closing
from dataclasses import asdict
from functools import cached_property
from hashlib import blake2b
from multiprocessing import get_context, parent_process
from multiprocessing.util import Finalize
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock, Thread
from typing import Any, NamedTuple

from ...storage.event_log.storage_errors import translate_storage_errors
from ...storage.event_log.stored_row import ImportRow
from ...transcripts.formats.steps import SubAgentLink
from ...transcripts.reports import FileReport
from ..sessions.session_store import SessionStore, open_store
from ..sessions.store_context import Opening
from .file_import import ImportOptions, WantedFile, import_file
from .transcript_import import SubAgentLinks

REPORT_INTERVAL_S = 0.1
_SPAWN = get_context("spawn")
"""A fork would share the connections to the database."""
_NOT_BEGUN = -1


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


class ImportPool:
    def __init__(
        self, opening: Opening, manner: ImportOptions, files: Sequence[WantedFile], processes: int
    ) -> None:
        self.opening = opening
        self.manner = manner
        self.files = files
        self.processes = processes
        self.unsettled: list[ImportRow] = []
        self.links: dict[str, SubAgentLink] = {}
        """The sub-agents that any file names, by key."""

    def import_all(self) -> Generator[int | FileReport]:
        """Yield the files' reports in the files' order, and between them the bytes read in all.

        Raises StorageError if the database fails; ends all processes at its end.
        """
        waiting: dict[int, FileReport] = {}
        number = 0
        every = range(len(self.files))
        offsets = _SPAWN.Array("q", [_NOT_BEGUN for _ in every], lock=False)
        with TemporaryDirectory() as folder:
            shared = _Shared(offsets, _SPAWN.Value("b", 0, lock=False), folder)
            with closing(self._import(shared, every, self.processes)) as outcomes:
                for one in outcomes:
                    if isinstance(one, int):
                        yield one
                        continue
                    waiting[one[0]] = one[1]
                    while number in waiting:
                        yield waiting.pop(number)
                        number += 1
        yield sum(offsets)

    def _import(
        self, shared: _Shared, numbers: Sequence[int], processes: int
    ) -> Generator[int | tuple[int, FileReport]]:
        """Import these files. A process that dies ends its pool, and another one goes on.

        Which file it imported is not known, so each that was begun gets a pool of its own.
        """
        lost: list[int] = []
        # Not in the arguments: an address may hold a password, and everyone can list processes.
        told = (asdict(self.opening), self.manner, shared)
        executor = ProcessPoolExecutor(processes, _SPAWN, _open_worker, told)
        futures = {executor.submit(_import_file, at, self.files[at]): at for at in numbers}
        try:
            while futures:
                done, _ = wait(futures, REPORT_INTERVAL_S, FIRST_COMPLETED)
                yield sum(offset for offset in shared.offsets if offset > 0)
                for future in done:
                    number = futures.pop(future)
                    if isinstance(future.exception(), BrokenProcessPool):
                        lost.append(number)
                    else:
                        yield self._take_report(shared, number, future)
        finally:
            if futures:
                shared.stop.value = 1
            executor.shutdown(cancel_futures=True)
        begun = [number for number in lost if shared.offsets[number] != _NOT_BEGUN]
        if len(numbers) == 1 or not begun:
            for number in lost:
                shared.offsets[number] = 0
                path = self.files[number].path
                reason = "the process that imported it ended: import it again to go on"
                yield number, FileReport(path=str(path), errors=[f"{path}: {reason}"])
            return
        for number in begun:
            yield from self._import(shared, [number], 1)
        if rest := sorted(set(lost) - set(begun)):
            yield from self._import(shared, rest, processes)

    def _take_report(
        self, shared: _Shared, number: int, future: Future[_Outcome]
    ) -> tuple[int, FileReport]:
        report, unsettled, links = future.result()
        shared.offsets[number] = report.bytes
        self.links |= links
        self.unsettled += unsettled
        return number, report


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

    def __init__(self, opening: dict[str, Any], manner: ImportOptions, shared: _Shared) -> None:
        self.opening = opening
        self.manner = manner
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

        with self.is_busy, translate_storage_errors(self.store.name), ExitStack() as opened:
            report_offset(0)
            links = _SessionLocks(self.shared.folder, opened)
            report = import_file(self.store, self.manner, file, links, report_offset)
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


def _open_worker(opening: dict[str, Any], manner: ImportOptions, shared: _Shared) -> None:
    # A terminal interrupts the whole group: the parent alone decides when to stop.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.getLogger("cutbank.storage").disabled = True  # the parent has logged it
    _workers.append(_Worker(opening, manner, shared))


def _import_file(number: int, file: WantedFile) -> _Outcome:
    return _workers[0].import_file(number, file)
