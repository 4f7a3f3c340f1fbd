"""Runs a program once with some input, within a time limit."""

import os
import selectors
import signal
import subprocess
from contextlib import suppress
from time import monotonic
from typing import NamedTuple

MAX_OUTPUT_BYTES = 64 * 1024
"""The limit of what is read of its output and of its errors, each."""
PIECE_BYTES = 64 * 1024
POLL_INTERVAL_S = 0.05
"""How often to check whether a program has ended whose children keep its output open."""


class HookProcessError(Exception):
    """A failure of a program; the message is meant to follow the program's name."""


class ProcessOutput(NamedTuple):
    code: int
    output: str
    errors: str


def run_hook_program(command: tuple[str, ...], words: bytes, time_limit_s: float) -> ProcessOutput:
    """Run a program without a shell: write `words` to its input, and wait for its end.

    Raises HookProcessError if it cannot be started, takes too long or writes too much.
    """
    deadline = monotonic() + time_limit_s
    with _start(command) as process:
        try:
            output, errors = _communicate(process, words, deadline)
            code = process.wait(max(0, deadline - monotonic()))
        except subprocess.TimeoutExpired:
            reason = f"took longer than {time_limit_s:g} s, and was killed"
            raise HookProcessError(reason) from None
        finally:
            # Leave no process behind, even after an interrupt.
            if process.poll() is None:
                _kill(process)
    if len(output) > MAX_OUTPUT_BYTES:
        raise HookProcessError(
            f"said more than {MAX_OUTPUT_BYTES:,} bytes, which is more than is read"
        )
    return ProcessOutput(code, _decode(output), _decode(errors))


def _start(command: tuple[str, ...]) -> "subprocess.Popen[bytes]":
    try:
        return subprocess.Popen(  # noqa: S603 - the user named it
            command,
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
    process: "subprocess.Popen[bytes]", words: bytes, deadline: float
) -> tuple[bytearray, bytearray]:
    """Return its output and its errors, each up to one byte more than the limit."""
    rest, output, errors = memoryview(words), bytearray(), bytearray()
    assert process.stdin
    with selectors.DefaultSelector() as streams:
        streams.register(process.stdin, selectors.EVENT_WRITE)
        for stream, heard in ((process.stdout, output), (process.stderr, errors)):
            assert stream
            streams.register(stream, selectors.EVENT_READ, heard)
        for key in streams.get_map().values():
            os.set_blocking(key.fd, False)
        while streams.get_map():
            left = deadline - monotonic()
            if left <= 0:
                raise subprocess.TimeoutExpired(process.args, left)
            # Poll before reading, so that everything written before the end is read.
            has_ended = process.poll() is not None
            ready = streams.select(0 if has_ended else min(left, POLL_INTERVAL_S))
            for key, _ in ready:
                try:
                    if key.data is None:
                        rest = rest[os.write(key.fd, rest) :]
                        is_done = not rest
                    else:
                        piece = os.read(key.fd, PIECE_BYTES)
                        key.data.extend(piece[: MAX_OUTPUT_BYTES + 1 - len(key.data)])
                        is_done = not piece
                except BlockingIOError:
                    continue
                except BrokenPipeError:  # it closed its input
                    is_done = True
                if is_done:
                    streams.unregister(key.fd)
                    if key.data is None:
                        process.stdin.close()
            if has_ended and (not ready or max(len(output), len(errors)) > MAX_OUTPUT_BYTES):
                break  # do not wait for its children, which keep its output open
    return output, errors


def _decode(content: bytearray) -> str:
    return content.decode("utf-8", "replace").strip()


def _kill(process: "subprocess.Popen[bytes]") -> None:
    # It was not waited for yet, so its process id is still its own. If it has just ended, macOS
    # raises PermissionError.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
