"""Idle workers as processes: told what to do, heard, killed and stopped."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Condition, Thread
from typing import Any

from processes import Killed

WORKER = Path(__file__).parent / "idle_worker.py"
GUARD_S = 90.0
Said = dict[str, Any]


@dataclass
class Worker:
    """One process."""

    name: str
    process: subprocess.Popen[str]
    errors: Path
    said: list[Said] = field(default_factory=list)

    def tell(self, word: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        self.process.kill()
        assert self.process.wait(GUARD_S) == -signal.SIGKILL
        Killed.count += 1

    def about(self, about: str) -> list[Said]:
        return [said for said in list(self.said) if said["about"] == about]


class Workers:
    """All workers of a test on one database."""

    def __init__(self, address: str, state: Path) -> None:
        self.address = address
        self.all: list[Worker] = []
        self._state = state
        self._heard = Condition()
        self._listeners: list[Thread] = []

    def start(self, name: str, *, holds: int = 0, **rules: Any) -> Worker:
        self._state.mkdir(exist_ok=True)
        errors = self._state / f"{name}.err"
        with errors.open("w") as file:
            process = subprocess.Popen(
                [sys.executable, WORKER, self.address, name, json.dumps(rules), str(holds)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
                env={**os.environ, "XDG_STATE_HOME": str(self._state)},
            )
        worker = Worker(name, process, errors)
        self.all.append(worker)
        listener = Thread(target=self._hear, args=(worker,), daemon=True)
        listener.start()
        self._listeners.append(listener)
        return worker

    def about(self, about: str) -> list[Said]:
        return [said for worker in self.all for said in worker.about(about)]

    def wait_until(self, happened: Callable[[], bool]) -> None:
        """Look again whenever a worker says something."""
        with self._heard:
            assert self._heard.wait_for(happened, GUARD_S), [
                (worker.name, worker.process.poll(), worker.said[-3:], worker.errors.read_text())
                for worker in self.all
            ]

    def stop(self) -> None:
        """All that still run end, and end well."""
        running = [worker for worker in self.all if worker.process.poll() is None]
        for worker in running:
            worker.tell("stop")
        for worker in running:
            code = worker.process.wait(GUARD_S)
            errors = worker.errors.read_text()
            assert (code, errors) == (0, ""), (code, errors, worker.name, worker.said[-3:])
        for listener in self._listeners:
            listener.join(GUARD_S)

    def _hear(self, worker: Worker) -> None:
        assert worker.process.stdout
        for line in worker.process.stdout:
            with self._heard:
                worker.said.append(json.loads(line))
                self._heard.notify_all()
        with self._heard:
            self._heard.notify_all()


@contextmanager
def workers_on(address: str, state: Path) -> Iterator[Workers]:
    """Workers for as long as a test needs them; none outlives it."""
    workers = Workers(address, state)
    try:
        yield workers
    finally:
        for worker in workers.all:
            if worker.process.poll() is None:
                worker.process.kill()
            worker.process.communicate()
