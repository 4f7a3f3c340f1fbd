"""Reads tool calls and their results as actions: edits, commands, and failures."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from pydantic import JsonValue

from ...blocks import ToolCall, ToolResult
from ...digest import (
    SHELL_TOOLS,
    TouchedPaths,
    find_touched_files,
    map_results_by_call,
    normalize_tool_name,
    read_arguments,
)
from ...item import Item
from ...ranges import Ranges
from .block_cache import CachedPerBlock
from .clean_text import mark_code, shorten_line, tidy_line
from .commands import (
    LABEL_CHARS,
    find_targets,
    find_trouble,
    get_command,
    is_failure_text,
    read_verdict,
    shorten_command,
    shorten_result,
)
from .todo_lists import is_planning


class ActionKind(StrEnum):
    EDIT = "edit"
    RUN = "run"
    LOOK = "look"
    CALL = "call"


@dataclass(frozen=True, slots=True)
class Action:
    """One tool call with its outcome."""

    kind: ActionKind
    label: str
    """What was done, if it succeeded: `edited x`, `ran y`."""
    noun: str
    """What was tried: `edit of x`, `y`."""
    targets: tuple[str, ...]
    """What it acted on; a later success on the last target makes up for a failure."""
    position: int
    outcome: str = ""
    is_failure: bool = False

    @property
    def handles(self) -> Ranges:
        return Ranges.of([self.position])


class _Attempt(NamedTuple):
    """What a call tried, whatever the outcome."""

    kind: ActionKind
    label: str
    noun: str
    targets: tuple[str, ...]
    is_run: bool = False


_CREATES = ("write", "create", "new", "save")
_READ_ONLY_NAME = re.compile(
    r"get|list|search|find|read|view|fetch|grep|glob|ls$|query|lookup|show|describe|check|think"
    r"|calculat|wait|report|recall|poll|ask|skill|writestdin|bashoutput|taskoutput|codebase"
    r"|websearch|webfetch|toolsearch|exitplan|enterplan"
)
_MAX_PATH_CHARS = 48


def iter_actions(items: Iterable[Item]) -> Iterator[Action]:
    """Yield what each answered call did, in order of the calls."""
    items = tuple(items)
    answers = map_results_by_call(items)
    for item in items:
        answer = answers.get(item.position)
        if answer is None or not isinstance(item.block, ToolCall):
            continue
        result = answer.block
        if not isinstance(result, ToolResult):
            continue
        for attempt in _list_attempts(item.block):
            is_failure, outcome = _read_outcome(result, attempt.kind, attempt.is_run)
            yield Action(
                kind=attempt.kind,
                label=attempt.label,
                noun=attempt.noun,
                targets=attempt.targets,
                position=item.position if attempt.kind is ActionKind.EDIT else answer.position,
                outcome=outcome,
                is_failure=is_failure,
            )


def _shorten_path(path: str) -> str:
    """Return enough of a path to recognize it; the digest has all of it."""
    path = tidy_line(path)
    if len(path) <= _MAX_PATH_CHARS:
        return path
    return "/".join(path.replace("\\", "/").split("/")[-2:])[-80:]


@CachedPerBlock
def _list_attempts(call: ToolCall) -> tuple[_Attempt, ...]:
    """Return what a call tries: several things if it edits several files."""
    if is_planning(call.name):
        return ()
    touch = find_touched_files(call)
    if touch.modifies and touch.paths:
        return tuple(_iter_edits(call, touch))
    if normalize_tool_name(call.name) in SHELL_TOOLS:
        return (_make_run(call),)
    return (_make_call(call, is_look=bool(touch.paths)),)


def _iter_edits(call: ToolCall, touch: TouchedPaths) -> Iterator[_Attempt]:
    verb = "wrote" if normalize_tool_name(call.name).startswith(_CREATES) else "edited"
    for path in touch.paths:
        file = mark_code(_shorten_path(path))
        yield _Attempt(ActionKind.EDIT, f"{verb} {file}", f"edit of {file}", (path,))


def _make_run(call: ToolCall) -> _Attempt:
    command = get_command(read_arguments(call))
    targets = find_targets(command)
    shown = mark_code(shorten_command(command))
    deed = ActionKind.RUN if targets else ActionKind.LOOK
    return _Attempt(deed, f"ran {shown}", shown, targets or (shown,), is_run=True)


def _make_call(call: ToolCall, *, is_look: bool) -> _Attempt:
    spoken = ", ".join(_iter_argument_words(read_arguments(call)))
    shown = mark_code(shorten_line(f"{tidy_line(call.name)} {spoken}".strip(), LABEL_CHARS))
    is_look = is_look or _READ_ONLY_NAME.match(normalize_tool_name(call.name)) is not None
    return _Attempt(
        ActionKind.LOOK if is_look else ActionKind.CALL, f"called {shown}", shown, (shown,)
    )


@CachedPerBlock
def _read_outcome(result: ToolResult, deed: ActionKind, is_run: bool) -> tuple[bool, str]:
    """Return whether the attempt failed, and what the result says about it."""
    text = result.text
    if is_run:
        return read_verdict(text, is_error=result.is_error, is_look=deed is ActionKind.LOOK)
    if result.is_error or is_failure_text(text):
        return True, find_trouble(text)
    return False, "" if deed is ActionKind.EDIT else shorten_result(text)


def _iter_argument_words(arguments: dict[str, JsonValue]) -> Iterator[str]:
    """Yield the arguments as words, the beginning of each."""
    for key, value in arguments.items():
        if isinstance(value, str):
            yield f"{tidy_line(key)}={shorten_line(tidy_line(value[:400]), 40)}"
        elif isinstance(value, int) and not isinstance(value, bool):
            yield f"{tidy_line(key)}={shorten_line(str(value), 40)}"
        elif isinstance(value, float):
            yield f"{tidy_line(key)}={value:.10g}"
