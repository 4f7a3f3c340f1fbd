"""Runs several workers on one machine, one process each, and restarts those that die."""

import json
import logging
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

from .health import BEAT_INTERVAL_S, STUCK_AFTER_S, Health, HealthFile, StallTimer
from .service_manager import notify_service_manager
from .stop_signals import STOP_SIGNALS, SignalQueue

logger = logging.getLogger("cutbank.idle")

FIRST_PAUSE_S = 1.0
_MAX_PAUSE_S = 60.0
"""The pause before a dead process is restarted; it doubles each time the process dies early."""
STABLE_AFTER_S = 60.0
"""After this uptime, a process's death is not blamed on its start."""
_STOP_TIMEOUT_S = 5.0
"""How long after the grace time a stopping process is killed."""

IDLE_WORKER_COMMAND = (
    *(sys.executable, "-P", "-c"),
    "from cutbank.adapters.interfaces.command_line.cli import main; main()",
)
"""The command that starts this program again, whatever its name."""


@dataclass
class PoolWorker:
    """One of the workers, as its current process."""

    number: int
    health: Path
    process: "subprocess.Popen[bytes] | None" = None
    started_at: float = 0.0
    pause_s: float = 0.0
    restart_at: float = 0.0
    restarts: int = 0
    exit_code: int | None = None
    """The final exit code, if it is not to be restarted."""
    stall_timer: StallTimer = field(init=False)

    def set_process(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process
        self.started_at = monotonic()
        self.stall_timer = StallTimer(self._health_time)

    def read_health(self) -> dict[str, Any]:
        """Return the content of its health file; empty before it is written."""
        with suppress(OSError, ValueError):
            said: dict[str, Any] = json.loads(self.health.read_text(encoding="utf-8"))
            return said
        return {}

    def _health_time(self) -> int:
        with suppress(OSError):
            return self.health.stat().st_mtime_ns
        return 0


class IdlePool:
    """Runs one worker in each of several processes, until a signal stops them."""

    def __init__(
        self,
        words: Sequence[str],
        environ: Mapping[str, str],
        *,
        processes: int,
        grace_s: float,
        health: Path | None = None,
        is_once: bool = False,
    ) -> None:
        """`words` are each worker's command line; with `is_once` none is restarted."""
        self.words = [*IDLE_WORKER_COMMAND, *words]
        self.environ = environ
        self.processes = processes
        self.grace_s = grace_s
        self.file = HealthFile(health) if health else None
        self.is_once = is_once
        self.orders = SignalQueue()
        self.orders.exit_now = self._kill_all  # type: ignore[method-assign]
        self.members: list[PoolWorker] = []
        self.said: list[dict[str, Any]] = []
        """The standard output of each process that ended normally."""

    def run(self) -> int:
        """Work until stopped; return the worst exit code."""
        with (
            TemporaryDirectory(prefix="cutbank-idle-") as folder,
            self.orders.listen(signal.SIGHUP, signal.SIGCHLD),
        ):
            for number in range(1, self.processes + 1):
                self.members.append(PoolWorker(number, Path(folder) / f"{number}.json"))
            health = Health(self.file, {"processes": self.processes}, StallTimer(monotonic))
            try:
                self._watch(health)
            finally:
                notify_service_manager("STOPPING=1")
                self._stop()
                health.end()
        return max((member.exit_code or 0 for member in self.members), default=0)

    def _watch(self, health: Health) -> None:
        is_ready = False
        while True:
            for member in self.members:
                self._check_worker(member)
            if self.is_once and all(member.exit_code is not None for member in self.members):
                return
            said = [member.read_health() for member in self.members]
            if not is_ready and all(said):
                notify_service_manager("READY=1")
                is_ready = True
            restarts = sum(member.restarts for member in self.members)
            health.beat({"restarts": restarts, "workers": said})
            match self.orders.wait_next(BEAT_INTERVAL_S if is_ready else BEAT_INTERVAL_S / 10):
                case signal.SIGHUP:
                    self._signal_all(signal.SIGHUP)
                case number if number in STOP_SIGNALS:
                    return

    def _check_worker(self, member: PoolWorker) -> None:
        """Start the worker, handle its exit, or kill it if it is stuck."""
        process, now = member.process, monotonic()
        if process is None:
            if member.exit_code is None and now >= member.restart_at:
                self._start(member)
            return
        if process.poll() is None:
            if member.stall_timer.measure_stall() > 2 * STUCK_AFTER_S and not self.is_once:
                logger.error("worker process %d is stuck, and is killed", process.pid)
                process.kill()
            return
        self._handle_exit(member, process)
        if self.is_once:
            member.exit_code = process.returncode
            return
        young = now - member.started_at < STABLE_AFTER_S
        member.pause_s = min(max(2 * member.pause_s, FIRST_PAUSE_S), _MAX_PAUSE_S)
        member.pause_s = member.pause_s if young else FIRST_PAUSE_S
        member.restart_at = now + member.pause_s
        member.restarts += 1
        logger.warning(
            "worker process %d ended with %d; it is started again in %g s",
            *(process.pid, process.returncode, member.pause_s),
        )

    def _start(self, member: PoolWorker) -> None:
        # In its own process group: only this process gets the terminal's signals.
        process = subprocess.Popen(  # noqa: S603 - it is this program
            self.words if self.is_once else [*self.words, "--health", str(member.health)],
            env=dict(self.environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            process_group=0,
        )
        member.set_process(process)
        logger.debug("worker process %d is started", process.pid)

    def _handle_exit(self, member: PoolWorker, process: "subprocess.Popen[bytes]") -> None:
        output, _ = process.communicate()
        with suppress(ValueError):
            self.said.append(json.loads(output))
        member.process = None
        member.health.unlink(missing_ok=True)

    def _signal_all(self, number: signal.Signals) -> None:
        for member in self.members:
            if member.process is not None:
                member.process.send_signal(number)

    def _stop(self) -> None:
        self._signal_all(signal.SIGTERM)
        deadline = monotonic() + self.grace_s + _STOP_TIMEOUT_S
        for member in self.members:
            if (process := member.process) is None:
                continue
            try:
                process.wait(max(deadline - monotonic(), 0.1))
            except subprocess.TimeoutExpired:
                logger.error("worker process %d did not stop in time, and is killed", process.pid)  # noqa: TRY400 - as expected
                process.kill()
            self._handle_exit(member, process)
            member.exit_code = process.returncode

    def _kill_all(self, number: int) -> None:
        for member in self.members:
            if member.process is not None:
                member.process.kill()
        SignalQueue.exit_now(self.orders, number)
