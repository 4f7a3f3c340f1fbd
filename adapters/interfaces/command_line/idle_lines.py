"""Prints the state of idle work, and the result of a run."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from ....projections.read_models.idle_state import IdleState
from ...runtime.idle.idle_status import (
    DoneStatus,
    DueStatus,
    FailedStatus,
    IdleStatus,
    PreparedStatus,
    RunningStatus,
)
from ...runtime.maintenance.maintenance_task import TaskStatus
from .printing import clip_text, format_count, print_text

MAX_REASON_CHARACTERS = 160


def print_idle_status(status: IdleStatus) -> None:
    """Print a paragraph for each kind, even if empty, with the reason where it matters."""
    _print_due(status)
    _print_kind(
        "running",
        len(status.running),
        "no session is being compacted now",
        map(_format_running, status.running),
    )
    _print_kind(
        "prepared",
        status.prepared,
        "no boundary waits for the threshold",
        map(_format_prepared, status.prepared_boundaries),
    )
    in_day = f"; {status.done_in_day:,} of them in 24 hours" if status.done else ""
    _print_kind(
        "done",
        status.done,
        "no session was compacted in idle hours yet",
        map(_format_done, status.done_lately),
        in_day,
    )
    given_up = f"; {status.given_up:,} not again until something is said" if status.given_up else ""
    failed = [_format_failed(one) for one in status.failed_lately]
    nothing = "no session's newest attempt failed" + ("; before that:" if failed else "")
    _print_kind("failed", status.failing, nothing, failed, given_up)
    allowed = f" of ${status.spend_per_hour:,.2f}" if status.spend_per_hour is not None else ""
    print_text("spend", bold=True)
    print_text(f"  ${status.spent_in_hour:,.4f}{allowed} in this hour; ${status.spent:,.4f} in all")
    print_text("chores", bold=True)
    for chore in status.chores:
        print_text(f"  {_format_task(chore)}")
    if not status.chores:
        print_text("  none: they are turned off, or the log is in memory")


def print_idle_run(document: Mapping[str, Any]) -> None:
    kinds = {"done": "compacted", "passed_over": "left as they are", "failed": "failed"}
    kinds |= {"lost": "not used", "left_running": "still running", "chores_done": "chores done"}
    said = [f"{document[name]:,} {words}" for name, words in kinds.items() if document[name]]
    trouble = f"; {document['trouble']}" if document["trouble"] else ""
    print_text(f"{', '.join(said) or 'nothing was to be done'}{trouble}")


LEFT_REASONS = {
    IdleState.SMALL: "too little of their context is in use (idle.least_utilization)",
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
"""Reasons why a run did not compact a session, the most common first."""


def print_left_sessions(counts: Mapping[str, int]) -> None:
    """Print a line for each reason why sessions were not compacted."""
    for state, why in LEFT_REASONS.items():
        if count := counts.get(state):
            print_text(f"  {format_count(count, 'session')}: {why}")


def _print_due(status: IdleStatus) -> None:
    print_text("due", bold=True)
    if status.due:
        print_text(f"  {format_count(status.due, 'session')}")
    elif status.next_due:
        wait = _format_span(status.at, status.next_due)
        print_text(f"  none now; the next in {wait}, at {_format_time(status.next_due)}")
    else:
        print_text("  none, and none will be until something is said in a session")
    if status.due and status.held_back and status.held_back_until:
        print_text(
            f"  nothing is begun until {_format_time(status.held_back_until)}: {status.held_back}"
        )
    for due in status.due_sessions:
        print_text(f"  {_format_due(due, status.at)}")
    _print_more(status.due, len(status.due_sessions))


def _print_kind(name: str, number: int, nothing: str, named: Iterable[str], more: str = "") -> None:
    lines = list(named)
    print_text(name, bold=True)
    print_text(f"  {number:,}{more}" if number else f"  {nothing}")
    for line in lines:
        print_text(f"  {line}")
    if name == "prepared":
        _print_more(number, len(lines))


def _print_more(number: int, shown: int) -> None:
    if 0 < shown < number:
        print_text(f"  and {number - shown:,} more")


def _format_due(due: DueStatus, now: datetime) -> str:
    failed = f", {format_count(due.attempts, 'attempt')} failed" if due.attempts else ""
    left = f", {due.attempts_left} left" if due.attempts else ""
    since = _format_span(due.due_at, now)
    return f"{_format_name(due)}: {due.in_use:,} tokens, for {since}{failed}{left}"


def _format_running(running: RunningStatus) -> str:
    who = running.worker or "the agent that works in it"
    return (
        f"{_format_name(running)}: {who} since {_format_time(running.since)}, until "
        f"{_format_time(running.until)}"
    )


def _format_prepared(one: PreparedStatus) -> str:
    gain = f"{one.pre_tokens:,} -> {one.post_tokens:,} tokens"
    return (
        f"{_format_name(one)}: boundary {one.boundary} of {_format_time(one.prepared_at)}, {gain}"
    )


def _format_done(one: DoneStatus) -> str:
    gain = f"{one.pre_tokens:,} -> {one.post_tokens:,} tokens"
    cost = f", ${one.cost_usd:,.4f}" if one.cost_usd else ""
    took = f", in {one.took_s:,.1f} s" if one.took_s is not None else ""
    by = f" by {one.summariser}" if one.summariser else ""
    return f"{_format_name(one)}: {_format_time(one.done_at)}, {gain}{by}{cost}{took}"


def _format_failed(one: FailedStatus) -> str:
    again = (
        f"; again at {_format_time(one.next_at)}, {one.attempts_left} left" if one.next_at else ""
    )
    return (
        f"{_format_name(one)}: {_format_time(one.failed_at)}, "
        f"{clip_text(one.reason, MAX_REASON_CHARACTERS)}{again}"
    )


def _format_task(chore: TaskStatus) -> str:
    again = f"; again at {_format_time(chore.next_at)}" if chore.next_at else ""
    if chore.last_run is None:
        return f"{chore.chore}: not done yet{again}"
    saved = f", {chore.saved_in_all:,} bytes saved in all" if chore.saved_in_all else ""
    reason = f", {clip_text(chore.reason, MAX_REASON_CHARACTERS)}" if chore.reason else ""
    return f"{chore.chore}: {chore.outcome} at {_format_time(chore.last_run)}{saved}{reason}{again}"


def _format_name(
    one: DueStatus | RunningStatus | PreparedStatus | DoneStatus | FailedStatus,
) -> str:
    named = one.session if one.namespace == "default" else f"{one.namespace}/{one.session}"
    lineage = getattr(one, "lineage", "main")
    return named if lineage == "main" else f"{named} on {lineage}"


def _format_time(at: datetime) -> str:
    return at.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def _format_span(since: datetime, until: datetime) -> str:
    """Return the rounded time between two moments."""
    return format_duration((until - since).total_seconds())


def format_duration(seconds: float) -> str:
    """Return `45 s`, `4 min`, `3 h` or `2 days`."""
    for length, unit in ((172_800, "days"), (7_200, "h"), (120, "min")):
        if seconds >= length:
            return f"{seconds / {'days': 86_400, 'h': 3_600, 'min': 60}[unit]:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"
