"""Implements `idle`: works in idle hours, or shows the state of that work."""

import json
import logging
import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NoReturn

import typer

from ....domain.errors import InvalidSettingError
from ...runtime.idle.current_status import get_idle_status
from ...runtime.idle.notice_counts import WorkerRun
from ..command_line.options import flag, option
from ..command_line.printing import print_json
from ..command_line.sessions import find_call_database, list_all, open_call_store
from ..command_line.verbs import DATABASE_VARIABLE, Invocation
from .idle_status import print_idle_run, print_idle_status, print_left_sessions

SUMMED_COUNTS = (
    "done",
    "passed_over",
    "failed",
    "lost",
    "chores_done",
    "chores_failed",
    "left_running",
)


def idle(
    call: Invocation,
    *,
    status: bool = flag("--status", "Say how the work stands, and do nothing."),
    last: int = option("--last", "How many of each kind --status names.", 5, min=1, max=1_000),
    once: bool = flag("--once", "Do what is due now, and end; 1 if anything failed."),
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
    with _set_environment(given):
        if status:
            _print_status(call, last)
            return
        from ...runtime.idle.worker_log import log_to_stderr  # noqa: PLC0415 - `--status` is fast

        with log_to_stderr(
            log, logging.DEBUG if verbose else logging.WARNING if quiet else logging.INFO
        ):
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


def _print_status(call: Invocation, last: int) -> None:
    with open_call_store(call) as store:
        found = get_idle_status(store, last=last)
    if call.as_json:
        print_json(found.to_json())
    else:
        print_idle_status(found)


def _run_worker(
    call: Invocation, health: Path | None, grace: float, parent: int | None, *, is_once: bool
) -> WorkerRun:
    # `--status` need not load APScheduler.
    from ...runtime.idle.foreground_worker import ForegroundWorker  # noqa: PLC0415
    from ...runtime.idle.single_run import SingleRun  # noqa: PLC0415
    from ...runtime.idle.worker_log import WorkerLog  # noqa: PLC0415

    with open_call_store(call) as store:
        if is_once:
            ended = SingleRun(store, listeners=[WorkerLog()], grace_s=grace).run()
        else:
            ended = ForegroundWorker(
                store, listeners=[WorkerLog()], health=health, grace_s=grace, parent=parent
            ).run()
        if ended.left_running:
            # Closing would wait for work that never ends.
            _print_run(call, _run_to_json(ended))
            _exit(1)
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
    from ...runtime.idle.idle_pool import IdlePool  # noqa: PLC0415 - as above

    # Report errors once, before workers start.
    with open_call_store(call) as store:
        store.settings  # noqa: B018 - load and validate them now
        store.read_models  # noqa: B018 - create them now
    if call.settings_file is not None:
        words += ["--settings", call.settings_file]
    words += ["--parent", str(os.getpid())]
    # An address may hold a password, which process lists would show.
    environ = {**os.environ, DATABASE_VARIABLE: find_call_database(call)}
    pool = IdlePool(
        words, environ, processes=processes, grace_s=grace, health=health, is_once=is_once
    )
    code = pool.run()
    left = _count_session_states(call) if is_once else {}
    document: dict[str, Any] = {
        "workers": [worker for said in pool.said for worker in said["workers"]],
        **{name: sum(said[name] for said in pool.said) for name in SUMMED_COUNTS},
        "trouble": next((said["trouble"] for said in pool.said if said["trouble"]), None),
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
    else:
        print_idle_run(document)
        print_left_sessions(document.get("left_alone", {}))


def _count_session_states(call: Invocation) -> dict[str, int]:
    """Return the number of sessions in each state after a run."""
    with open_call_store(call) as store:
        spaces = store.settings.idle.namespaces
        listed = list_all(store, None)
    return Counter(
        one["idle"] for one in listed if one["idle"] and (not spaces or one["namespace"] in spaces)
    )


def _exit(code: int) -> NoReturn:
    """Exit without waiting for unfinished summaries, whose leases expire."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


@contextmanager
def _set_environment(options: Mapping[str, object]) -> Iterator[None]:
    """Set options as environment variables, so that reloaded settings keep them."""
    given = {name: str(value) for name, value in options.items() if value is not None}
    before = {name: os.environ.get(name) for name in given}
    os.environ.update(given)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
