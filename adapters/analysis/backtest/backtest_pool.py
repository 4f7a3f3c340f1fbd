"""Measures sessions in several processes; one that dies or hangs costs one row.

A pool of `multiprocessing` would import the caller's main program again in each process, and cannot
start inside a worker of Dask; these processes are programs of their own.
"""

import os
import signal
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Generator, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from time import monotonic
from typing import Any

from ....domain.backtest.cell import CellOutcome
from .worker_messages import ChooseItems, ItemAnswer, SessionRead, SessionTask, answer_all

BACKTEST_WORKER_COMMAND = (
    *(sys.executable, "-P", "-c"),
    "from cutbank.adapters.analysis.backtest.worker import main; main()",
)
DEFAULT_TIMEOUT_S = 300.0
START_TIMEOUT_S = 60.0
"""Time limit for the start of a process, which is slow on a busy machine."""
_STOP_TIMEOUT_S = 5.0
"""Seconds before a process that closed its connection is killed: it may be about to exit."""


class BacktestWorker:
    """One process, and the session that it measures."""

    def __init__(self) -> None:
        ours, its = socket.socketpair()
        reads, self._lifeline = os.pipe()
        """Closing the lifeline ends the process."""
        try:
            # In its own process group, so that Ctrl-C only reaches this process.
            self.process = subprocess.Popen(  # noqa: S603 - it is this program
                (*BACKTEST_WORKER_COMMAND, str(its.fileno()), str(reads)),
                stdin=subprocess.DEVNULL,
                pass_fds=(its.fileno(), reads),
                process_group=0,
            )
        finally:
            its.close()
            os.close(reads)
        self.connection = Connection(ours.detach())
        self.task: SessionTask | None = None
        self.remaining: deque[int] | None = None
        """The ordered items without an answer; the process is at the first. None while it reads."""
        self.deadline = 0.0

    def begin(self, task: SessionTask, timeout_s: float) -> None:
        starting_s = START_TIMEOUT_S if self.task is None else 0.0
        self.task, self.remaining = task, None
        self.deadline = monotonic() + starting_s + timeout_s
        self.send(task)

    def send(self, message: Any) -> None:
        with suppress(BrokenPipeError, ConnectionResetError):  # its end is received
            self.connection.send(message)

    def stop(self) -> int:
        """End the process and its children, and return its exit code."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        code = self.process.wait()
        if not self.connection.closed:
            self.connection.close()
            os.close(self._lifeline)
        return code


@dataclass
class BacktestPool:
    """The processes of one backtest, each with one session at a time."""

    tasks: Iterable[SessionTask]
    """The longest tasks come first, so that the last one does not delay the end."""
    choose_items: ChooseItems
    processes: int
    timeout_s: float = DEFAULT_TIMEOUT_S
    shared_workers: list[BacktestWorker] | None = None
    """Processes to reuse, and those left for the next pool; None stops them at the end."""

    def measure_all(self) -> Generator[ItemAnswer]:
        """Yield the outcome of each item, in any order; always stop all processes at the end."""
        self._todo = deque(self.tasks)
        self._busy: dict[Connection, BacktestWorker] = {}
        self._idle = [] if self.shared_workers is None else self.shared_workers
        try:
            while self._todo or self._busy:
                while self._todo and len(self._busy) < self.processes:
                    worker = self._take_idle_worker() or BacktestWorker()
                    self._busy[worker.connection] = worker
                    worker.begin(self._todo.popleft(), self.timeout_s)
                yield from self._receive()
        finally:
            for worker in self._busy.values():
                worker.stop()
            while self._idle and self.shared_workers is None:
                self._idle.pop().stop()

    def _take_idle_worker(self) -> BacktestWorker | None:
        with suppress(IndexError):  # another thread may be faster
            while worker := self._idle.pop():
                if worker.process.poll() is None:
                    return worker
                worker.stop()
        return None

    def _receive(self) -> Generator[ItemAnswer]:
        """Wait until a process answers, ends, or exceeds its time limit."""
        first_due = min(worker.deadline for worker in self._busy.values())
        heard = set(wait(list(self._busy), max(0.0, first_due - monotonic())))
        for connection, worker in list(self._busy.items()):
            if connection not in heard:
                if worker.deadline <= monotonic():
                    yield from self._handle_loss(worker, is_late=True)
                continue
            try:
                message = connection.recv()
            except (EOFError, OSError):
                yield from self._handle_loss(worker, is_late=False)
                continue
            worker.deadline = monotonic() + self.timeout_s
            yield from self._handle_message(worker, message)
            if not worker.remaining:
                self._idle.append(self._busy.pop(connection))

    def _handle_message(
        self, worker: BacktestWorker, message: SessionRead | list[ItemAnswer]
    ) -> Generator[ItemAnswer]:
        if isinstance(message, SessionRead):
            assert worker.task is not None
            order = self.choose_items(worker.task, message)
            worker.remaining = deque(number for number, _ in order.items)
            worker.send(order)
            return
        if worker.remaining:
            worker.remaining.popleft()
        yield from message

    def _handle_loss(self, worker: BacktestWorker, *, is_late: bool) -> Generator[ItemAnswer]:
        """Fail the current item of a lost process, and give the others to another process."""
        task = worker.task
        assert task is not None
        del self._busy[worker.connection]
        if not is_late:
            with suppress(subprocess.TimeoutExpired):
                worker.process.wait(_STOP_TIMEOUT_S)
        outcome, why = CellOutcome.DIED, _describe_exit(worker.stop())
        if is_late:
            outcome, why = CellOutcome.TIMED_OUT, f"it took more than {self.timeout_s:g} seconds"
        if not worker.remaining:
            yield from answer_all(task, f"{why}, while it was read", outcome)
            return
        yield ItemAnswer(task.name, worker.remaining.popleft(), None, outcome, why)
        if worker.remaining:
            left = {number: task.items[number] for number in worker.remaining}
            self._todo.appendleft(replace(task, items=left))


def _describe_exit(code: int) -> str:
    if code == -signal.SIGKILL:
        return "its process was killed, as where memory runs out"
    if code < 0:
        return f"its process ended by {signal.Signals(-code).name}"
    return f"its process ended with {code}"
