"""Implements `idle`: works in idle hours, or shows the state of that work."""

import json
import logging
import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn

import typer

from ....domain.errors import InvalidSettingError
from ...runtime.idle.idle_status import get_idle_status
from ...runtime.idle.notices import WorkerRun
from . import idle_lines, session_list
from .database import find_call_database, open_call_store
from .invocation import DATABASE_VARIABLE, Invocation
from .printing import print_json

_MAX_PROCESSES = 256
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
    status: Annotated[
        bool, typer.Option("--status", help="Say how the work stands, and do nothing.")
    ] = False,
    last: Annotated[
        int,
        typer.Option("--last", min=1, max=1_000, help="How many of each kind --status names."),
    ] = 5,
    once: Annotated[
        bool, typer.Option("--once", help="Do what is due now, and end; 1 if anything failed.")
    ] = False,
    processes: Annotated[
        int,
        typer.Option(
            "--processes", metavar="N", min=1, max=_MAX_PROCESSES, help="Workers at once."
        ),
    ] = 1,
    health: Annotated[
        Path | None,
        typer.Option("--health", metavar="FILE", help="Says every few seconds how it does."),
    ] = None,
    grace: Annotated[
        float,
        typer.Option("--grace", metavar="SECONDS", min=0, help="For what runs, when it is to end."),
    ] = 30.0,
    log: Annotated[
        Literal["text", "json"], typer.Option("--log", help="The form of lines on stderr.")
    ] = "text",
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Log each look and each beginning.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Log warnings only.")] = False,
    idle_time: Annotated[
        float | None,
        typer.Option(
            "--idle-time", metavar="SECONDS", min=0, help="For idle.time of the settings."
        ),
    ] = None,
    concurrency: Annotated[
        int | None,
        typer.Option("--concurrency", metavar="N", min=1, max=64, help="For idle.concurrency."),
    ] = None,
    namespace: Annotated[
        list[str] | None,
        typer.Option("--namespace", metavar="NAME", help="For idle.namespaces; may be repeated."),
    ] = None,
    parent: Annotated[int | None, typer.Option("--parent", hidden=True)] = None,
) -> None:
    """Compact sessions that are at rest, until told to stop."""
    if once and health is not None:
        raise InvalidSettingError("--once ends by itself: --health is for a worker that goes on")
    named = namespace or ([call.named] if call.named else [])
    said = {
        "CUTBANK_IDLE_TIME": idle_time,
        "CUTBANK_IDLE_CONCURRENCY": concurrency,
        "CUTBANK_IDLE_NAMESPACES": json.dumps(named) if named else None,
    }
    with _set_environment(said):
        if status:
            _print_status(call, last)
            return
        with _configure_logging(log, verbose=verbose, quiet=quiet):
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
        idle_lines.print_idle_status(found)


def _run_worker(
    call: Invocation, health: Path | None, grace: float, parent: int | None, *, is_once: bool
) -> WorkerRun:
    # `--status` need not load APScheduler.
    from ...runtime.idle.foreground import (  # noqa: PLC0415
        restart_program,
        run_once,
        run_until_stopped,
    )
    from ...runtime.idle.worker_log import WorkerLog  # noqa: PLC0415

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
            _exit(1)
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
    else:
        idle_lines.print_idle_run(document)
        idle_lines.print_left_sessions(document.get("left_alone", {}))


def _count_session_states(call: Invocation) -> dict[str, int]:
    """Return the number of sessions in each state after a run."""
    with open_call_store(call) as store:
        spaces = store.settings.idle.namespaces
        listed = session_list.list_all(store, None)
    return Counter(
        one["idle"] for one in listed if one["idle"] and (not spaces or one["namespace"] in spaces)
    )


def _configure_logging(
    form: Literal["text", "json"], *, verbose: bool, quiet: bool
) -> AbstractContextManager[None]:
    from ...runtime.idle.worker_log import log_to_stderr  # noqa: PLC0415 - as above

    level = logging.DEBUG if verbose else logging.WARNING if quiet else logging.INFO
    return log_to_stderr(form, level)


def _exit(code: int) -> NoReturn:
    """Exit without waiting for unfinished summaries, whose leases expire."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


@contextmanager
def _set_environment(said: Mapping[str, object]) -> Iterator[None]:
    """Set options as environment variables, which other worker processes inherit."""
    given = {name: str(value) for name, value in said.items() if value is not None}
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
