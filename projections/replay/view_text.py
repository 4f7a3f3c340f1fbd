"""All text of a view, as fidelity reads it: no roles, no markup, no JSON."""

from collections.abc import Iterator
from typing import Any

from ...domain.blocks import ToolCall
from ..entry import Entry
from ..history_view import HistoryView


def text_of(view: HistoryView) -> str:
    """System prompt, summary and every block that shows, one below the other.

    A tool call is its name, a line feed, and the values of its arguments, one a line.
    """
    parts = [view.system_prompt or "", view.summary.text if view.summary else ""]
    parts += map(_shown, view.entries)
    return "\n".join(part for part in parts if part)


def _shown(entry: Entry) -> str:
    block = entry.block
    if entry.shown is not None or not isinstance(block, ToolCall):
        return entry.text
    return "\n".join((block.name, *_values(block.parsed())))


def _values(value: Any) -> Iterator[str]:
    """The texts and numbers of a document, unescaped: JSON would glue words together."""
    match value:
        case str():
            yield value
        case dict():
            for inner in value.values():
                yield from _values(inner)
        case list():
            for inner in value:
                yield from _values(inner)
        case None | bool():
            pass
        case _:
            yield str(value)
