"""Implements `idle`: works in idle hours, or shows the state of that work."""

import json
import logging
import os
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import typer

from ....domain.errors import InvalidSettingError
from ....projections.read_models.session_row import IdleState
from ...runtime.idle.idle_status import IdleStatus, get_idle_status
from ...runtime.idle.notices import WorkerRun
from ..command_line.printing import (
    format_count,
    format_time,
    print_json,
    print_rows,
    print_text,
)
from ..command_line.sessions import list_all, open_call_store
from ..command_line.verbs import Invocation, flag, option

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
    # The settings are read from the environment when the store is opened.
    os.environ.update({name: str(value) for name, value in given.items() if value is not None})
    if status:
        with open_call_store(call) as store:
            found = get_idle_status(store, last=last)
        if call.as_json:
            print_json(found.to_json())
        else:
            _print_status(found)
        return
    # Slow imports that `--status` does not need.
    from ...runtime.idle.foreground import run_once, run_until_stopped  # noqa: PLC0415 - start-up time
    from ...runtime.idle.notices import log_notice, log_to_stderr  # noqa: PLC0415 - start-up time

    level = logging.DEBUG if verbose else logging.WARNING if quiet else logging.INFO
    with log_to_stderr(log, level):
        with open_call_store(call) as store:
            if once:
                ended = run_once(store, listeners=[log_notice], grace_s=grace)
            else:
                ended = run_until_stopped(
                    store, listeners=[log_notice], health=health, grace_s=grace
                )
            if ended.left_running:
                _print_run(call, ended, {})
                # Closing the store would wait for work that never ends; its leases expire.
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(1)
        _print_run(call, ended, _count_session_states(call) if once else {})
    raise typer.Exit(0 if ended.has_succeeded or not once else 1)


def _print_run(call: Invocation, ended: WorkerRun, left_alone: Mapping[str, int]) -> None:
    counts = {**ended.counts, "left_running": ended.left_running}
    if call.as_json:
        about = {"workers": [ended.worker], "trouble": ended.trouble, "left_alone": left_alone}
        print_json(counts | about)
        return
    done = [f"{counts[name]:,} {what}" for name, what in RUN_COUNTS.items() if counts[name]]
    trouble = f"; {ended.trouble}" if ended.trouble else ""
    print_text(f"{', '.join(done) or 'nothing was to be done'}{trouble}")
    for state, why in LEFT_REASONS.items():
        if count := left_alone.get(state):
            print_text(f"  {format_count(count, 'session')}: {why}")


def _count_session_states(call: Invocation) -> dict[str, int]:
    with open_call_store(call) as store:
        spaces = store.settings.idle.namespaces
        listed = list_all(store, None)
    return Counter(
        one["idle"] for one in listed if one["idle"] and (not spaces or one["namespace"] in spaces)
    )


def _print_status(status: IdleStatus) -> None:
    """Print a line for each kind of work, even if there is none, and a table of its sessions."""
    due = format_count(status.due, "session")
    if status.held_back and status.held_back_until:
        due += f"; nothing is begun until {format_time(status.held_back_until)}: {status.held_back}"
    elif not status.due and status.next_due:
        due += f"; the next at {format_time(status.next_due)}"
    allowed = f" of ${status.spend_per_hour:,.2f}" if status.spend_per_hour is not None else ""
    spend = f"${status.spent_in_hour:,.4f}{allowed} in this hour; ${status.spent:,.4f} in all"
    done = f"{status.done:,}, of which {status.done_in_day:,} in 24 hours"
    failed = f"{status.failing:,}, of which {status.given_up:,} wait for new activity"
    no_chores = "" if status.chores else "none: they are turned off, or the log is in memory"
    parts = {
        "due": (due, status.due_sessions),
        "running": (format_count(len(status.running), "session"), status.running),
        "prepared": (f"{status.prepared:,} wait for the threshold", status.prepared_boundaries),
        "done": (done, status.done_lately),
        "failed": (failed, status.failed_lately),
        "spend": (spend, []),
        "chores": (no_chores, status.chores),
    }
    for name, (line, rows) in parts.items():
        print_text(f"{name}: {line}".removesuffix(": "), bold=True)
        print_rows(rows)
