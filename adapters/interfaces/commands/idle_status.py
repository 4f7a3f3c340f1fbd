"""Prints the state of idle work, and the result of a run."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import chain
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
from ...runtime.maintenance.task_record import TaskStatus
from ..command_line.printing import clip_text, format_count, print_text

MAX_REASON_CHARACTERS = 160
RUN_COUNTS = {
    "done": "compacted",
    "passed_over": "left as they are",
    "failed": "failed",
    "lost": "not used",
    "left_running": "still running",
    "chores_done": "chores done",
}
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


def print_idle_status(status: IdleStatus) -> None:
    """Print a paragraph for each kind, even if empty, with the reason where it matters."""
    _print_kind("due", _due_lines(status))
    running = map(_format_running, status.running)
    _print_kind(
        "running", _kind_lines(len(status.running), "no session is being compacted now", running)
    )
    prepared = list(map(_format_prepared, status.prepared_boundaries))
    _print_kind(
        "prepared",
        _kind_lines(status.prepared, "no boundary waits for the threshold", prepared),
        _more_lines(status.prepared, len(prepared)),
    )
    in_day = f"; {status.done_in_day:,} of them in 24 hours" if status.done else ""
    nothing = "no session was compacted in idle hours yet"
    done = map(_format_done, status.done_lately)
    _print_kind("done", _kind_lines(status.done, nothing, done, in_day))
    given_up = f"; {status.given_up:,} not again until something is said" if status.given_up else ""
    failed = [_format_failed(one) for one in status.failed_lately]
    nothing = "no session's newest attempt failed" + ("; before that:" if failed else "")
    _print_kind("failed", _kind_lines(status.failing, nothing, failed, given_up))
    allowed = f" of ${status.spend_per_hour:,.2f}" if status.spend_per_hour is not None else ""
    spent = f"${status.spent_in_hour:,.4f}{allowed} in this hour; ${status.spent:,.4f} in all"
    _print_kind("spend", [spent])
    chores = [_format_task(chore) for chore in status.chores]
    _print_kind("chores", chores or ["none: they are turned off, or the log is in memory"])


def print_idle_run(document: Mapping[str, Any]) -> None:
    counts = [f"{document[name]:,} {what}" for name, what in RUN_COUNTS.items() if document[name]]
    trouble = f"; {document['trouble']}" if document["trouble"] else ""
    print_text(f"{', '.join(counts) or 'nothing was to be done'}{trouble}")


def print_left_sessions(counts: Mapping[str, int]) -> None:
    """Print a line for each reason why sessions were not compacted."""
    for state, why in LEFT_REASONS.items():
        if count := counts.get(state):
            print_text(f"  {format_count(count, 'session')}: {why}")


def _print_kind(name: str, *lines: Iterable[str]) -> None:
    print_text(name, bold=True)
    for line in chain(*lines):
        print_text(f"  {line}")


def _due_lines(status: IdleStatus) -> Iterator[str]:
    if status.due:
        yield format_count(status.due, "session")
    elif status.next_due:
        wait = _format_span(status.at, status.next_due)
        yield f"none now; the next in {wait}, at {_format_time(status.next_due)}"
    else:
        yield "none, and none will be until something is said in a session"
    if status.due and status.held_back and status.held_back_until:
        yield f"nothing is begun until {_format_time(status.held_back_until)}: {status.held_back}"
    for due in status.due_sessions:
        yield _format_due(due, status.at)
    yield from _more_lines(status.due, len(status.due_sessions))


def _kind_lines(number: int, nothing: str, named: Iterable[str], more: str = "") -> Iterator[str]:
    yield f"{number:,}{more}" if number else nothing
    yield from named


def _more_lines(number: int, shown: int) -> Iterator[str]:
    if 0 < shown < number:
        yield f"and {number - shown:,} more"


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
    return _format_duration((until - since).total_seconds())


def _format_duration(seconds: float) -> str:
    """Return `45 s`, `4 min`, `3 h` or `2 days`."""
    for least, length, unit in ((172_800, 86_400, "days"), (7_200, 3_600, "h"), (120, 60, "min")):
        if seconds >= least:
            return f"{seconds / length:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"
