"""Implements `idle`: works in idle hours, or shows the state of that work."""

import json
import logging
import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import typer

from ....domain.errors import InvalidSettingError
from ....projections.read_models.session_row import IdleState
from ...runtime.idle.idle_status import (
    DoneStatus,
    DueStatus,
    FailedStatus,
    IdleStatus,
    PreparedStatus,
    RunningStatus,
    get_idle_status,
)
from ...runtime.idle.notices import WorkerRun
from ...runtime.maintenance.maintenance_task import TaskStatus
from ..command_line.printing import clip_text, format_count, print_json, print_text
from ..command_line.sessions import find_call_database, list_all, open_call_store
from ..command_line.verbs import DATABASE_VARIABLE, Invocation, flag, option

SUMMED_COUNTS = (
    "done",
    "passed_over",
    "failed",
    "lost",
    "chores_done",
    "chores_failed",
    "left_running",
)
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
    IdleState.RESTING: "the last activity was too recent (idle.time)",
    IdleState.COMPACTED: "no activity since the last compaction",
    IdleState.NO_GAIN: "a compaction would not make them smaller",
    IdleState.SUB_AGENT: "they work for another session",
    IdleState.WAITING: "a tool's result is still to come",
    IdleState.ASLEEP: "their agent goes on by itself later",
    IdleState.PREPARED: "a compaction is prepared, and waits for the threshold",
    IdleState.GIVEN_UP: "all attempts failed; waits for new activity",
    IdleState.RUNNING: "another worker compacts them now",
    IdleState.CLOSED: "they are closed",
    IdleState.DUE: "they are due, and could not be done now",
}
"""Reasons why a run did not compact a session, the most common first."""


def idle(
    call: Invocation,
    *,
    status: bool = flag("--status", "Say how the work stands, and do nothing."),
    last: int = option("--last", "How many of each kind --status names.", 5, min=1, max=1_000),
    once: bool = flag("--once", "Do what is due now, then exit: 1 if anything failed, else 0."),
    processes: int = option("--processes N", "Workers at once.", 1, min=1, max=256),
    health: Path | None = option("--health FILE", "Says every few seconds how it does."),
    grace: float = option("--grace SECONDS", "For what runs, when it is to end.", 30.0, min=0),
    log: Literal["text", "json"] = option("--log", "The form of lines on stderr.", "text"),
    verbose: bool = flag("--verbose -v", "Log each look and each beginning."),
    quiet: bool = flag("--quiet -q", "Log warnings only."),
    idle_time: float | None = option(
        "--idle-time SECONDS", "For idle.time of the settings.", min=0
    ),
    concurrency: int | None = option("--concurrency N", "For idle.concurrency.", min=1, max=64),
    namespace: list[str] | None = option(
        "--namespace NAME", "For idle.namespaces; may be repeated."
    ),
    parent: int | None = typer.Option(None, "--parent", hidden=True),
) -> None:
    """Compact sessions that are at rest, until told to stop."""
    if once and health is not None:
        raise InvalidSettingError("--once ends by itself: --health is for a worker that goes on")
    named = namespace or ([call.named] if call.named else [])
    given = {
        "CUTBANK_IDLE_TIME": idle_time,
        "CUTBANK_IDLE_CONCURRENCY": concurrency,
        "CUTBANK_IDLE_NAMESPACES": json.dumps(named) if named else None,
    }
    # In the environment, so that worker processes inherit them.
    os.environ.update({name: str(value) for name, value in given.items() if value is not None})
    if status:
        with open_call_store(call) as store:
            found = get_idle_status(store, last=last)
        if call.as_json:
            print_json(found.to_json())
        else:
            _print_idle_status(found)
        return
    from ...runtime.idle.worker_log import log_to_stderr  # noqa: PLC0415 - `--status` is fast

    level = logging.DEBUG if verbose else logging.WARNING if quiet else logging.INFO
    with log_to_stderr(log, level):
        if processes == 1:
            ended = _run_worker(call, health, grace, parent, is_once=once)
            left = _count_session_states(call) if once else {}
            _print_run(call, _run_to_json(ended) | {"left_alone": left})
            code = 0 if ended.has_succeeded or not once else 1
        else:
            words = ["idle", "--json", "--grace", str(grace), "--log", log]
            words += ["--verbose"] * verbose + ["--quiet"] * quiet + ["--once"] * once
            code = _run_workers(call, words, processes, health, grace, is_once=once)
    raise typer.Exit(code)


def _run_worker(
    call: Invocation, health: Path | None, grace: float, parent: int | None, *, is_once: bool
) -> WorkerRun:
    # `--status` need not load APScheduler.
    from ...runtime.idle.foreground import (  # noqa: PLC0415 - start-up time
        restart_program,
        run_once,
        run_until_stopped,
    )
    from ...runtime.idle.worker_log import WorkerLog  # noqa: PLC0415 - start-up time

    with open_call_store(call) as store:
        if is_once:
            ended = run_once(store, listeners=[WorkerLog()], grace_s=grace)
        else:
            ended = run_until_stopped(
                store, listeners=[WorkerLog()], health=health, grace_s=grace, parent=parent
            )
        if ended.left_running:
            # Closing would wait for work that never ends.
            if ended.is_to_restart:
                restart_program()
            _print_run(call, _run_to_json(ended))
            # Exit without waiting for unfinished summaries, whose leases expire.
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(1)
    if ended.is_to_restart:
        restart_program()
    return ended


