"""Renders a view as plain text for fidelity: no roles, no markup, no JSON."""

from ...domain.blocks import ToolCall
from ..history_view import HistoryView
from ..view_content import ViewEntry
from .recorded_rows import iter_values


def render_plain_text(view: HistoryView) -> str:
    """Return system prompt, summary and every visible block, separated by line feeds.

    A tool call is its name, a line feed, and its argument values, one a line.
    """
    parts = [view.system_prompt or "", view.summary.text if view.summary else ""]
    parts += map(_render_entry, view.entries)
    return "\n".join(part for part in parts if part)


def _render_entry(entry: ViewEntry) -> str:
    block = entry.block
    if entry.shown is not None or not isinstance(block, ToolCall):
        return entry.text
    return "\n".join((block.name, *iter_values(block.parse_arguments())))
