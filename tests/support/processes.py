"""Real processes for tests: started together, left alone, or killed."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

SERVER = Path(__file__).parent / "fork_server.py"
Said = list[list[str]]


@dataclass(frozen=True)
class Ended:
    """What processes said until their end, and how that was: an exit code, or minus a signal."""

    said: Said
    codes: list[int]

    def told(self, word: str) -> Said:
        return [rest for first, *rest in self.said if first == word]

    @property
    def was_killed(self) -> bool:
        return self.codes == [-signal.SIGKILL]


class Killed:
    """How many processes of this run were killed, which its summary tells."""

    count = 0


class Processes:
    """Copies of one loaded process, each of which does one thing from `victims`."""

    def __init__(self, orders: IO[str], answers: IO[str]) -> None:
        self._orders, self._answers = orders, answers

    def run(self, call: str, *arguments: object) -> Ended:
        """One process that is left alone, and must end well."""
        ended = self._order(call, arguments)
        assert (ended.codes, ended.told("error")) == ([0], []), ended
        return ended

    def run_together(self, times: int, call: str, *arguments: object) -> Ended:
        """So many at once; the argument NUMBER is each one's own. All must end well."""
        ended = self._order(call, arguments, times=times)
        assert (set(ended.codes), ended.told("error")) == ({0}, []), ended
        return ended

    def left_alone(self, call: str, *arguments: object) -> Ended:
        return self._order(call, arguments)

    def killed_after(self, lines: int, lag: int, call: str, *arguments: object) -> Ended:
        """Kill it when it has said so many lines.

        `lag` is how far is counted before the kill, so that it comes at any moment.
        """
        return self._order(call, arguments, lines=lines, lag=lag)

    def killed_at(self, pattern: str, nth: int, call: str, *arguments: object) -> Ended:
        return self._order(call, arguments, kill={"pattern": pattern, "nth": nth})

    def _order(
        self,
        call: str,
        arguments: tuple[object, ...],
        *,
        times: int = 1,
        kill: Mapping[str, object] | None = None,
        lines: int | None = None,
        lag: int = 0,
    ) -> Ended:
        words = [str(word) if isinstance(word, Path) else word for word in arguments]
        order = {"call": call, "arguments": words, "times": times, "kill": kill}
        print(json.dumps(order), file=self._orders, flush=True)
        said: Said = []
        workers: list[int] = []
        codes: list[int] = []
        is_killed = lines is None
        while len(codes) < times:
            first, *rest = self._answers.readline().split() or ["the server ended"]
            match first:
                case "pid":
                    workers = [int(word) for word in rest]
                case "gone":
                    codes.append(int(rest[0]))
                    Killed.count += codes[-1] == -signal.SIGKILL
                case "the server ended":
                    raise RuntimeError(first)
                case _:
                    said.append([first, *rest])
            if workers and not is_killed and len(said) >= (lines or 0):
                is_killed = True
                for _ in range(lag):
                    pass
                with suppress(ProcessLookupError):
                    os.kill(workers[0], signal.SIGKILL)
        return Ended(said, codes)


@contextmanager
def processes(env: Mapping[str, str] | None = None) -> Iterator[Processes]:
    """A server of copies for as long as a test needs them; `env` is added to the environment."""
    server = subprocess.Popen(
        [sys.executable, SERVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **(env or {})},
    )
    assert server.stdin
    assert server.stdout
    try:
        yield Processes(server.stdin, server.stdout)
    finally:
        server.kill()
        server.communicate()
