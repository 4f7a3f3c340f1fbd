"""Reads tool calls and results as actions, and the newest state of the agent's to-do list."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from pydantic import JsonValue

from ..blocks import ToolCall, ToolResult
from ..digest import (
    SHELL_TOOLS,
    find_touched_files,
    map_results_by_call,
    normalize_tool_name,
    read_arguments,
)
from ..item import WindowItem
from ..shell_edits import read_shell_command
from .clean_text import ELLIPSIS, mark_code, shorten_line, tidy_line
from .commands import (
    LABEL_CHARS,
    VIEWING_PATTERN,
    find_targets,
    find_trouble,
    is_failure_text,
    read_verdict,
    shorten_command,
    shorten_result,
)
from .statements import BlockReader


class ActionKind(StrEnum):
    EDIT = "edit"
    RUN = "run"
    LOOK = "look"
    CALL = "call"


@dataclass(frozen=True, slots=True)
class Action:
    """What one tool call tried, and its outcome."""

    kind: ActionKind
    label: str
    """What was done, if it succeeded: `edited x`, `ran y`."""
    noun: str
    """What was tried: `edit of x`, `y`."""
    targets: tuple[str, ...]
    """What it acted on; a later success on the last target makes up for a failure."""
    is_run: bool = False
    position: int = 0
    outcome: str = ""
    is_failure: bool = False


@dataclass(frozen=True, slots=True)
class TodoItem:
    text: str
    status: str
    position: int

    @property
    def is_done(self) -> bool:
        return _DONE.search(self.status) is not None

    @property
    def is_started(self) -> bool:
        return _STARTED.search(self.status) is not None


_CREATES = ("write", "create", "new", "save")
_READ_ONLY_NAME = re.compile(
    r"get|list|search|find|read|view|fetch|grep|glob|ls$|query|lookup|show|describe|check|think"
    r"|calculat|wait|report|recall|poll|ask|skill|writestdin|bashoutput|taskoutput|codebase"
    r"|websearch|webfetch|toolsearch|exitplan|enterplan|rg$"
)
_MAX_PATH_CHARS = 48
_PATH = re.compile(r"(?<![^\s'\"=])(?:/?[\w.@+-]+/)+[\w.@+-]*\w(?![^\s'\";|&:])")
_LAST_FILE = re.compile(r"(?<=\s)[\w@+-][\w@+.-]*\.[A-Za-z]\w{0,9}$")
_DONE = re.compile(r"done|complete|finish|cancel|delete", re.IGNORECASE)
_STARTED = re.compile(r"progress|doing|active|started", re.IGNORECASE)
_PLANNING = re.compile(r"todo|plan$|^plan|^task(?:create|update|track|list|get|manager)")
_TEXTS = ("content", "step", "title", "subject", "text", "description", "task")
_NAMES = ("taskId", "task_id", "id")
_NUMBER = re.compile(r"\d{1,9}")


def iter_actions(
    items: Sequence[WindowItem], reader: BlockReader, root: str = ""
) -> Iterator[Action]:
    """Yield what each answered call did, in order of the calls; paths in `root` without it."""
    answers = map_results_by_call(items)
    for item in items:
        call, answer = item.block, answers.get(item.position)
        if answer is None or not isinstance(call, ToolCall):
            continue
        result = answer.block
        assert isinstance(result, ToolResult), "only results answer calls"
        for action in reader.read_once(list_attempts, call, root):
            is_failure, outcome = reader.read_once(
                _read_outcome, result, action.kind, action.is_run
            )
            position = item.position if action.kind is ActionKind.EDIT else answer.position
            yield replace(action, position=position, outcome=outcome, is_failure=is_failure)


def list_attempts(call: ToolCall, root: str) -> tuple[Action, ...]:
    """Return what a call tries, without outcomes: several things if it edits several files."""
    if is_planning(call.name):
        return ()
    touch, name = find_touched_files(call), normalize_tool_name(call.name)
    if touch.modifies and touch.paths:
        verb = "wrote" if name.startswith(_CREATES) else "edited"
        files = {path: mark_code(_shorten_path(path.removeprefix(root))) for path in touch.paths}
        return tuple(
            Action(ActionKind.EDIT, f"{verb} {files[path]}", f"edit of {files[path]}", (path,))
            for path in touch.paths
        )
    if name in SHELL_TOOLS:
        return (_make_run(call),)
    is_look = bool(touch.paths) or _READ_ONLY_NAME.match(name) is not None
    words = ", ".join(_iter_argument_words(read_arguments(call), root))
    shown = mark_code(shorten_line(f"{tidy_line(call.name)} {words}".strip(), LABEL_CHARS))
    kind = ActionKind.LOOK if is_look else ActionKind.CALL
    return (Action(kind, f"called {shown}", shown, (shown,)),)


def name_source(call: ToolCall, root: str, room: int) -> str:
    """Return what a call read or ran, in at most `room` characters; empty if it only plans."""
    attempts = list_attempts(call, root)
    if not attempts:
        return ""
    kind, noun = attempts[0].kind, attempts[0].noun.strip("`")
    is_cut = len(noun) > room or noun.endswith(ELLIPSIS)
    if (is_cut or kind in {ActionKind.LOOK, ActionKind.EDIT}) and (file := _name_file(call, root)):
        return file
    return mark_code(shorten_line(noun, room)) if noun else ""


def name_edited_file(call: ToolCall, root: str) -> str:
    """Return the file that a call edits, as code; empty if it is not exactly one."""
    edits = [one for one in list_attempts(call, root) if one.kind is ActionKind.EDIT]
    return _name_file(call, root) if len(edits) == 1 else ""


def _name_file(call: ToolCall, root: str) -> str:
    """Return the last file that a call reads or names, as code; empty if it names none."""
    command = VIEWING_PATTERN.sub("", read_shell_command(read_arguments(call)).rstrip())
    named = find_touched_files(call).paths or (
        *_PATH.findall(command),
        *_LAST_FILE.findall(command),
    )
    return mark_code(_shorten_path(named[-1].removeprefix(root))) if named else ""


def _shorten_path(path: str) -> str:
    """Return enough of a path to recognize it; the digest has all of it."""
    path = tidy_line(path)
    if len(path) <= _MAX_PATH_CHARS:
        return path
    folders = path.replace("\\", "/").split("/")
    # Of a path outside the root, a folder and a name may read as another path inside it.
    return "/".join(folders[-1 if path.startswith("/") else -2 :])


def _make_run(call: ToolCall) -> Action:
    command = read_shell_command(read_arguments(call))
    targets = find_targets(command)
    shown = mark_code(shorten_command(command))
    deed = ActionKind.RUN if targets else ActionKind.LOOK
    return Action(deed, f"ran {shown}", shown, targets or (shown,), is_run=True)


def _read_outcome(result: ToolResult, deed: ActionKind, is_run: bool) -> tuple[bool, str]:
    """Return whether the attempt failed, and what the result says about it."""
    text = result.text
    if is_run:
        return read_verdict(text, is_error=result.is_error, is_look=deed is ActionKind.LOOK)
    if result.is_error or is_failure_text(text):
        return True, find_trouble(text)
    return False, "" if deed is ActionKind.EDIT else shorten_result(text)


def _iter_argument_words(arguments: dict[str, JsonValue], root: str) -> Iterator[str]:
    """Yield the arguments as words, the beginning of each."""
    for value in arguments.values():
        if isinstance(value, str):
            text = tidy_line(value[:400]).removeprefix(root)
            yield _shorten_path(text) if _PATH.fullmatch(text) else shorten_line(text, 40)
        elif isinstance(value, int) and not isinstance(value, bool):
            yield shorten_line(str(value), 40)
        elif isinstance(value, float):
            yield f"{value:.10g}"


def is_planning(tool: str) -> bool:
    """Check by its name whether a tool keeps a to-do list."""
    return _PLANNING.search(normalize_tool_name(tool)) is not None


def read_todo_list(items: Iterable[WindowItem]) -> list[TodoItem]:
    """Return the newest state of the list; some tools write it whole, others entry by entry."""
    tasks: dict[str, TodoItem] = {}
    created: dict[str, TodoItem] = {}
    for item in items:
        block = item.block
        if isinstance(block, ToolResult) and block.tool_call_id in created:
            # The answer to a new entry contains its number.
            number = _NUMBER.search(block.text[:200])
            task = created.pop(block.tool_call_id)
            tasks[number[0] if number else task.text] = task
        elif isinstance(block, ToolCall) and is_planning(block.name):
            arguments = read_arguments(block)
            if entries := next(filter(_is_list, arguments.values()), None):
                tasks = _read_whole_list(entries, item.position)
                continue
            task = _read_entry(arguments, item.position)
            name = next((str(arguments[key]) for key in _NAMES if arguments.get(key)), "")
            if name in tasks:
                tasks[name] = _update_entry(tasks[name], task)
            elif task.text and not name:
                created[block.tool_call_id] = task
    return [*tasks.values(), *created.values()]


def _is_list(value: JsonValue) -> bool:
    return isinstance(value, list) and any(isinstance(v, dict) and "status" in v for v in value)


def _read_whole_list(entries: JsonValue, position: int) -> dict[str, TodoItem]:
    listed = entries if isinstance(entries, list) else []
    tasks = (_read_entry(entry, position) for entry in listed if isinstance(entry, dict))
    return {task.text: task for task in tasks if task.text}


def _read_entry(entry: dict[str, JsonValue], position: int) -> TodoItem:
    text = next((value for key in _TEXTS if isinstance(value := entry.get(key), str)), "")
    status = entry.get("status")
    return TodoItem(tidy_line(text), status if isinstance(status, str) else "", position)


def _update_entry(older: TodoItem, newer: TodoItem) -> TodoItem:
    return TodoItem(newer.text or older.text, newer.status or older.status, newer.position)
