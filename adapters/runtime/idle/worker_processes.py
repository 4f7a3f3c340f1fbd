"""Runs several workers on one machine, one process each, which end together."""

import json
import logging
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

from .foreground import RESTART_SIGNALS, SignalQueue, restart_program
from .health import BEAT_INTERVAL_S, Health, notify_service_manager

logger = logging.getLogger("cutbank.idle")

_STOP_TIMEOUT_S = 5.0
"""How long after the grace time a stopping process is killed."""

WORKER_COMMAND = (
    *(sys.executable, "-P", "-c"),
    "from cutbank.adapters.interfaces.command_line.cli import main; main()",
)
"""The command that starts this program again, whatever its name."""

Processes = Sequence["subprocess.Popen[bytes]"]


def run_worker_processes(
    words: Sequence[str],
    environ: Mapping[str, str],
    *,
    processes: int,
    grace_s: float,
    health: Path | None = None,
    is_once: bool = False,
) -> tuple[int, list[dict[str, Any]]]:
    """Run workers until a signal ends them, or one of them ends; with `is_once`, until all end.

    `words` are each worker's command line. Returns the worst exit code, and the JSON document of
    each worker that ended normally. A service manager has to start them again if one fails.
    """
    running: list[subprocess.Popen[bytes]] = []

    def kill_all() -> None:
        for process in running:
            process.kill()

    signals = SignalQueue(before_exit=kill_all)
    with (
        TemporaryDirectory(prefix="cutbank-idle-") as folder,
        signals.listen(signal.SIGCHLD, *(() if is_once else RESTART_SIGNALS)),
    ):
        files = [Path(folder) / f"{number}.json" for number in range(processes)]
        report = Health(health, {"processes": processes}, lambda: _find_oldest_time(files))
        try:
            for path in files:
                options = () if is_once else ("--health", str(path))
                running.append(_start([*WORKER_COMMAND, *words, *options], environ))
            if is_once:
                is_stopped = _wait_for_all(running, signals)
            else:
                is_stopped = _beat_until_one_ends(running, files, report, signals)
        finally:
            notify_service_manager("STOPPING=1")
            documents = _stop(running, grace_s)
            report.end()
    if signals.is_to_restart:
        restart_program()
    # A worker that was still starting has no handler for SIGTERM yet, and nothing to finish.
    unharmed = {0, -signal.SIGTERM} if is_stopped else {0}
    codes = [0 if one.returncode in unharmed else one.returncode for one in running]
    has_failed = not is_stopped and not is_once
    return max(*(1 if code < 0 else code for code in codes), has_failed), documents


def _start(command: Sequence[str], environ: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    # In its own process group: only this process gets the terminal's signals.
    return subprocess.Popen(  # noqa: S603 - it is this program
        command,
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        process_group=0,
    )


def _wait_for_all(running: Processes, signals: SignalQueue) -> bool:
    """Wait until all have ended; return True if a signal came first."""
    while any(process.poll() is None for process in running):
        if signals.is_told_to_end(BEAT_INTERVAL_S):
            return True
    return False


def _beat_until_one_ends(
    running: Processes, files: Sequence[Path], health: Health, signals: SignalQueue
) -> bool:
    """Report the workers' health until one has ended; return True if a signal came first."""
    is_ready = False
    while all(process.poll() is None for process in running):
        documents = [_read_document(path) for path in files]
        if not is_ready and all(documents):
            notify_service_manager("READY=1")
            is_ready = True
        health.beat({"workers": documents})
        if signals.is_told_to_end(BEAT_INTERVAL_S if is_ready else BEAT_INTERVAL_S / 10):
            return True
    ended = next(process for process in running if process.poll() is not None)
    logger.error(
        "worker process %d ended with %d: the others are stopped", ended.pid, ended.returncode
    )
    return False


def _read_document(path: Path) -> dict[str, Any]:
    """Return a worker's health file; empty before it is written."""
    with suppress(OSError, ValueError):
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return document
    return {}


def _find_oldest_time(files: Sequence[Path]) -> int:
    """Return when the oldest health file was written; it does not change if a worker is stuck."""
    with suppress(OSError):
        return min(path.stat().st_mtime_ns for path in files)
    return 0


def _stop(running: Processes, grace_s: float) -> list[dict[str, Any]]:
    """Stop what still runs; return the documents that the workers printed."""
    for process in running:
        process.send_signal(signal.SIGTERM)
    deadline = monotonic() + grace_s + _STOP_TIMEOUT_S
    documents: list[dict[str, Any]] = []
    for process in running:
        try:
            output, _ = process.communicate(timeout=max(deadline - monotonic(), 0.1))
        except subprocess.TimeoutExpired:
            logger.error("worker process %d did not stop in time, and is killed", process.pid)  # noqa: TRY400 - as expected
            process.kill()
            output, _ = process.communicate()
        with suppress(ValueError):
            documents.append(json.loads(output))
    return documents
