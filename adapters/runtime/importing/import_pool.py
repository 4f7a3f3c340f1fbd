"""Imports files in parallel, in several processes that each import whole files."""

import json
import subprocess
import sys
from collections import deque
from collections.abc import Generator, Sequence
from contextlib import suppress
from dataclasses import asdict
from queue import SimpleQueue
from threading import Condition, Thread
from typing import Any

from ....domain.errors import StorageError
from ...storage.event_log.stored_row import ImportRow
from ...transcripts.formats.steps import SubAgentLink
from ...transcripts.reports import FileReport
from ..sessions.store_context import Opening
from .file_import import ImportOptions, WantedFile

IMPORT_WORKER_COMMAND = (
    *(sys.executable, "-P", "-c"),
    "from cutbank.adapters.runtime.importing.worker import main; main()",
)
IMPORT_STOP_TIMEOUT_S = 20.0
"""How long after a stop a process may take to store what it has read before it is killed."""

WorkerProcess = subprocess.Popen[bytes]
_WireMessage = dict[str, Any]
PoolEvent = int | tuple[int, FileReport] | Exception | None
"""More bytes read; a file's number and report; an error that ends the import; a thread's end."""


class LinkBoard:
    """Shares sub-agent links between files, and reads only one file of a session at a time."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._links: dict[str, SubAgentLink] = {}
        self._in_hand: dict[str, int] = {}
        self._is_closed = False

    def begin(self, key: str, number: int) -> list[SubAgentLink]:
        """Wait until no other file of the session is being read; return links to its parent."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._is_closed or self._in_hand.get(key, number) == number
            )
            self._in_hand[key] = number
        return self.find_known([key])

    def add_link(self, link: SubAgentLink) -> None:
        with self._changed:
            self._links[link.key] = link

    def find_known(self, keys: Sequence[str]) -> list[SubAgentLink]:
        with self._changed:
            return [self._links[key] for key in keys if key in self._links]

    def release(self, number: int) -> None:
        """Release the file's sessions, after it was read or its process died."""
        with self._changed:
            self._in_hand = {key: its for key, its in self._in_hand.items() if its != number}
            self._changed.notify_all()

    def close(self) -> None:
        """Wake all waiting threads."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()


class ImportPool:
    """The processes of one import; a thread for each sends it one file after another."""

    def __init__(
        self, opening: Opening, manner: ImportOptions, files: Sequence[WantedFile], processes: int
    ) -> None:
        self.opening = opening
        self.manner = manner
        self.files = files
        self.processes = processes
        self.todo = deque(range(len(files)))
        self.board = LinkBoard()
        self.events: SimpleQueue[PoolEvent] = SimpleQueue()
        self.unsettled: list[ImportRow] = []
        self.is_stopping = False
        self._running: list[WorkerProcess] = []
        self._starting = Condition()

    def import_all(self) -> Generator[int | FileReport]:
        """Yield the files' reports in the files' order, and between them the bytes read.

        Raises StorageError if the database fails; stops all processes at its end.
        """
        threads = [Thread(target=self._run_worker, daemon=True) for _ in range(self.processes)]
        waiting: dict[int, FileReport] = {}
        number, working = 0, len(threads)
        try:
            for thread in threads:
                thread.start()
            while working:
                match self.events.get():
                    case int(read):
                        yield read
                    case (at, report):
                        waiting[at] = report
                    case Exception() as error:
                        raise error
                    case None:
                        working -= 1
                while number in waiting:
                    yield waiting.pop(number)
                    number += 1
        finally:
            self._stop(threads)

    def _run_worker(self) -> None:
        """Run a process in this thread, and a new one if it dies."""
        process: WorkerProcess | None = None
        try:
            while self.todo and not self.is_stopping:
                try:
                    number = self.todo.popleft()
                except IndexError:
                    break  # another thread took the last one
                process = process or self._start()
                if not self._send_file(process, number):
                    process.wait()
                    process = None
        except Exception as error:  # noqa: BLE001 - raised again by the waiting thread
            self.events.put(error)
        finally:
            if process is not None:
                _close_input(process)
            self.events.put(None)

    def _start(self) -> WorkerProcess:
        # In its own process group: only this process gets the terminal's signals.
        with self._starting:
            process = subprocess.Popen(  # noqa: S603 - it is this program
                IMPORT_WORKER_COMMAND,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                process_group=0,
            )
            self._running.append(process)
            if self.is_stopping:
                _close_input(process)
        # Not in the arguments: an address may hold a password, and everyone can list processes.
        _send_message(process, {"open": asdict(self.opening), "manner": asdict(self.manner)})
        return process

    def _send_file(self, process: WorkerProcess, number: int) -> bool:
        """Import a file in the process; return whether the process can take another."""
        file = self.files[number]
        _send_message(process, {"path": str(file.path), "is_named": file.is_named})
        heard = 0
        try:
            assert process.stdout is not None
            for line in process.stdout:
                match json.loads(line):
                    case {"heard": int(offset)}:
                        self.events.put(offset - heard)
                        heard = offset
                    case {"link": link}:
                        self.board.add_link(SubAgentLink(*link))
                    case {"begin": str(key)}:
                        _send_message(
                            process, {"links": _links_to_json(self.board.begin(key, number))}
                        )
                    case {"end": keys}:
                        _send_message(
                            process, {"links": _links_to_json(self.board.find_known(keys))}
                        )
                    case {"report": said, "unsettled": row}:
                        self._take_report(number, FileReport(**said), row, heard)
                        return True
                    case {"refused": str(reason)}:
                        raise StorageError(reason)
        finally:
            self.board.release(number)
        if not self.is_stopping:
            code = process.wait()
            reason = f"the process that imported it ended with {code}: import it again to go on"
            lost = FileReport(path=str(file.path), errors=[f"{file.path}: {reason}"])
            self._take_report(number, lost, None, heard)
        return False

    def _take_report(
        self, number: int, report: FileReport, row: list[Any] | None, heard: int
    ) -> None:
        if row is not None:
            self.unsettled.append(ImportRow(*row))
        self.events.put(report.bytes - heard)
        self.events.put((number, report))

    def _stop(self, threads: Sequence[Thread]) -> None:
        with self._starting:
            self.is_stopping = True
            for process in self._running:
                _close_input(process)
        self.board.close()
        for process in self._running:
            try:
                process.wait(IMPORT_STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for thread in threads:
            if thread.ident is not None:
                thread.join()
        for process in self._running:
            if process.stdout:
                process.stdout.close()


def _send_message(process: WorkerProcess, words: _WireMessage) -> None:
    # A dead process is noticed when its answer is read.
    with suppress(BrokenPipeError, ValueError):
        assert process.stdin is not None
        process.stdin.write(json.dumps(words).encode() + b"\n")
        process.stdin.flush()


def _close_input(process: WorkerProcess) -> None:
    with suppress(BrokenPipeError):
        assert process.stdin is not None
        process.stdin.close()


def _links_to_json(links: Sequence[SubAgentLink]) -> list[list[str]]:
    return [[link.key, link.parent_key, link.parent_call] for link in links]
