"""Runs a program in its own process group, so that it ends with all of its children."""

import asyncio
import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from ....domain.summaries.extraction.clean_text import fold_lines

MAX_OUTPUT_BYTES_KEPT = 1_000_000
"""A program that writes more is killed, since that is no summary."""
_LAST_ERRORS = 4_096
_LAST_WORDS = 200
_STDERR = 2


@dataclass(frozen=True, slots=True)
class ProgramResult:
    """How a program ended, and its output."""

    status: int
    """Negative if a signal killed it."""
    output: bytes
    errors: bytes
    is_too_long: bool

    @property
    def last_error_line(self) -> str:
        lines = [fold_lines(line) for line in self.errors.decode("utf-8", "replace").splitlines()]
        return next((line[:_LAST_WORDS] for line in reversed(lines) if line), "")


async def run_program(argv: Sequence[str], given: bytes, cwd: str | None = None) -> ProgramResult:
    """Start the program, write to its standard input, and wait for its end.

    Raises OSError if it cannot be started.
    """
    loop = asyncio.get_running_loop()
    transport, running = await loop.subprocess_exec(
        lambda: _ProgramProtocol(loop), *argv, cwd=cwd, start_new_session=True
    )
    try:
        stdin = transport.get_pipe_transport(0)
        assert isinstance(stdin, asyncio.WriteTransport)
        stdin.write(given)
        stdin.write_eof()
        await asyncio.shield(running.finished)
    finally:
        running.kill()
        transport.close()
        await running.finished
    status = transport.get_returncode()
    assert status is not None
    return ProgramResult(status, bytes(running.output), bytes(running.errors), running.is_too_long)


class _ProgramProtocol(asyncio.SubprocessProtocol):
    """Collects a program's output, and waits for the end of the program and its pipes."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.finished: asyncio.Future[None] = loop.create_future()
        self.output = bytearray()
        self.errors = bytearray()
        self.is_too_long = False
        self._pid: int | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.SubprocessTransport)
        self._pid = transport.get_pid()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == _STDERR:
            self.errors += data
            del self.errors[:-_LAST_ERRORS]
        elif len(self.output) + len(data) > MAX_OUTPUT_BYTES_KEPT:
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
