"""Runs programs as hooks: each gets an event as JSON and may answer with instructions or a veto.

Input and answers follow the hooks of coding agents, so a PreCompact or SessionStart hook written
for Claude Code works unchanged.
"""

import json
import logging
import os
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from time import monotonic
from typing import IO, Any, NamedTuple

from ....domain.hooks import CompactionEvent, CompactionEventKind, HookAnswer, Listener
from ...settings.section import hide_keys
from ...settings.settings import HookSettings
from .event_sink import said_trigger

_BLOCK_EXIT_CODE = 2
"""The exit code with which a hook forbids the compaction."""
MAX_HOOK_REASON_CHARACTERS = 500
"""The characters of a reason that are kept."""

EVENT_NAMES = {CompactionEventKind.ACTIVATED: "PostCompact"}
"""Other programs' names for a moment, unless it is the moment's own name in capitals."""
_ANSWER_FIELDS = frozenset({"instructions", "veto", "decision", "reason", "continue", "stopReason"})
IGNORED_ANSWER_FIELDS = frozenset({"suppressOutput", "systemMessage", "hookSpecificOutput"})
"""Keys that coding agents understand, and that have no effect here."""
MAX_OUTPUT_BYTES = 64 * 1024
"""The limit of a program's output; of its errors only that much is shown."""
MAX_ERROR_BYTES = 1024 * 1024
"""The limit of what a program writes to its standard error, which is held in memory."""
POLL_INTERVAL_S = 0.05
"""How often to check whether a program has ended whose children keep its output open."""

logger = logging.getLogger("cutbank.hooks")


class HookProcessError(Exception):
    """A failure of a program; the message is meant to follow the program's name."""


class ProcessOutput(NamedTuple):
    code: int
    output: str
    errors: str


@dataclass(frozen=True, slots=True)
class HookCommand:
    """A listener that starts a program for each of its moments.

    If a program fails, hangs or gives an unreadable answer, that is logged and the compaction goes
    on.
    """

    command: tuple[str, ...]
    on: frozenset[CompactionEventKind] = frozenset({CompactionEventKind.PRE_COMPACT})
    time_limit_s: float = 10.0

    def __call__(self, event: CompactionEvent) -> HookAnswer | None:
        if event.moment not in self.on:
            return None
        try:
            words = json.dumps(to_hook_input(event)).encode()
            said = run_hook_program(self.command, words, self.time_limit_s)
            return self._read_answer(
                said, may_answer=event.moment is CompactionEventKind.PRE_COMPACT
            )
        except HookProcessError as error:
            # Without its arguments: they are the user's and may hold secrets.
            logger.warning(
                "hook command %r at %s %s; nothing was changed by it. Correct it, or take it out "
                "of hooks.commands in the settings",
                self.command[0],
                event.moment.value,
                hide_keys(str(error)),
            )
            return None

    def _read_answer(self, said: ProcessOutput, *, may_answer: bool) -> HookAnswer | None:
        if may_answer and said.code == _BLOCK_EXIT_CODE:
            answer = _make_veto(said.errors or said.output)
        elif said.code != 0:
            raise HookProcessError(_describe_failure(said))
        elif not may_answer:
            answer = HookAnswer()
        elif said.output.startswith("{"):
            answer = _parse_answer(said.output)
        else:
            # As for coding agents' hooks, plain text is an instruction for the summary.
            answer = HookAnswer(instructions=said.output or None)
        if answer.veto is None:
            return answer if answer.instructions else None
        return HookAnswer(veto=f"{Path(self.command[0]).name}: {answer.veto}")


def make_hook_commands(settings: HookSettings) -> list[Listener]:
    """Return the listeners that the settings name."""
    return [
        HookCommand(one.command, frozenset(one.on), one.time_limit) for one in settings.commands
    ]


def to_hook_input(event: CompactionEvent) -> dict[str, Any]:
    """Return the program's input: all that is known of the event, under both sets of names."""
    told = event.to_json()
    name = EVENT_NAMES.get(event.moment)
    told |= {
        "hook_event_name": name or event.moment.value.title().replace("_", ""),
        "session_id": event.session,
        "cwd": _current_folder(),
    }
    if event.trigger is not None:
        # Hooks compare it with `manual` and `auto`; `set_off_by` has the exact trigger.
        told |= {"trigger": said_trigger(event.trigger), "set_off_by": event.trigger.value}
    if event.moment is CompactionEventKind.PRE_COMPACT:
        told.setdefault("trigger", said_trigger(None))
        # Hooks expect a string, possibly empty, where the SDK's type also allows null.
        told["custom_instructions"] = event.instructions or ""
    if event.moment is CompactionEventKind.SESSION_START:
        told["source"] = "compact"
    return told


