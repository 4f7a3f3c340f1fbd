"""Imports files in parallel, in a pool of processes that each import whole files."""

import logging
import os
import signal
from collections.abc import Generator, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import asdict
from functools import cached_property
from multiprocessing import get_context, parent_process
from multiprocessing.managers import BaseManager
from multiprocessing.util import Finalize
from threading import Condition, Lock, Thread
from time import monotonic
from typing import Any

from ...storage.event_log.storage_errors import translate_storage_errors
from ...storage.event_log.stored_row import ImportRow
from ...transcripts.formats.steps import SubAgentLink
from ...transcripts.reports import FileReport
from ..sessions.session_store import SessionStore, open_store
from ..sessions.store_context import Opening
from .file_import import FileImport, ImportOptions, WantedFile
from .transcript_import import SubAgentLinks

REPORT_INTERVAL_S = 0.1
_SPAWN = get_context("spawn")
"""A fork would share the connections to the database."""
_Outcome = tuple[FileReport, ImportRow | None]


class ImportBoard:
    """What the processes of one import share: links, progress, and the sessions being read.

    It lives in a process of its own, and only one file of a session is read at a time.
    """

    def __init__(self) -> None:
        self._changed = Condition()
        self._links: dict[str, SubAgentLink] = {}
        self._readers: dict[str, int] = {}
        self._offsets: dict[int, int] = {}
        self._is_stopped = False

    def enter_session(self, key: str, number: int) -> list[SubAgentLink]:
        """Wait until no other file of the session is being read; return links to its parent."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._is_stopped or self._readers.setdefault(key, number) == number
            )
        return self.find_links([key])

    def add_link(self, link: SubAgentLink) -> None:
        with self._changed:
            self._links[link.key] = link

    def find_links(self, keys: Sequence[str]) -> list[SubAgentLink]:
        with self._changed:
            return [self._links[key] for key in keys if key in self._links]

    def report_offset(self, number: int, offset: int) -> bool:
        """Note how far a file was read; return whether its import has to stop."""
        with self._changed:
            self._offsets[number] = max(offset, self._offsets.get(number, 0))
            return self._is_stopped

    def get_offsets(self) -> dict[int, int]:
        """Return how far each file was read that is being imported."""
        with self._changed:
            return dict(self._offsets)

    def release(self, numbers: Iterable[int]) -> None:
        """Release the sessions of files that were read, or whose process died."""
        with self._changed:
            for number in numbers:
                self._offsets.pop(number, None)
            self._readers = {key: its for key, its in self._readers.items() if its in self._offsets}
            self._changed.notify_all()

    def stop(self) -> None:
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()


class _BoardManager(BaseManager):
    pass


_BoardManager.register("ImportBoard", ImportBoard)


class ImportPool:
    """The processes of one import."""

    def __init__(
        self, opening: Opening, manner: ImportOptions, files: Sequence[WantedFile], processes: int
    ) -> None:
        self.opening = opening
        self.manner = manner
        self.files = files
        self.processes = processes
        self.unsettled: list[ImportRow] = []
        self._bytes_done = 0
        """The bytes of the files that were imported."""

    def import_all(self) -> Generator[int | FileReport]:
        """Yield the files' reports in the files' order, and between them the bytes read in all.

        Raises StorageError if the database fails; ends all processes at its end.
        """
        waiting: dict[int, FileReport] = {}
        number = 0
        with _BoardManager(ctx=_SPAWN) as manager:
            board: ImportBoard = manager.ImportBoard()  # type: ignore[attr-defined]
            every = range(len(self.files))
            with closing(self._import(board, every, self.processes)) as outcomes:
                for one in outcomes:
                    if isinstance(one, int):
                        yield one
                        continue
                    waiting[one[0]] = one[1]
                    while number in waiting:
                        yield waiting.pop(number)
                        number += 1
        yield self._bytes_done

    def _import(
        self, board: ImportBoard, numbers: Sequence[int], processes: int
    ) -> Generator[int | tuple[int, FileReport]]:
        """Import these files. A process that dies ends its pool, and another one goes on.

        Which file it imported is not known, so each that was begun gets a pool of its own.
        """
        lost: list[int] = []
        # Not in the arguments: an address may hold a password, and everyone can list processes.
        told = (asdict(self.opening), self.manner, board)
        executor = ProcessPoolExecutor(processes, _SPAWN, _open_worker, told)
        futures = {executor.submit(_import_file, at, self.files[at]): at for at in numbers}
        try:
            while futures:
                done, _ = wait(futures, REPORT_INTERVAL_S, FIRST_COMPLETED)
                yield self._bytes_done + sum(board.get_offsets().values())
                for future in done:
                    number = futures.pop(future)
                    if isinstance(future.exception(), BrokenProcessPool):
                        lost.append(number)
                    else:
                        yield self._take_report(board, number, future)
        finally:
            if futures:
                board.stop()
            executor.shutdown(cancel_futures=True)
        begun = sorted(board.get_offsets().keys() & set(lost))
        board.release(begun)
        if len(numbers) == 1 or not begun:
            for number in lost:
                path = self.files[number].path
                reason = "the process that imported it ended: import it again to go on"
                yield number, FileReport(path=str(path), errors=[f"{path}: {reason}"])
            return
        for number in begun:
            yield from self._import(board, [number], 1)
        if rest := sorted(set(lost) - set(begun)):
            yield from self._import(board, rest, processes)

    def _take_report(
        self, board: ImportBoard, number: int, future: "Future[_Outcome]"
    ) -> tuple[int, FileReport]:
        report, row = future.result()
        self._bytes_done += report.bytes
        board.release([number])
        if row is not None:
            self.unsettled.append(row)
        return number, report


class _SharedLinks(SubAgentLinks):
    """Asks the board, which knows the links of all files."""

    def __init__(self, board: ImportBoard, number: int) -> None:
        super().__init__()
        self.board = board
        self.number = number

    def begin(self, key: str) -> None:
        """Wait until no other process is reading a file of this session."""
        self._learn(self.board.enter_session(key, self.number))

    def add_link(self, link: SubAgentLink) -> None:
        super().add_link(link)
        self.board.add_link(link)

    def end(self, keys: Iterable[str]) -> None:
        self._learn(self.board.find_links(list(keys)))

    def _learn(self, links: Iterable[SubAgentLink]) -> None:
        self.known |= {link.key: link for link in links}


class _Worker:
    """A process of the pool, with its own connection to the database."""

    def __init__(self, opening: dict[str, Any], manner: ImportOptions, board: ImportBoard) -> None:
        self.opening = opening
        self.manner = manner
        self.board = board
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
        due = 0.0

        def report_offset(offset: int) -> None:
            nonlocal due
            if self.is_orphan:
                raise KeyboardInterrupt
            if (now := monotonic()) > due:
                due = now + REPORT_INTERVAL_S
                if self.board.report_offset(number, offset):
                    raise KeyboardInterrupt  # what was read is stored, with its progress

        report_offset(0)
        with self.is_busy, translate_storage_errors(self.store.name):
            links = _SharedLinks(self.board, number)
            importing = FileImport(self.store, self.manner, file, links, report_offset)
            return importing.run(), importing.unsettled_row

    def _end_with_parent(self) -> None:
        parent = parent_process()
        assert parent is not None, "a worker is started by a pool"
        parent.join()
        self.is_orphan = True
        with self.is_busy:
            os._exit(1)


_workers: list[_Worker] = []
"""The one of this process, if it is a worker's."""


def _open_worker(opening: dict[str, Any], manner: ImportOptions, board: ImportBoard) -> None:
    # A terminal interrupts the whole group: the parent alone decides when to stop.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.getLogger("cutbank.storage").disabled = True  # the parent has logged it
    _workers.append(_Worker(opening, manner, board))


def _import_file(number: int, file: WantedFile) -> _Outcome:
    return _workers[0].import_file(number, file)
