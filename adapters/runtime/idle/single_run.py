"""A worker's single run: all that is due now is done, and no more."""

from collections import Counter
from collections.abc import Sequence

from ..sessions.session_store import SessionStore
from .notices import About, Heard, Notice
from .orders import STOPS, Orders
from .tally import Ended, Tally
from .upkeep import upkeep_of
from .worker import IdleWorker

PATIENCE_S = 60.0
"""Between two looks while summaries are written; whatever ends is looked at before that."""
CHORES_PAUSE_S = 0.2
OFTEN = 3
"""How often one session is passed over in a run before nothing more is awaited of it."""


class SingleRun:
    """Looks, and looks again whenever something is done with, until nothing is left to do."""

    def __init__(
        self, store: SessionStore, *, heard: Sequence[Heard] = (), grace_s: float = 30.0
    ) -> None:
        self.tally = Tally()
        self.grace_s = grace_s
        self.orders = Orders()
        listeners: list[Heard] = [self.tally, self._hear, *heard]
        self.worker = IdleWorker(store, heard=listeners, upkeep=upkeep_of(store))
        self.worker.on_free = self.orders.nudge
        self._found: Notice | None = None
        self._passed_over: Counter[tuple[str | None, str | None]] = Counter()

    def work(self) -> Ended:
        """Do what is due; told to stop, cancel what runs and wait for it for the grace time."""
        with self.orders.heard():
            is_whole = False
            try:
                is_whole = self._work()
            finally:
                has_ended = self.worker.stop(self.grace_s)
        trouble = self.tally.trouble or (None if is_whole else "it was told to stop")
        left = 0 if has_ended else len(self.worker.running)
        return Ended(self.worker.name, self.tally.counts, trouble, left)

    def _work(self) -> bool:
        """Whether nothing that is due was left."""
        while True:
            self._found = None
            self.worker.look()
            if not self.worker.running and self._is_over():
                return self._is_kept()
            if self.worker.running and self.orders.next(PATIENCE_S) in STOPS:
                return False

    def _is_over(self) -> bool:
        found = self._found
        # Without an answer, or where all has to wait, there is nothing to do now.
        if found is None or found.about is not About.LOOKED or not found.due:
            return True
        return max(self._passed_over.values(), default=0) >= OFTEN

    def _is_kept(self) -> bool:
        """Wait for chores that were begun meanwhile; whether they came to their end."""
        while not self.worker.wait(CHORES_PAUSE_S):
            if self.orders.next(0) in STOPS:
                return False
        return True

    def _hear(self, notice: Notice) -> None:
        match notice.about:
            case About.LOOKED | About.WAITING | About.DATABASE_AWAY:
                self._found = notice
            case About.PASSED_OVER:
                self._passed_over[notice.namespace, notice.session] += 1
            case _:
                pass
