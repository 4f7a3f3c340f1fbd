"""Counts what came of a worker's run."""

from dataclasses import dataclass
from threading import Lock

from .notices import About, Notice

COUNTED = {
    About.DONE: "done",
    About.PASSED_OVER: "passed_over",
    About.FAILED: "failed",
    About.LOST: "lost",
    About.CHORE_DONE: "chores_done",
    About.CHORE_FAILED: "chores_failed",
}
IN_TROUBLE = {About.DATABASE_AWAY, About.SETTINGS_REFUSED}
OUT_OF_TROUBLE = {About.DATABASE_BACK, About.SETTINGS_RELOADED}


class Tally:
    """Hears a worker's notices, and counts what came of them."""

    def __init__(self) -> None:
        self.counts = dict.fromkeys(COUNTED.values(), 0)
        self.due: int | None = None
        self.trouble: str | None = None
        self._counting = Lock()

    def __call__(self, notice: Notice) -> None:
        with self._counting:
            if counted := COUNTED.get(notice.about):
                self.counts[counted] += 1
            if notice.about is About.LOOKED:
                self.due = notice.due
            elif notice.about in IN_TROUBLE:
                self.trouble = notice.reason
            elif notice.about in OUT_OF_TROUBLE:
                self.trouble = None


@dataclass(frozen=True, slots=True)
class Ended:
    """How a worker's run came to its end."""

    worker: str
    counts: dict[str, int]
    trouble: str | None
    left_running: int = 0
    """Summaries that did not end in time: the process has to go without waiting for them."""

    @property
    def went_well(self) -> bool:
        return not (self.counts["failed"] or self.counts["chores_failed"] or self.trouble)
