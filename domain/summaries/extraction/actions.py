"""Reads tool calls and their results as what was done: edits, commands, and what failed."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from pydantic import JsonValue

from ...blocks import ToolCall, ToolResult
from ...digest import SHELLS, Touch, answers_to, arguments_of, bare_name, touched
from ...ranges import Ranges
from ...window import Item
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
        block = item.block
        if not isinstance(block, ToolCall) or is_planning(block.name):
            continue
        answer = answers.get(item.position)
        result = answer.block if answer else None
        if answer is None or not isinstance(result, ToolResult):
            continue
        touch = touched(block)
        if touch.modifies and touch.paths:
            yield from _edits(block, touch, item.position, result)
        elif bare_name(block.name) in SHELLS:
            yield _run(block, answer.position, result)
        else:
            yield _call(block, answer.position, result, is_look=bool(touch.paths))


def tail_of(path: str) -> str:
    """Enough of a path to know it by; the digest has all of it."""
    path = tidied(path)
    if len(path) <= _LONGEST_PATH:
        return path
    return "/".join(path.replace("\\", "/").split("/")[-2:])[-80:]


def _edits(call: ToolCall, touch: Touch, position: int, result: ToolResult) -> Iterator[Action]:
    verb = "wrote" if bare_name(call.name).startswith(_CREATES) else "edited"
    is_failure = result.is_error or is_refusal(result.text)
    outcome = trouble_in(result.text) if is_failure else ""
    for path in touch.paths:
        file = code(tail_of(path))
        yield Action(
            deed=Deed.EDIT,
            label=f"{verb} {file}",
            noun=f"edit of {file}",
            targets=(path,),
            position=position,
            outcome=outcome,
            is_failure=is_failure,
        )


def _run(call: ToolCall, position: int, result: ToolResult) -> Action:
    command = command_of(arguments_of(call))
    targets = targets_of(command)
    shown = code(in_short(command))
    is_failure, outcome = verdict_of(result.text, is_error=result.is_error, is_look=not targets)
    return Action(
        deed=Deed.RUN if targets else Deed.LOOK,
        label=f"ran {shown}",
        noun=shown,
        targets=targets or (shown,),
        position=position,
        outcome=outcome,
        is_failure=is_failure,
    )


def _call(call: ToolCall, position: int, result: ToolResult, *, is_look: bool) -> Action:
    spoken = ", ".join(_spoken(arguments_of(call)))
    shown = code(shortened(f"{tidied(call.name)} {spoken}".strip(), LABEL))
    is_look = is_look or _LOOKING.match(bare_name(call.name)) is not None
    is_failure = result.is_error or is_refusal(result.text)
    return Action(
        deed=Deed.LOOK if is_look else Deed.CALL,
        label=f"called {shown}",
        noun=shown,
        targets=(shown,),
        position=position,
        outcome=trouble_in(result.text) if is_failure else brief(result.text),
        is_failure=is_failure,
    )


def _spoken(arguments: dict[str, JsonValue]) -> Iterator[str]:
    """Arguments in words, the beginning of each."""
    for key, value in arguments.items():
        if isinstance(value, str):
            yield f"{tidied(key)}={shortened(tidied(value[:400]), 40)}"
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield f"{tidied(key)}={value:.10g}"
