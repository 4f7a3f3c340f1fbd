"""Reads the to-do list that an agent keeps with a tool, as it last stood."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from pydantic import JsonValue

from ...blocks import ToolCall, ToolResult
from ...digest import arguments_of, bare_name
from ...item import Item
from .wording import tidied


@dataclass(frozen=True, slots=True)
class Task:
    """One entry of a to-do list."""

    text: str
    status: str
    position: int

    @property
    def is_done(self) -> bool:
        return _DONE.search(self.status) is not None

    @property
    def is_begun(self) -> bool:
        return _BEGUN.search(self.status) is not None


_DONE = re.compile(r"done|complete|finish|cancel|delete", re.IGNORECASE)
_BEGUN = re.compile(r"progress|doing|active|started", re.IGNORECASE)
_PLANNING = re.compile(r"todo|plan$|^plan|^task(?:create|update|track|list|get|manager)")
_TEXTS = ("content", "step", "title", "subject", "text", "description", "task")
_NAMES = ("taskId", "task_id", "id")
_NUMBER = re.compile(r"\d{1,9}")


def is_planning(tool: str) -> bool:
    """Whether a tool keeps a to-do list, by its name."""
    return _PLANNING.search(bare_name(tool)) is not None


def tasks_of(items: Iterable[Item]) -> list[Task]:
    """The list as it last stood; some tools write it whole each time, some entry by entry."""
    tasks: dict[str, Task] = {}
    created: dict[str, Task] = {}
    for item in items:
        block = item.block
        if isinstance(block, ToolResult) and block.tool_call_id in created:
            # The answer to a new entry says its number.
            number = _NUMBER.search(block.text[:200])
            task = created.pop(block.tool_call_id)
            tasks[number[0] if number else task.text] = task
        elif isinstance(block, ToolCall) and is_planning(block.name):
            arguments = arguments_of(block)
            if entries := next(filter(_is_list, arguments.values()), None):
                tasks = _whole(entries, item.position)
                continue
            task = _task(arguments, item.position)
            name = next((str(arguments[key]) for key in _NAMES if arguments.get(key)), "")
            if name in tasks:
                tasks[name] = _changed(tasks[name], task)
            elif task.text and not name:
                created[block.tool_call_id] = task
    return [*tasks.values(), *created.values()]


def _is_list(value: JsonValue) -> bool:
    return isinstance(value, list) and any(isinstance(v, dict) and "status" in v for v in value)


def _whole(entries: JsonValue, position: int) -> dict[str, Task]:
    listed = entries if isinstance(entries, list) else []
    tasks = (_task(entry, position) for entry in listed if isinstance(entry, dict))
    return {task.text: task for task in tasks if task.text}


def _task(entry: dict[str, JsonValue], position: int) -> Task:
    text = next((value for key in _TEXTS if isinstance(value := entry.get(key), str)), "")
    status = entry.get("status")
    return Task(tidied(text), status if isinstance(status, str) else "", position)


def _changed(older: Task, newer: Task) -> Task:
    return Task(newer.text or older.text, newer.status or older.status, newer.position)
