"""Runs programs as hooks: each gets an event as JSON and may answer with instructions or a veto.

Input and answers follow the hooks of coding agents, so a PreCompact or SessionStart hook written
for Claude Code works unchanged.
"""

import json
import logging
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ....domain.hooks import CompactionEvent, CompactionEventKind, HookAnswer, Listener
from ...models.program_run import ProgramRun, run_program
from ...settings.section import hide_keys
from ...settings.settings import HookSettings
from .background import Cancellation, TimeLimitError, run_in_thread
from .event_sink import said_trigger

_BLOCK_EXIT_CODE = 2
"""The exit code with which a hook forbids the compaction."""
MAX_HOOK_REASON_CHARACTERS = 500
"""The characters of a reason that are kept."""

_ANSWER_FIELDS = frozenset({"instructions", "veto", "decision", "reason", "continue", "stopReason"})
IGNORED_ANSWER_FIELDS = frozenset({"suppressOutput", "systemMessage", "hookSpecificOutput"})
"""Keys that coding agents understand, and that have no effect here."""
MAX_ANSWER_BYTES = 64 * 1024
"""The limit of a program's output; one that writes more is killed."""

logger = logging.getLogger("cutbank.hooks")


class HookProcessError(Exception):
    """A failure of a program; the message is meant to follow the program's name."""


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
            return self._read_answer(
                self._run(event), may_answer=event.moment is CompactionEventKind.PRE_COMPACT
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

    def _run(self, event: CompactionEvent) -> ProgramRun:
        """Run the program; raise HookProcessError if it cannot start, or exceeds a limit."""
        words = json.dumps(to_hook_input(event)).encode()
        start: Callable[[], Awaitable[ProgramRun] | ProgramRun] = partial(
            run_program, self.command, words, max_output=MAX_ANSWER_BYTES
        )
        try:
            run = run_in_thread(start, "cutbank-hook", self.time_limit_s, Cancellation())
        except TimeLimitError:
            reason = f"took longer than {self.time_limit_s:g} s, and was killed"
            raise HookProcessError(reason) from None
        except (OSError, ValueError) as error:  # ValueError: a null byte in an argument
            reason = (isinstance(error, OSError) and error.strerror) or str(error)
            raise HookProcessError(f"cannot be started ({reason})") from None
        if run.is_too_long:
            raise HookProcessError(
                f"said more than {MAX_ANSWER_BYTES:,} bytes, which is more than is read"
            )
        return run

    def _read_answer(self, run: ProgramRun, *, may_answer: bool) -> HookAnswer | None:
        output, errors = (
            said.decode("utf-8", "replace").strip() for said in (run.output, run.errors)
        )
        if may_answer and run.status == _BLOCK_EXIT_CODE:
            answer = _make_veto(errors or output)
        elif run.status != 0:
            raise HookProcessError(run.describe_end())
        elif not may_answer:
            return None
        elif output.startswith("{"):
            answer = _parse_answer(output)
        else:
            # As for coding agents' hooks, plain text is an instruction for the summary.
            answer = HookAnswer(instructions=output or None)
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
    name = event.moment.value.title().replace("_", "")
    told |= {
        "hook_event_name": "PostCompact" if event.moment is CompactionEventKind.ACTIVATED else name,
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
