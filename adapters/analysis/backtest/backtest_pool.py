"""Measures sessions in several processes; one that dies or hangs costs one row."""

import os
import signal
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Generator, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, wait
from time import monotonic

from ....domain.backtest.cell import CellOutcome, Setup
from .worker_messages import (
    ChooseItems,
    ItemAnswer,
    ItemDone,
    ItemFailed,
    ItemStarted,
    SessionRead,
    SessionTask,
    SessionUnreadable,
    TaskFinished,
    WorkerMessage,
    WorkerReady,
    answer_all,
)

BACKTEST_WORKER_COMMAND = (
    *(sys.executable, "-P", "-c"),
    "from cutbank.adapters.analysis.backtest.worker import main; main()",
)
DEFAULT_TIMEOUT_S = 300.0
START_TIMEOUT_S = 60.0
"""Time limit for the start of a process, which is slow on a busy machine."""
_STOP_TIMEOUT_S = 5.0
"""Seconds before a process that closed its connection is killed: it may be about to exit."""
MAX_TRIES = 3
"""Attempts at a session whose process ended between items."""


@dataclass
class BacktestWorker:
    """One process and its task."""

    process: subprocess.Popen[bytes]
    connection: Connection
    lifeline: int
    """Closing this file descriptor ends the process."""
    task: SessionTask | None = None
    session_read: SessionRead | None = None
    remaining_items: list[int] = field(default_factory=list)
    """The assigned items without an answer."""
    is_ready: bool = False
    current_item: int | None = None
    deadline: float = 0.0

    @classmethod
    def start(cls) -> "BacktestWorker":
        ours, its = socket.socketpair()
        reads, lifeline = os.pipe()
        try:
            # In its own process group, so that Ctrl-C only reaches this process.
            process = subprocess.Popen(  # noqa: S603 - it is this program
                (*BACKTEST_WORKER_COMMAND, str(its.fileno()), str(reads)),
                stdin=subprocess.DEVNULL,
                pass_fds=(its.fileno(), reads),
                process_group=0,
            )
        finally:
            its.close()
            os.close(reads)
        return cls(process, Connection(ours.detach()), lifeline)

    def stop(self) -> int:
        """End the process and its children, and return its exit code."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        code = self.process.wait()
        if not self.connection.closed:
            self.connection.close()
            os.close(self.lifeline)
        return code


@dataclass
class BacktestPool:
    """The processes of one backtest, each with one session at a time."""

    tasks: Iterable[SessionTask]
    """The longest tasks come first, so that the last one does not delay the end."""
    choose_items: ChooseItems
    processes: int
    timeout_s: float = DEFAULT_TIMEOUT_S
    idle_workers: list[BacktestWorker] | None = None
    """Processes to reuse, and to leave for the next pool; None leaves none."""

    def __post_init__(self) -> None:
        self._todo = deque(self.tasks)
        self._hands: list[BacktestWorker] = []

    def measure_all(self) -> Generator[ItemAnswer]:
        """Yield the outcome of each item, in any order; always stop all processes at the end."""
        try:
            while self._todo or any(hand.task for hand in self._hands):
                self._assign_tasks()
                yield from self._receive()
        finally:
            for hand in self._hands:
                if self.idle_workers is not None and hand.task is None:
                    self.idle_workers.append(hand)
                else:
                    hand.stop()

    def _assign_tasks(self) -> None:
        """Give each process a task, and start missing processes."""
        for hand in self._hands:
            if hand.task is None and self._todo:
                self._send(hand)
        while self._todo and len(self._hands) < self.processes:
            hand = self._take_idle_worker() or BacktestWorker.start()
            self._hands.append(hand)
            self._send(hand)

    def _take_idle_worker(self) -> BacktestWorker | None:
        while self.idle_workers:
            with suppress(IndexError):  # another thread was faster
                hand = self.idle_workers.pop()
                if hand.process.poll() is None:
                    return hand
                hand.stop()
        return None

    def _send(self, hand: BacktestWorker) -> None:
        hand.task, hand.session_read = self._todo.popleft(), None
        hand.remaining_items, hand.current_item = [], None
        hand.deadline = monotonic() + self.timeout_s + (0.0 if hand.is_ready else START_TIMEOUT_S)
        with suppress(BrokenPipeError, ConnectionResetError):  # the receiving loop handles its end
            hand.connection.send(hand.task)

    def _receive(self) -> Generator[ItemAnswer]:
        """Wait until a process answers, ends, or exceeds its time limit."""
        busy = {hand.connection: hand for hand in self._hands if hand.task}
        first_due = min(hand.deadline for hand in busy.values())
        heard = set(wait(list(busy), max(0.0, first_due - monotonic())))
        for connection, hand in busy.items():
            if connection not in heard:
                if hand.deadline <= monotonic():
                    yield from self._handle_loss(hand, is_late=True)
                continue
            try:
                said: WorkerMessage = hand.connection.recv()
            except (EOFError, OSError):
                yield from self._handle_loss(hand, is_late=False)
            else:
                hand.deadline = monotonic() + self.timeout_s
                yield from self._handle_message(hand, said)

    def _handle_message(self, hand: BacktestWorker, said: WorkerMessage) -> Generator[ItemAnswer]:
        task = hand.task
        assert task is not None
        match said:
            case WorkerReady():
                hand.is_ready = True
            case SessionRead():
                hand.session_read = said
                order = self.choose_items(task, said)
                hand.remaining_items = [number for number, _ in order.items]
                with suppress(BrokenPipeError, ConnectionResetError):
                    hand.connection.send(order)
            case ItemStarted(number):
                hand.current_item = number
            case ItemDone(number, result):
                hand.remaining_items.remove(number)
                hand.current_item = None
                yield ItemAnswer(task.name, number, result)
            case ItemFailed(number, why, is_out_of_memory):
                hand.remaining_items.remove(number)
                hand.current_item = None
                if is_out_of_memory:
                    why = f"it ran out of memory ({why})"
                outcome = CellOutcome.DIED if is_out_of_memory else CellOutcome.FAILED
                yield self._make_failure(hand, number, outcome, why)
            case SessionUnreadable(why):
                hand.task = None
                yield from answer_all(task, CellOutcome.FAILED, f"it cannot be read: {why}")
            case TaskFinished():
                hand.task = None

    def _handle_loss(self, hand: BacktestWorker, *, is_late: bool) -> Generator[ItemAnswer]:
        """Fail the current item of a lost process, and reassign the others."""
        task = hand.task
        assert task is not None
        self._hands.remove(hand)
        if not is_late:
            with suppress(subprocess.TimeoutExpired):
                hand.process.wait(_STOP_TIMEOUT_S)
        code = hand.stop()
        outcome, why = CellOutcome.DIED, _describe_exit(code)
        if is_late:
            outcome, why = CellOutcome.TIMED_OUT, f"it took more than {self.timeout_s:g} seconds"
        if hand.session_read is None:
            yield from answer_all(task, outcome, f"{why}, while it was read")
        elif hand.current_item is not None:
            yield self._make_failure(hand, hand.current_item, outcome, why)
            self._retry(
                task, [number for number in hand.remaining_items if number != hand.current_item]
            )
        elif task.tries < MAX_TRIES:
            self._retry(
                task, hand.remaining_items
            )  # it was between two items, so neither is to blame
        else:
            for number in hand.remaining_items:
                yield self._make_failure(hand, number, outcome, why)

    def _retry(self, task: SessionTask, numbers: list[int]) -> None:
        """Give the remaining items to another process."""
        if numbers:
            left = {number: task.items[number] for number in numbers}
            self._todo.appendleft(replace(task, items=left, tries=task.tries + 1))

    def _make_failure(
        self, hand: BacktestWorker, number: int, outcome: CellOutcome, why: str
    ) -> ItemAnswer:
        task, read = hand.task, hand.session_read
        assert task is not None
        assert read is not None
        item = task.items[number]
        if not isinstance(item, Setup):
            return ItemAnswer(task.name, number, None, outcome, why)
        row = {"setup": item, "outcome": outcome, "why": why}
        return ItemAnswer(task.name, number, read.blank_cell.model_copy(update=row), outcome, why)


def _describe_exit(code: int) -> str:
    if code == -signal.SIGKILL:
        return "its process was killed, as where memory runs out"
    if code < 0:
        return f"its process ended by {signal.Signals(-code).name}"
    return f"its process ended with {code}"