def _run_workers(
    call: Invocation,
    words: list[str],
    processes: int,
    health: Path | None,
    grace: float,
    *,
    is_once: bool,
) -> int:
    from ...runtime.idle.worker_processes import run_worker_processes  # noqa: PLC0415 - as above

    # Report errors once, before workers start.
    with open_call_store(call) as store:
        store.settings  # noqa: B018 - load and validate them now
        store.read_models  # noqa: B018 - create them now
    if call.settings_file is not None:
        words += ["--settings", call.settings_file]
    words += ["--parent", str(os.getpid())]
    # An address may hold a password, which process lists would show.
    environ = {**os.environ, DATABASE_VARIABLE: find_call_database(call)}
    code, ended = run_worker_processes(
        words, environ, processes=processes, grace_s=grace, health=health, is_once=is_once
    )
    left = _count_session_states(call) if is_once else {}
    document: dict[str, Any] = {
        "workers": [worker for said in ended for worker in said["workers"]],
        **{name: sum(said[name] for said in ended) for name in SUMMED_COUNTS},
        "trouble": next((said["trouble"] for said in ended if said["trouble"]), None),
        "left_alone": left,
    }
    _print_run(call, document)
    return code


def _run_to_json(ended: WorkerRun) -> dict[str, Any]:
    return {
        "workers": [ended.worker],
        **ended.counts,
        "left_running": ended.left_running,
        "trouble": ended.trouble,
    }


def _print_run(call: Invocation, document: Mapping[str, Any]) -> None:
    if call.as_json:
        print_json(document)
        return
    counts = [f"{document[name]:,} {what}" for name, what in RUN_COUNTS.items() if document[name]]
    trouble = f"; {document['trouble']}" if document["trouble"] else ""
    print_text(f"{', '.join(counts) or 'nothing was to be done'}{trouble}")
    states = document.get("left_alone", {})
    for state, why in LEFT_REASONS.items():
        if count := states.get(state):
            print_text(f"  {format_count(count, 'session')}: {why}")


def _count_session_states(call: Invocation) -> dict[str, int]:
    with open_call_store(call) as store:
        spaces = store.settings.idle.namespaces
        listed = list_all(store, None)
    return Counter(
        one["idle"] for one in listed if one["idle"] and (not spaces or one["namespace"] in spaces)
    )


def _print_idle_status(status: IdleStatus) -> None:
    """Print a paragraph for each kind, even if empty, with the reason where it matters."""
    _print_kind("due", *_due_lines(status))
    running = f"{len(status.running):,}" if status.running else "no session is being compacted now"
    _print_kind("running", running, *map(_format_running, status.running))
    prepared = f"{status.prepared:,}" if status.prepared else "no boundary waits for the threshold"
    shown = [_format_prepared(one) for one in status.prepared_boundaries]
    _print_kind("prepared", prepared, *shown, *_more_lines(status.prepared, len(shown)))
    done = "no session was compacted in idle hours yet"
    if status.done:
        done = f"{status.done:,}; {status.done_in_day:,} of them in 24 hours"
    _print_kind("done", done, *map(_format_done, status.done_lately))
    failed = "no session's newest attempt failed"
    if status.failing:
        failed = f"{status.failing:,}"
        if status.given_up:
            failed += f"; {status.given_up:,} not again until there is new activity"
    elif status.failed_lately:
        failed += "; before that:"
    _print_kind("failed", failed, *map(_format_failed, status.failed_lately))
    allowed = f" of ${status.spend_per_hour:,.2f}" if status.spend_per_hour is not None else ""
    spent = f"${status.spent_in_hour:,.4f}{allowed} in this hour; ${status.spent:,.4f} in all"
    _print_kind("spend", spent)
    chores = [_format_task(chore) for chore in status.chores]
    _print_kind("chores", *(chores or ["none: they are turned off, or the log is in memory"]))


def _print_kind(name: str, *lines: str) -> None:
    print_text(name, bold=True)
    for line in lines:
        print_text(f"  {line}")


def _due_lines(status: IdleStatus) -> Iterator[str]:
    if status.due:
        yield format_count(status.due, "session")
    elif status.next_due:
        wait = _format_span(status.at, status.next_due)
        yield f"none now; the next in {wait}, at {_format_time(status.next_due)}"
    else:
        yield "none, and none before a session has new activity"
    if status.due and status.held_back and status.held_back_until:
        yield f"nothing is begun until {_format_time(status.held_back_until)}: {status.held_back}"
    for due in status.due_sessions:
        yield _format_due(due, status.at)
    yield from _more_lines(status.due, len(status.due_sessions))


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
    by = f" by {one.summarizer}" if one.summarizer else ""
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
    """Return the rounded time between two moments: `45 s`, `4 min`, `3 h` or `2 days`."""
    seconds = (until - since).total_seconds()
    for least, length, unit in ((172_800, 86_400, "days"), (7_200, 3_600, "h"), (120, 60, "min")):
        if seconds >= least:
            return f"{seconds / length:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"
