"""Runs a program of the user's with input and time limit, and ends it with all of its children."""

import asyncio
import os
import signal
from collections.abc import Sequence
from contextlib import suppress

from ...domain.summaries.clean_text import fold_lines

_LAST_ERRORS = 4_096
_LAST_WORDS = 200
_STDERR = 2


async def run_program(
    argv: Sequence[str], given: bytes, *, max_output: int, cwd: str | None = None
) -> "ProgramRun":
    """Start the program without a shell, write to its standard input, and wait for its end.

    A program that writes more than `max_output` bytes is killed. Raises OSError or ValueError if it
    cannot be started.
    """
    loop = asyncio.get_running_loop()
    transport, run = await loop.subprocess_exec(
        lambda: ProgramRun(loop, max_output), *argv, cwd=cwd, start_new_session=True
    )
    try:
        stdin = transport.get_pipe_transport(0)
        assert isinstance(stdin, asyncio.WriteTransport)
        stdin.write(given)
        stdin.write_eof()
        await asyncio.shield(run.finished)
    finally:
        run.kill()
        transport.close()
        await run.finished
    status = transport.get_returncode()
    assert status is not None
    run.status = status
    return run


class ProgramRun(asyncio.SubprocessProtocol):
    """A program's output, and the end of the program and its pipes.

    It runs in its own process group, so that it ends with all of its children.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, max_output: int) -> None:
        self._max_output = max_output
        self.finished: asyncio.Future[None] = loop.create_future()
        self.status = 0
        """Negative if a signal killed it."""
        self.output = bytearray()
        self.errors = bytearray()
        self.is_too_long = False
        self._pid: int | None = None

    def describe_end(self) -> str:
        """Return how it ended, with the last line of its errors."""
        if self.status < 0:
            with suppress(ValueError):  # a signal without a name
                return f"was killed by {signal.Signals(-self.status).name}"
            return f"was killed by signal {-self.status}"
        lines = [fold_lines(line) for line in self.errors.decode("utf-8", "replace").splitlines()]
        last = next((line[:_LAST_WORDS] for line in reversed(lines) if line), "")
        return f"ended with status {self.status}" + (f": {last}" if last else "")

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.SubprocessTransport)
        self._pid = transport.get_pid()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == _STDERR:
            self.errors += data
            del self.errors[:-_LAST_ERRORS]
        elif len(self.output) + len(data) > self._max_output:
            self.is_too_long = True
            self.kill()
        else:
            self.output += data

    def process_exited(self) -> None:
        # Remaining children would keep its pipes open.
        self.kill()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's name
        if not self.finished.done():
            self.finished.set_result(None)

    def kill(self) -> None:
        if self._pid is not None and not self.finished.done():
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._pid, signal.SIGKILL)
