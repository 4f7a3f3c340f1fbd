"""Measures an idle worker by what it says of its work."""

from ..idle.notices import About, Notice
from .instruments import Instruments, instruments
from .unharmed import unharmed

# Each session that was begun comes to one of these ends.
FATES = {
    About.DONE: "done",
    About.PASSED_OVER: "passed_over",
    About.FAILED: "failed",
    About.LOST: "lost",
}
CHORES = {About.CHORE_DONE: "done", About.CHORE_FAILED: "failed"}
INCIDENTS = frozenset({About.DATABASE_AWAY, About.SETTINGS_REFUSED, About.CLOCK_JUMPED})


def measure(notice: Notice) -> None:
    """Count it, and note what it says of the work at hand."""
    with unharmed("an idle worker"):
        _measured(instruments(), notice)


def _measured(meters: Instruments, notice: Notice) -> None:
    about = notice.about
    if notice.due is not None:
        meters.idle_due.set(notice.due)
    if about is About.LOOKED:
        meters.idle_looks.add(1)
        if notice.next_at is not None:
            meters.idle_next_due.set(max((notice.next_at - notice.at).total_seconds(), 0.0))
    if about is About.BEGAN:
        meters.idle_running.add(1)
    if fate := FATES.get(about):
        meters.idle_running.add(-1)
        meters.idle_sessions.add(1, {"cutbank.idle.outcome": fate})
    if fate := CHORES.get(about):
        chore = notice.chore or "unknown"
        meters.idle_chores.add(1, {"cutbank.idle.outcome": fate, "cutbank.idle.chore": chore})
    if about in INCIDENTS:
        meters.idle_incidents.add(1, {"cutbank.idle.incident": about.value})
