"""Several workers on one machine, a process each: started, watched, and started again."""

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

from .health import BEAT_S, STUCK_AFTER_S, Health, HealthFile, Stillness
from .orders import STOPS, Orders
from .service_manager import tell_service_manager

logger = logging.getLogger("cutbank.idle")

FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 60.0
"""Before a process that died is started again: twice as long each time that it dies young."""
GROWN_UP_S = 60.0
"""Whoever lived so long did not die of how it was started."""
LAST_WORDS_S = 5.0
"""Beyond the grace time, until a process that was told to stop is killed."""

PROGRAM = (
    *(sys.executable, "-P", "-c"),
    "from cutbank.adapters.interfaces.command_line.cli import main; main()",
)
"""How this program is started again, whatever it is called by."""


@dataclass
class Member:
    """One of the workers, whichever process it is now."""

    number: int
    health: Path
    process: "subprocess.Popen[bytes] | None" = None
    began: float = 0.0
    pause_s: float = 0.0
    again_at: float = 0.0
    restarts: int = 0
    code: int | None = None
    """What it ended with, where it is not to be started again."""
    stillness: Stillness = field(init=False)

    def begins(self, process: "subprocess.Popen[bytes]") -> None:
        """It is this process from now on."""
        self.process = process
        self.began = monotonic()
        self.stillness = Stillness(self._written_at)

    def says(self) -> dict[str, Any]:
        """What its health file says; nothing before it is written."""
        with suppress(OSError, ValueError):
            said: dict[str, Any] = json.loads(self.health.read_text(encoding="utf-8"))
            return said
        return {}

    def _written_at(self) -> int:
        with suppress(OSError):
            return self.health.stat().st_mtime_ns
        return 0


class Crew:
    """Processes that each run one worker, until a signal says to stop."""

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
        """`words` are the command line of each worker; with `is_once` none is started again."""
        self.words = [*PROGRAM, *words]
        self.environ = environ
        self.processes = processes
        self.grace_s = grace_s
        self.file = HealthFile(health) if health else None
        self.is_once = is_once
        self.orders = Orders()
        self.orders.at_once = self._at_once  # type: ignore[method-assign]
        self.members: list[Member] = []
        self.said: list[dict[str, Any]] = []
        """What each process said on standard output when it ended in good order."""

    def work(self) -> int:
        """Work until told to stop; the exit code of the worst of them."""
        with (
            TemporaryDirectory(prefix="cutbank-idle-") as folder,
            self.orders.heard(signal.SIGHUP, signal.SIGCHLD),
        ):
            for number in range(1, self.processes + 1):
                self.members.append(Member(number, Path(folder) / f"{number}.json"))
            health = Health(self.file, {"processes": self.processes}, Stillness(monotonic))
            try:
                self._watch(health)
            finally:
                tell_service_manager("STOPPING=1")
                self._stop()
                health.end()
        return max((member.code or 0 for member in self.members), default=0)

    def _watch(self, health: Health) -> None:
        is_ready = False
        while True:
            for member in self.members:
                self._see_to(member)
            if self.is_once and all(member.code is not None for member in self.members):
                return
            said = [member.says() for member in self.members]
            if not is_ready and all(said):
                tell_service_manager("READY=1")
                is_ready = True
            restarts = sum(member.restarts for member in self.members)
            health.beat({"restarts": restarts, "workers": said})
            match self.orders.next(BEAT_S if is_ready else BEAT_S / 10):
                case signal.SIGHUP:
                    self._tell(signal.SIGHUP)
                case number if number in STOPS:
                    return

    def _see_to(self, member: Member) -> None:
        """Start it, or bury it, or kill it where it is stuck."""
        process, now = member.process, monotonic()
        if process is None:
            if member.code is None and now >= member.again_at:
                self._start(member)
            return
        if process.poll() is None:
            if member.stillness.lasts() > 2 * STUCK_AFTER_S and not self.is_once:
                logger.error("worker process %d is stuck, and is killed", process.pid)
                process.kill()
            return
        self._bury(member, process)
        if self.is_once:
            member.code = process.returncode
            return
        young = now - member.began < GROWN_UP_S
        member.pause_s = min(max(2 * member.pause_s, FIRST_PAUSE_S), LONGEST_PAUSE_S)
        member.pause_s = member.pause_s if young else FIRST_PAUSE_S
        member.again_at = now + member.pause_s
        member.restarts += 1
        logger.warning(
            "worker process %d ended with %d; it is started again in %g s",
            *(process.pid, process.returncode, member.pause_s),
        )

    def _start(self, member: Member) -> None:
        # In a group of its own: what is typed at the terminal is for this process to pass on.
        process = subprocess.Popen(  # noqa: S603 - it is this program
            self.words if self.is_once else [*self.words, "--health", str(member.health)],
            env=dict(self.environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            process_group=0,
        )
        member.begins(process)
        logger.debug("worker process %d is started", process.pid)

    def _bury(self, member: Member, process: "subprocess.Popen[bytes]") -> None:
        output, _ = process.communicate()
        with suppress(ValueError):
            self.said.append(json.loads(output))
        member.process = None
        member.health.unlink(missing_ok=True)

    def _tell(self, number: signal.Signals) -> None:
        for member in self.members:
            if member.process is not None:
                member.process.send_signal(number)

    def _stop(self) -> None:
        self._tell(signal.SIGTERM)
        deadline = monotonic() + self.grace_s + LAST_WORDS_S
        for member in self.members:
            if (process := member.process) is None:
                continue
            try:
                process.wait(max(deadline - monotonic(), 0.1))
            except subprocess.TimeoutExpired:
                logger.error("worker process %d did not stop in time, and is killed", process.pid)  # noqa: TRY400 - a time limit has no traceback worth telling
                process.kill()
            self._bury(member, process)
            member.code = process.returncode

    def _at_once(self, number: int) -> None:
        for member in self.members:
            if member.process is not None:
                member.process.kill()
        Orders.at_once(self.orders, number)
