"""`cutbank idle` as a real process, which is waited for by what it says."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import Any

from cutbank.adapters.runtime.idle.notices import NoticeKind

PROGRAM = [sys.executable, "-P", "-m", "cutbank"]
AT_ONCE = {
    "CUTBANK_IDLE_TIME": "0",
    "CUTBANK_IDLE_LEAST_UTILIZATION": "0.02",
    "CUTBANK_COMPACTION_SETTINGS__KEEP_TOKENS": "4000",
    "CUTBANK_PINS_FIRST_PROMPT": "false",
}
"""Sessions are due as soon as somebody looks."""
LONG = 120.0
"""Seconds after which a process that does not do what it should is killed, and the test fails."""


class IdleProcess:
    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self.log: list[dict[str, Any]] = []

    def until(self, about: NoticeKind) -> dict[str, Any]:
        assert self.process.stderr
        for line in self.process.stderr:
            self.log.append(json.loads(line))
            if self.log[-1].get("about") == about:
                return self.log[-1]
        raise AssertionError(f"it ended without a word of that: {self.log}")

    def ended(self) -> tuple[int, dict[str, Any] | None]:
        out, err = self.process.communicate()
        self.log += map(json.loads, err.splitlines())
        return self.process.returncode, json.loads(out) if out else None


@contextmanager
def idling(
    database: str, *words: str | Path, env: Mapping[str, str] | None = None
) -> Iterator[IdleProcess]:
    process = subprocess.Popen(
        [*PROGRAM, "idle", "--json", "--log", "json", "--verbose", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **AT_ONCE, "CUTBANK_DB": database, **(env or {})},
    )
    guard = Timer(LONG, process.kill)
    guard.start()
    try:
        yield IdleProcess(process)
    finally:
        guard.cancel()
        process.kill()
        process.communicate()
