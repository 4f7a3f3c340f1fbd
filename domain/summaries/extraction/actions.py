"""Reads tool calls and their results as what was done: edits, commands, and what failed."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from pydantic import JsonValue

from ...blocks import ToolCall, ToolResult
from ...digest import SHELLS, Touch, answers_to, arguments_of, bare_name, touched
from ...item import Item
from ...ranges import Ranges
from .commands import (
    LABEL,
    brief,
    command_of,
    in_short,
    is_refusal,
    targets_of,
    trouble_in,
    verdict_of,
)
from .once_per_block import OncePerBlock
from .todo_lists import is_planning
from .wording import code, shortened, tidied


class Deed(StrEnum):
    """What kind of thing a call did."""

    EDIT = "edit"
    RUN = "run"
    LOOK = "look"
    CALL = "call"


@dataclass(frozen=True, slots=True)
class Action:
    """One tool call together with what came of it."""

    deed: Deed
    label: str
    """What was done, if it was done: `edited x`, `ran y`."""
    noun: str
    """What was tried: `edit of x`, `y`."""
    targets: tuple[str, ...]
    """What it was tried on, the last of which counts: success later on makes up for a failure."""
    position: int
    outcome: str = ""
    """What the result says, in a few words."""
    is_failure: bool = False

    @property
    def handles(self) -> Ranges:
        return Ranges.of([self.position])


class _Attempt(NamedTuple):
    """What a call tried, whatever came of it."""

    deed: Deed
    label: str
    noun: str
    targets: tuple[str, ...]
    is_run: bool = False


_CREATES = ("write", "create", "new", "save")
_LOOKING = re.compile(
    r"get|list|search|find|read|view|fetch|grep|glob|ls$|query|lookup|show|describe|check|think"
    r"|calculat|wait|report|recall|poll|ask|skill|writestdin|bashoutput|taskoutput|codebase"
    r"|websearch|webfetch|toolsearch|exitplan|enterplan"
)
_LONGEST_PATH = 48


def actions_of(items: Iterable[Item]) -> Iterator[Action]:
    """What each answered call did, in order of the calls."""
    items = tuple(items)
    answers = answers_to(items)
    for item in items:
        answer = answers.get(item.position)
        if answer is None or not isinstance(item.block, ToolCall):
            continue
        result = answer.block
        if not isinstance(result, ToolResult):
            continue
        for attempt in _attempts(item.block):
            is_failure, outcome = _outcome(result, attempt.deed, attempt.is_run)
            yield Action(
                deed=attempt.deed,
                label=attempt.label,
                noun=attempt.noun,
                targets=attempt.targets,
                position=item.position if attempt.deed is Deed.EDIT else answer.position,
                outcome=outcome,
                is_failure=is_failure,
            )


def tail_of(path: str) -> str:
    """Enough of a path to know it by; the digest has all of it."""
    path = tidied(path)
    if len(path) <= _LONGEST_PATH:
        return path
    return "/".join(path.replace("\\", "/").split("/")[-2:])[-80:]


@OncePerBlock
def _attempts(call: ToolCall) -> tuple[_Attempt, ...]:
    """What a call is about: several things where it edits several files."""
    if is_planning(call.name):
        return ()
    touch = touched(call)
    if touch.modifies and touch.paths:
        return tuple(_edits(call, touch))
    if bare_name(call.name) in SHELLS:
        return (_run(call),)
    return (_call(call, is_look=bool(touch.paths)),)


def _edits(call: ToolCall, touch: Touch) -> Iterator[_Attempt]:
    verb = "wrote" if bare_name(call.name).startswith(_CREATES) else "edited"
    for path in touch.paths:
        file = code(tail_of(path))
        yield _Attempt(Deed.EDIT, f"{verb} {file}", f"edit of {file}", (path,))


def _run(call: ToolCall) -> _Attempt:
    command = command_of(arguments_of(call))
    targets = targets_of(command)
    shown = code(in_short(command))
    deed = Deed.RUN if targets else Deed.LOOK
    return _Attempt(deed, f"ran {shown}", shown, targets or (shown,), is_run=True)


def _call(call: ToolCall, *, is_look: bool) -> _Attempt:
    spoken = ", ".join(_spoken(arguments_of(call)))
    shown = code(shortened(f"{tidied(call.name)} {spoken}".strip(), LABEL))
    is_look = is_look or _LOOKING.match(bare_name(call.name)) is not None
    return _Attempt(Deed.LOOK if is_look else Deed.CALL, f"called {shown}", shown, (shown,))


@OncePerBlock
def _outcome(result: ToolResult, deed: Deed, is_run: bool) -> tuple[bool, str]:
    """Whether what was tried failed, and what the result says about how it came out."""
    text = result.text
    if is_run:
        return verdict_of(text, is_error=result.is_error, is_look=deed is Deed.LOOK)
    if result.is_error or is_refusal(text):
        return True, trouble_in(text)
    return False, "" if deed is Deed.EDIT else brief(text)


def _spoken(arguments: dict[str, JsonValue]) -> Iterator[str]:
    """Arguments in words, the beginning of each."""
    for key, value in arguments.items():
        if isinstance(value, str):
            yield f"{tidied(key)}={shortened(tidied(value[:400]), 40)}"
        elif isinstance(value, int) and not isinstance(value, bool):
            yield f"{tidied(key)}={shortened(str(value), 40)}"
        elif isinstance(value, float):
            yield f"{tidied(key)}={value:.10g}"
