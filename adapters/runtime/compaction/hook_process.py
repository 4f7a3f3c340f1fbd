"""Runs a program once with some input, within a time limit."""

import os
import selectors
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import IO

MAX_OUTPUT_BYTES = 64 * 1024
"""The limit of what is read of its output and of its errors, each."""
PIECE_BYTES = 64 * 1024
POLL_INTERVAL_S = 0.05
"""How often to check whether a program has ended whose children keep its output open."""


class HookProcessError(Exception):
    """A failure of a program; the message is meant to follow the program's name."""


@dataclass(frozen=True, slots=True)
class ProcessOutput:
    """A program's exit code and output."""

    code: int
    output: str
    errors: str


@dataclass(slots=True, eq=False)
class _OutputBuffer:
    content: bytearray = field(default_factory=bytearray)
    was_cut: bool = False

    def add(self, piece: bytes) -> None:
        room = MAX_OUTPUT_BYTES - len(self.content)
        self.was_cut = self.was_cut or len(piece) > room
        self.content += piece[:room]

    @property
    def text(self) -> str:
        return self.content.decode("utf-8", "replace").strip()


@dataclass(frozen=True, slots=True)
class HookProcess:
    """A program with its arguments, run without a shell."""

    command: tuple[str, ...]
    time_limit_s: float

    def run(self, words: bytes) -> ProcessOutput:
        """Start the program, write `words` to its input, and wait for its end.

        Raises HookProcessError if it cannot be started, takes too long or writes too much.
        """
        output, errors = _OutputBuffer(), _OutputBuffer()
        with self._start() as process:
            try:
                code = self._communicate(process, words, output, errors)
            finally:
                # Leave no process behind, even after an interrupt.
                if process.poll() is None:
                    _kill(process)
        if output.was_cut:
            raise HookProcessError(
                f"said more than {MAX_OUTPUT_BYTES:,} bytes, which is more than is read"
            )
        return ProcessOutput(code, output.text, errors.text)

    def _start(self) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(  # noqa: S603 - the user named it
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,  # with its children in a group that can be killed
            )
        except (OSError, ValueError) as error:  # ValueError: a null byte in an argument
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise HookProcessError(f"cannot be started ({reason})") from None

    def _communicate(
        self,
        process: subprocess.Popen[bytes],
        words: bytes,
        output: _OutputBuffer,
        errors: _OutputBuffer,
    ) -> int:
        deadline = monotonic() + self.time_limit_s
        rest = memoryview(words)
        with selectors.DefaultSelector() as streams:
            for stream, heard in (
                (process.stdin, None),
                (process.stdout, output),
                (process.stderr, errors),
            ):
                assert stream
                os.set_blocking(stream.fileno(), False)
                event = selectors.EVENT_READ if heard else selectors.EVENT_WRITE
                streams.register(stream, event, (stream, heard))
            while streams.get_map():
                left = deadline - monotonic()
                if left <= 0:
                    raise self._make_timeout_error()
                # Poll before reading, so that everything written before the end is read.
                has_ended = process.poll() is not None
                ready = streams.select(0 if has_ended else min(left, POLL_INTERVAL_S))
                for key, _ in ready:
                    stream, heard = key.data
                    if heard is None:
                        rest = _write(stream, rest)
                        is_done = not rest
                    else:
                        is_done = not _read(stream, heard)
                    if is_done:
                        streams.unregister(stream)
                        stream.close()
                if has_ended and (not ready or output.was_cut or errors.was_cut):
                    break  # do not wait for its children, which keep its output open
        try:
            return process.wait(max(0, deadline - monotonic()))
        except subprocess.TimeoutExpired:
            raise self._make_timeout_error() from None

    def _make_timeout_error(self) -> HookProcessError:
        return HookProcessError(f"took longer than {self.time_limit_s:g} s, and was killed")


def _write(stream: IO[bytes], rest: memoryview) -> memoryview:
    """Write a piece and return the rest; empty if the program closed its input."""
    try:
        return rest[os.write(stream.fileno(), rest) :]
    except BlockingIOError:
        return rest
    except BrokenPipeError:
        return rest[:0]


def _read(stream: IO[bytes], heard: _OutputBuffer) -> bool:
    """Read a piece; return whether there may be more."""
    try:
        piece = os.read(stream.fileno(), PIECE_BYTES)
    except BlockingIOError:
        return True
    heard.add(piece)
    return bool(piece)


def _kill(process: subprocess.Popen[bytes]) -> None:
    # It was not waited for yet, so its process id is still its own. If it has just ended, macOS
    # raises PermissionError.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
