"""How idle work stands, and what came of a run, as people read it."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from ....projections.read_models.idle_state import IdleState
from ...runtime.idle.status import (
    DoneLately,
    DueNow,
    FailedLately,
    IdleStatus,
    PreparedNow,
    RunningNow,
)
from ...runtime.maintenance.chore_record import ChoreStatus
from .printing import clipped, counted, say

REASON = 160


def say_status(status: IdleStatus) -> None:
    """A paragraph for each kind; what is empty is said to be, and says why where it matters."""
    _say_due(status)
    _say_kind(
        "running", len(status.running), "nobody is at a session now", map(_running, status.running)
    )
    _say_kind(
        "prepared",
        status.prepared,
        "no boundary waits for the threshold",
        map(_prepared, status.prepared_boundaries),
    )
    in_day = f"; {status.done_in_day:,} of them in 24 hours" if status.done else ""
    _say_kind(
        "done",
        status.done,
        "no session was compacted in idle hours yet",
        map(_done, status.done_lately),
        in_day,
    )
    given_up = f"; {status.given_up:,} not again until something is said" if status.given_up else ""
    failed = [_failed(one) for one in status.failed_lately]
    nothing = "no session's newest attempt failed" + ("; before that:" if failed else "")
    _say_kind("failed", status.failing, nothing, failed, given_up)
    allowed = f" of ${status.spend_per_hour:,.2f}" if status.spend_per_hour is not None else ""
    say("spend", bold=True)
    say(f"  ${status.spent_in_hour:,.4f}{allowed} in this hour; ${status.spent:,.4f} in all")
    say("chores", bold=True)
    for chore in status.chores:
        say(f"  {_chore(chore)}")
    if not status.chores:
        say("  none: they are turned off, or the log is in memory")


def say_ended(document: Mapping[str, Any]) -> None:
    """What came of a run, in one line."""
    kinds = {"done": "compacted", "passed_over": "left as they are", "failed": "failed"}
    kinds |= {"lost": "not used", "left_running": "still running", "chores_done": "chores done"}
    said = [f"{document[name]:,} {words}" for name, words in kinds.items() if document[name]]
    trouble = f"; {document['trouble']}" if document["trouble"] else ""
    say(f"{', '.join(said) or 'nothing was to be done'}{trouble}")


WHY_LEFT = {
    IdleState.SMALL: "too little of their context is in use (idle.least_utilisation)",
    IdleState.RESTING: "something was said too recently (idle.time)",
    IdleState.COMPACTED: "nothing was said since the last compaction",
    IdleState.NO_GAIN: "a compaction would not make them smaller",
    IdleState.SUB_AGENT: "they work for another session",
    IdleState.WAITING: "a tool's result is still to come",
    IdleState.ASLEEP: "their agent goes on by itself later",
    IdleState.PREPARED: "a compaction is prepared, and waits for the threshold",
    IdleState.GIVEN_UP: "all attempts failed, until something is said",
    IdleState.RUNNING: "another worker compacts them now",
    IdleState.CLOSED: "they are closed",
    IdleState.DUE: "they are due, and could not be done now",
}
"""Why a run did not compact a session, the most usual first."""


def say_left_alone(counts: Mapping[str, int]) -> None:
    """Why a run left sessions as they are, a line for each reason."""
    for state, why in WHY_LEFT.items():
        if count := counts.get(state):
            say(f"  {counted(count, 'session')}: {why}")


def _say_due(status: IdleStatus) -> None:
    say("due", bold=True)
    if status.due:
        say(f"  {counted(status.due, 'session')}")
    elif status.next_due:
        wait = _span(status.at, status.next_due)
        say(f"  none now; the next in {wait}, at {_time(status.next_due)}")
    else:
        say("  none, and none will be until something is said in a session")
    if status.due and status.held_back and status.held_back_until:
        say(f"  nothing is begun until {_time(status.held_back_until)}: {status.held_back}")
    for due in status.due_sessions:
        say(f"  {_due(due, status.at)}")
    _say_more(status.due, len(status.due_sessions))


def _say_kind(name: str, number: int, nothing: str, named: Iterable[str], more: str = "") -> None:
    lines = list(named)
    say(name, bold=True)
    say(f"  {number:,}{more}" if number else f"  {nothing}")
    for line in lines:
        say(f"  {line}")
    if name == "prepared":
        _say_more(number, len(lines))


def _say_more(number: int, shown: int) -> None:
    if 0 < shown < number:
        say(f"  and {number - shown:,} more")


def _due(due: DueNow, now: datetime) -> str:
    failed = f", {counted(due.attempts, 'attempt')} failed" if due.attempts else ""
    left = f", {due.attempts_left} left" if due.attempts else ""
    since = _span(due.due_at, now)
    return f"{_name(due)}: {due.in_use:,} tokens, for {since}{failed}{left}"


def _running(running: RunningNow) -> str:
    who = running.worker or "whoever works in it"
    return f"{_name(running)}: {who} since {_time(running.since)}, until {_time(running.until)}"


def _prepared(one: PreparedNow) -> str:
    gain = f"{one.pre_tokens:,} -> {one.post_tokens:,} tokens"
    return f"{_name(one)}: boundary {one.boundary} of {_time(one.prepared_at)}, {gain}"


def _done(one: DoneLately) -> str:
    gain = f"{one.pre_tokens:,} -> {one.post_tokens:,} tokens"
    cost = f", ${one.cost_usd:,.4f}" if one.cost_usd else ""
    took = f", in {one.took_s:,.1f} s" if one.took_s is not None else ""
    by = f" by {one.summariser}" if one.summariser else ""
    return f"{_name(one)}: {_time(one.done_at)}, {gain}{by}{cost}{took}"


def _failed(one: FailedLately) -> str:
    again = f"; again at {_time(one.next_at)}, {one.attempts_left} left" if one.next_at else ""
    return f"{_name(one)}: {_time(one.failed_at)}, {clipped(one.reason, REASON)}{again}"


def _chore(chore: ChoreStatus) -> str:
    again = f"; again at {_time(chore.next_at)}" if chore.next_at else ""
    if chore.last_run is None:
        return f"{chore.chore}: not done yet{again}"
    saved = f", {chore.saved_in_all:,} bytes saved in all" if chore.saved_in_all else ""
    reason = f", {clipped(chore.reason, REASON)}" if chore.reason else ""
    return f"{chore.chore}: {chore.outcome} at {_time(chore.last_run)}{saved}{reason}{again}"


def _name(one: DueNow | RunningNow | PreparedNow | DoneLately | FailedLately) -> str:
    named = one.session if one.namespace == "default" else f"{one.namespace}/{one.session}"
    lineage = getattr(one, "lineage", "main")
    return named if lineage == "main" else f"{named} on {lineage}"


def _time(at: datetime) -> str:
    return at.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def _span(since: datetime, until: datetime) -> str:
    """The time between two moments, as roughly as one says it."""
    return span_in_words((until - since).total_seconds())


def span_in_words(seconds: float) -> str:
    """`45 s`, `4 min`, `3 h`, `2 days`."""
    for length, unit in ((172_800, "days"), (7_200, "h"), (120, "min")):
        if seconds >= length:
            return f"{seconds / {'days': 86_400, 'h': 3_600, 'min': 60}[unit]:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"
