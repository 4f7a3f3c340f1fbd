"""Reads the newest state of the to-do list that an agent keeps with a tool."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from pydantic import JsonValue

from ...blocks import ToolCall, ToolResult
from ...digest import normalize_tool_name, read_arguments
from ...item import Item
from .clean_text import tidy_line


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


_DONE = re.compile(r"done|complete|finish|cancel|delete", re.IGNORECASE)
_STARTED = re.compile(r"progress|doing|active|started", re.IGNORECASE)
_PLANNING = re.compile(r"todo|plan$|^plan|^task(?:create|update|track|list|get|manager)")
_TEXTS = ("content", "step", "title", "subject", "text", "description", "task")
_NAMES = ("taskId", "task_id", "id")
_NUMBER = re.compile(r"\d{1,9}")


def is_planning(tool: str) -> bool:
    """Check by its name whether a tool keeps a to-do list."""
    return _PLANNING.search(normalize_tool_name(tool)) is not None


def read_todo_list(items: Iterable[Item]) -> list[TodoItem]:
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
