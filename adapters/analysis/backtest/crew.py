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

from ....domain.backtest.cell import Outcome, Setup
from .errands import (
    Answer,
    Ask,
    Begun,
    Done,
    Errand,
    Finished,
    Read,
    Ready,
    Said,
    Unmeasured,
    Unread,
    of_all,
)

PROGRAM = (
    *(sys.executable, "-P", "-c"),
    "from cutbank.adapters.analysis.backtest.worker import main; main()",
)
TIMEOUT_S = 300.0
"""What a cell may take where nobody says."""
START_S = 60.0
"""What a process may take to start, which is no cell's doing: on a busy machine it is slow."""
LAST_WORDS_S = 5.0
"""Until a process that says no more is killed: it may be about to end by itself."""
TRIES = 3
"""How often a session is begun again whose process ended while it was at nothing of its own."""


@dataclass
class Hand:
    """One process, and what it is at."""

    process: subprocess.Popen[bytes]
    connection: Connection
    lifeline: int
    """Where this end is closed, the process ends."""
    errand: Errand | None = None
    read: Read | None = None
    left: list[int] = field(default_factory=list)
    """Items that were ordered and not answered yet."""
    is_ready: bool = False
    """Whether it has started."""
    at: int | None = None
    """The item that it is at."""
    due: float = 0.0

    @classmethod
    def start(cls) -> "Hand":
        ours, its = socket.socketpair()
        reads, lifeline = os.pipe()
        try:
            # In a group of its own: what is typed at the terminal is for this process to act on.
            process = subprocess.Popen(  # noqa: S603 - it is this program
                (*PROGRAM, str(its.fileno()), str(reads)),
                stdin=subprocess.DEVNULL,
                pass_fds=(its.fileno(), reads),
                process_group=0,
            )
        finally:
            its.close()
            os.close(reads)
        return cls(process, Connection(ours.detach()), lifeline)

    def stop(self) -> int:
        """End it, whatever it is at, and whatever it has started; tells how it ended."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        code = self.process.wait()
        if not self.connection.closed:
            self.connection.close()
            os.close(self.lifeline)
        return code


@dataclass
class Crew:
    """The processes of one backtest, each of which has one session in hand at a time."""

    errands: Iterable[Errand]
    """Those that take longest first, or the last one is waited for."""
    ask: Ask
    processes: int
    timeout_s: float = TIMEOUT_S
    spare: list[Hand] | None = None
    """Processes to take over, and to leave at the end for who comes next; None leaves none."""

    def __post_init__(self) -> None:
        self._todo = deque(self.errands)
        self._hands: list[Hand] = []

    def answers(self) -> Generator[Answer]:
        """What became of each item, in whatever order; stops all processes whenever it ends."""
        try:
            while self._todo or any(hand.errand for hand in self._hands):
                self._employ()
                yield from self._heard()
        finally:
            for hand in self._hands:
                if self.spare is not None and hand.errand is None:
                    self.spare.append(hand)
                else:
                    hand.stop()

    def _employ(self) -> None:
        """Give each process something to do, and start those that are missing."""
        for hand in self._hands:
            if hand.errand is None and self._todo:
                self._send(hand)
        while self._todo and len(self._hands) < self.processes:
            hand = self._taken_over() or Hand.start()
            self._hands.append(hand)
            self._send(hand)

    def _taken_over(self) -> Hand | None:
        while self.spare:
            with suppress(IndexError):  # another thread was faster
                hand = self.spare.pop()
                if hand.process.poll() is None:
                    return hand
                hand.stop()
        return None

    def _send(self, hand: Hand) -> None:
        hand.errand, hand.read = self._todo.popleft(), None
        hand.left, hand.at = [], None
        hand.due = monotonic() + self.timeout_s + (0.0 if hand.is_ready else START_S)
        with suppress(BrokenPipeError, ConnectionResetError):  # its end is heard below
            hand.connection.send(hand.errand)

    def _heard(self) -> Generator[Answer]:
        """Wait until a process says something, ends, or takes too long."""
        busy = {hand.connection: hand for hand in self._hands if hand.errand}
        first_due = min(hand.due for hand in busy.values())
        heard = set(wait(list(busy), max(0.0, first_due - monotonic())))
        for connection, hand in busy.items():
            if connection not in heard:
                if hand.due <= monotonic():
                    yield from self._lost(hand, is_late=True)
                continue
            try:
                said: Said = hand.connection.recv()
            except (EOFError, OSError):
                yield from self._lost(hand, is_late=False)
            else:
                hand.due = monotonic() + self.timeout_s
                yield from self._taken(hand, said)

    def _taken(self, hand: Hand, said: Said) -> Generator[Answer]:
        errand = hand.errand
        assert errand is not None
        match said:
            case Ready():
                hand.is_ready = True
            case Read():
                hand.read = said
                order = self.ask(errand, said)
                hand.left = [number for number, _ in order.items]
                with suppress(BrokenPipeError, ConnectionResetError):
                    hand.connection.send(order)
            case Begun(number):
                hand.at = number
            case Done(number, result):
                hand.left.remove(number)
                hand.at = None
                yield Answer(errand.name, number, result)
            case Unmeasured(number, why, is_out_of_memory):
                hand.left.remove(number)
                hand.at = None
                if is_out_of_memory:
                    why = f"it ran out of memory ({why})"
                outcome = Outcome.DIED if is_out_of_memory else Outcome.FAILED
                yield self._failed(hand, number, outcome, why)
            case Unread(why):
                hand.errand = None
                yield from of_all(errand, Outcome.FAILED, f"it cannot be read: {why}")
            case Finished():
                hand.errand = None

    def _lost(self, hand: Hand, *, is_late: bool) -> Generator[Answer]:
        """A process is gone, or given up: what it was at is lost, and the rest done by others."""
        errand = hand.errand
        assert errand is not None
        self._hands.remove(hand)
        if not is_late:
            with suppress(subprocess.TimeoutExpired):
                hand.process.wait(LAST_WORDS_S)
        code = hand.stop()
        outcome, why = Outcome.DIED, _of_death(code)
        if is_late:
            outcome, why = Outcome.TIMED_OUT, f"it took more than {self.timeout_s:g} seconds"
        if hand.read is None:
            yield from of_all(errand, outcome, f"{why}, while it was read")
        elif hand.at is not None:
            yield self._failed(hand, hand.at, outcome, why)
            self._again(errand, [number for number in hand.left if number != hand.at])
        elif errand.tries < TRIES:
            self._again(errand, hand.left)  # it was between two items: neither is to blame
        else:
            for number in hand.left:
                yield self._failed(hand, number, outcome, why)

    def _again(self, errand: Errand, numbers: list[int]) -> None:
        """Have what is left done by another process."""
        if numbers:
            left = {number: errand.items[number] for number in numbers}
            self._todo.appendleft(replace(errand, items=left, tries=errand.tries + 1))

    def _failed(self, hand: Hand, number: int, outcome: Outcome, why: str) -> Answer:
        errand, read = hand.errand, hand.read
        assert errand is not None
        assert read is not None
        item = errand.items[number]
        if not isinstance(item, Setup):
            return Answer(errand.name, number, None, outcome, why)
        row = {"setup": item, "outcome": outcome, "why": why}
        return Answer(errand.name, number, read.blank.model_copy(update=row), outcome, why)


def _of_death(code: int) -> str:
    if code == -signal.SIGKILL:
        return "its process was killed, as where memory runs out"
    if code < 0:
        return f"its process ended by {signal.Signals(-code).name}"
    return f"its process ended with {code}"