def _current_folder() -> str | None:
    try:
        return os.getcwd()  # noqa: PTH109 - hooks get it as text
    except OSError:  # the folder was removed
        return None


def _parse_answer(output: str) -> HookAnswer:
    try:
        answer = json.loads(output)
    except (ValueError, RecursionError) as error:
        raise HookProcessError(f"answered with broken JSON ({error})") from None
    if answer.keys() and not answer.keys() & (_ANSWER_FIELDS | IGNORED_ANSWER_FIELDS):
        names = ", ".join(ascii(name) for name in list(answer)[:5])
        raise HookProcessError(
            f"answered with JSON that says nothing ({names}): it may say instructions, or veto"
        )
    for key in ("instructions", "veto", "reason", "stopReason"):
        if not isinstance(answer.get(key), str | None):
            raise HookProcessError(f"answered with {key} that is no text")
    if answer.get("decision") == "block":
        return _make_veto(answer.get("reason"))
    if answer.get("continue") is False:
        return _make_veto(answer.get("stopReason"))
    if answer.get("veto") is not None:
        return _make_veto(answer["veto"])
    return HookAnswer(instructions=(answer.get("instructions") or "").strip())


def _make_veto(reason: str | None) -> HookAnswer:
    return HookAnswer(
        veto=(reason or "").strip()[:MAX_HOOK_REASON_CHARACTERS] or "it gave no reason"
    )


def _describe_failure(said: ProcessOutput) -> str:
    if said.code < 0:
        return f"was ended by signal {-said.code}"
    last = said.errors.splitlines()[-1][:MAX_HOOK_REASON_CHARACTERS] if said.errors else ""
    return f"exited with {said.code}" + (f" ({last})" if last else "")


def run_hook_program(command: tuple[str, ...], words: bytes, time_limit_s: float) -> ProcessOutput:
    """Run a program without a shell: write `words` to its input, and wait for its end.

    Raises HookProcessError if it cannot be started, takes too long or writes too much.
    """
    deadline = monotonic() + time_limit_s
    # A file, since a pipe would have to be written to while the output is read.
    with TemporaryFile() as told:
        told.write(words)
        told.seek(0)
        process = _start(command, told)
    with process:
        try:
            output, errors = _communicate(process, deadline)
            code = process.wait(max(0, deadline - monotonic()))
        except subprocess.TimeoutExpired:
            reason = f"took longer than {time_limit_s:g} s, and was killed"
            raise HookProcessError(reason) from None
        finally:
            # Leave no process behind, even after an interrupt.
            if process.poll() is None:
                _kill(process)
    _check_length(output, errors)
    return ProcessOutput(code, _decode(output), _decode(errors[:MAX_OUTPUT_BYTES]))


def _start(command: tuple[str, ...], told: IO[bytes]) -> "subprocess.Popen[bytes]":
    try:
        return subprocess.Popen(  # noqa: S603 - the user named it
            command,
            stdin=told,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # with its children in a group that can be killed
        )
    except (OSError, ValueError) as error:  # ValueError: a null byte in an argument
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise HookProcessError(f"cannot be started ({reason})") from None


def _communicate(process: "subprocess.Popen[bytes]", deadline: float) -> tuple[bytes, bytes]:
    """Return its output and its errors, without waiting for children that outlive it."""
    while True:
        # Poll before reading, so that everything written before the end is read.
        has_ended = process.poll() is not None
        try:
            return process.communicate(timeout=POLL_INTERVAL_S)
        except subprocess.TimeoutExpired as waiting:
            output, errors = waiting.output or b"", waiting.stderr or b""
            _check_length(output, errors)
            if has_ended:
                return output, errors
            if monotonic() > deadline:
                raise


def _check_length(output: bytes, errors: bytes) -> None:
    if len(output) > MAX_OUTPUT_BYTES:
        raise HookProcessError(
            f"said more than {MAX_OUTPUT_BYTES:,} bytes, which is more than is read"
        )
    if len(errors) > MAX_ERROR_BYTES:
        raise HookProcessError(f"wrote more than {MAX_ERROR_BYTES:,} bytes to its standard error")


def _decode(content: bytes) -> str:
    return content.decode("utf-8", "replace").strip()


def _kill(process: "subprocess.Popen[bytes]") -> None:
    # It was not waited for yet, so its process id is still its own. If it has just ended, macOS
    # raises PermissionError.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
