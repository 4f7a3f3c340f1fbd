"""What a process that works in the foreground is told by signals, and when to end at once."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Final

STOP_SIGNALS: Final = frozenset({signal.SIGTERM, signal.SIGINT})


class SignalQueue:
    """Signals in the order in which they came, to be waited for.

    The first one that asks to stop is an order like others; the second ends the process there and
    then, whatever it is at: nothing is lost of what is stored.
    """

    def __init__(self) -> None:
        # A signal may come at any moment: of all queues this is the one that it may be put into.
        self._queue: SimpleQueue[int | None] = SimpleQueue()
        self._is_ending = False

    def wait_next(self, timeout: float) -> int | None:
        """The next signal; None after so many seconds, or when somebody nudged."""
        try:
            return self._queue.get(timeout=max(timeout, 0))
        except Empty:
            return None

    def wake(self) -> None:
        """Let whoever waits look around; from any thread."""
        self._queue.put(None)

    @contextmanager
    def listen(self, *others: signal.Signals) -> Iterator[None]:
        """Hear those that ask to stop, and `others`; afterwards all is as it was before."""
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
        """End the process as a second signal does."""
        os._exit(128 + number)
