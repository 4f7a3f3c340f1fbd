"""Writes kdcube's summaries: one of the history, one of a split turn's beginning, file lists."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from .. import kdcube_timeline
from ..blocks import ToolCall
from ..digest import read_arguments
from ..item import WindowItem
from .summarizer import Material, SummaryPart, SummaryRequest
from .templates import NO_HISTORY_TEXT, TURN_SECTIONS, append_files, append_turn, make_requests

TURN_HEADING = "Turn Context (split turn)"

_LABELS = {
    kdcube_timeline.PROMPT_TYPE: "User",
    "react.note": "Internal Note",
    kdcube_timeline.COMPLETION_TYPE: "Assistant",
    kdcube_timeline.CALL_TYPE: "Assistant tool calls",
    kdcube_timeline.RESULT_TYPE: "Tool result",
}
_PATH_ARGUMENTS = ("path", "paths", "filepath", "file", "files")
_READ_TOOLS = frozenset({"read"})
_WRITE_TOOLS = frozenset({"write", "patch", "apply_patch", "edit"})


@dataclass(frozen=True)
class KdcubeTemplate:
    """Separate summaries of the history and of a split turn's beginning.

    The file lists cover only the history that the new summary covers, and nothing earlier.
    """

    turn_start: int = 0
    """Where the policy says that a split turn begins; earlier items belong to the history."""
    ends_heading: str = ""
    """What ends the heading above a split turn's beginning."""

    sections = (
        "Goal",
        "Constraints & Preferences",
        "Progress: Done",
        "Progress: In Progress",
        "Progress: Not Started",
        "Progress: Blocked",
        "Key Decisions",
        "Next Steps",
        "Critical Context",
    )
    turn_sections = TURN_SECTIONS

    def plan_requests(self, material: Material) -> tuple[SummaryRequest, ...]:
        history, turn = self._split_turn(material)
        previous = (material.previous or "").strip() or None
        return make_requests(material, history or None, turn, previous)

    def render_conversation(self, items: Sequence[WindowItem]) -> str:
        return "\n\n".join(filter(None, (_render_item(item).strip() for item in items)))

    def join_answers(self, texts: Mapping[SummaryPart, str], material: Material) -> str:
        text = texts.get(SummaryPart.HISTORY)
        if text is None:
            text = material.previous or NO_HISTORY_TEXT
        else:
            text = append_files(text, *list_touched_files(self._split_turn(material)[0]))
        return append_turn(text, f"{TURN_HEADING}{self.ends_heading}", texts)

    def _split_turn(
        self, material: Material
    ) -> tuple[tuple[WindowItem, ...], tuple[WindowItem, ...]]:
        history: list[WindowItem] = []
        turn: list[WindowItem] = []
        for item in material.removed_items:
            if kdcube_timeline.is_summary_entry(item.block):
                continue
            is_turn = item.position >= self.turn_start and item.position in material.prefix
            (turn if is_turn else history).append(item)
        return tuple(history), tuple(turn)


def list_touched_files(items: Iterable[WindowItem]) -> tuple[list[str], list[str]]:
    """Return the files that calls only read, and those they modified, sorted.

    The last part of a tool's name decides.
    """
    read, modified = set[str](), set[str]()
    for item in items:
        if isinstance(item.block, ToolCall):
            tool = item.block.name.rpartition(".")[2]
            into = read if tool in _READ_TOOLS else modified if tool in _WRITE_TOOLS else None
            if into is not None:
                into.update(_iter_paths(read_arguments(item.block)))
    return sorted(read - modified), sorted(modified)


def _iter_paths(arguments: JsonValue) -> Iterator[str]:
    """Yield the strings under a path's name, at any depth."""
    if not isinstance(arguments, dict):
        return
    for name in _PATH_ARGUMENTS:
        value = arguments.get(name)
        for path in value if isinstance(value, list) else [value]:
            if isinstance(path, str) and path.strip():
                yield path.strip()
            else:
                yield from _iter_paths(path)


def _render_item(item: WindowItem) -> str:
    block, is_hidden = item.block, kdcube_timeline.is_hidden_entry(item.block)
    if isinstance(block, ToolCall) and not is_hidden:
        arguments = ", ".join(
            f"{name}={json.dumps(value, ensure_ascii=False)}"
            for name, value in read_arguments(block).items()
        )
        return f"[{_LABELS[kdcube_timeline.CALL_TYPE]}]: {block.name}({arguments})"
    text = (kdcube_timeline.find_replacement(block) if is_hidden else block.text).strip()
    label = _LABELS.get(kdcube_timeline.find_type(block))
    if label is None:
        return f"[Block] {_write_header(item)}\n{text}"
    return f"[{label}]: {text or f'({_write_header(item)})'}"


def _write_header(item: WindowItem) -> str:
    known = kdcube_timeline.describe_entry(item)
    return " | ".join(f"{name}={value}" for name, value in known.items() if value)
