"""Queues the signals that a foreground process gets."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Final

STOP_SIGNALS: Final = frozenset({signal.SIGTERM, signal.SIGINT})


class SignalQueue:
    """A queue of signals, in the order of their arrival.

    The first signal to stop is queued like others; the second exits the process immediately.
    Nothing stored is lost.
    """

    def __init__(self) -> None:
        # Signals arrive at any moment, and SimpleQueue is the queue whose `put` is reentrant.
        self._queue: SimpleQueue[int | None] = SimpleQueue()
        self._is_ending = False

    def wait_next(self, timeout: float) -> int | None:
        """Return the next signal; None after the timeout or a `wake`."""
        try:
            return self._queue.get(timeout=max(timeout, 0))
        except Empty:
            return None

    def wake(self) -> None:
        """Wake the waiting thread; callable from any thread."""
        self._queue.put(None)

    @contextmanager
    def listen(self, *others: signal.Signals) -> Iterator[None]:
        """Receive the signals to stop and `others`; restore the old handlers afterwards."""
        before = {
            wanted: signal.signal(wanted, self._receive) for wanted in {*STOP_SIGNALS, *others}
        }
        try:
            yield
        finally:
            for wanted, handler in before.items():
                signal.signal(wanted, handler)

    def _receive(self, number: int, _frame: FrameType | None) -> None:
        if number in STOP_SIGNALS:
            if self._is_ending:
                self.exit_now(number)
            self._is_ending = True
        self._queue.put(number)

    def exit_now(self, number: int) -> None:
        """Exit the process, as a second signal does."""
        os._exit(128 + number)
