"""Writes pi's summaries: one of the history, one of a split turn's beginning, file lists."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...blocks import AnyBlock, Kind, Text, ToolCall, ToolResult
from ...compaction_events import Digest
from ...item import Item
from ...messages import Message, Role, group_messages
from ..summarizer import Material, SummaryPart, SummaryRequest

_MAX_RESULT_UNITS = 2_000
"""The UTF-16 units of a tool's answer that the summarizer is shown."""
_NO_HISTORY = "No prior history."
_TURN_HEADING = "**Turn Context (split turn):**"
_READ_TOOLS, _WRITE_TOOLS = frozenset({"read"}), frozenset({"write", "edit"})
"""pi's own tools; each has its file in `path`."""
_LISTS = re.compile(r"(?:\n\n<(read|modified)-files>\n[^<>]*\n</\1-files>)+\Z")


@dataclass(frozen=True)
class PiTemplate:
    """pi-mono's summary of a checkpoint."""

    keeps_previous: bool = True
    """Whether to keep the earlier summary if only a turn's beginning leaves; pi loses it."""

    sections: tuple[str, ...] = (
        "Goal",
        "Constraints & Preferences",
        "Progress",
        "Progress: Done",
        "Progress: In Progress",
        "Progress: Blocked",
        "Key Decisions",
        "Next Steps",
        "Critical Context",
    )
    turn_sections: tuple[str, ...] = ("Original Request", "Early Progress", "Context for Suffix")

    def plan_requests(self, material: Material) -> tuple[SummaryRequest, ...]:
        history = tuple(
            item for item in material.removed_items if item.position not in material.prefix
        )
        turn = tuple(item for item in material.removed_items if item.position in material.prefix)
        asked: list[SummaryRequest] = []
        if history or not turn:
            # Even without history: an update of a summary is a request all the same.
            asked.append(
                SummaryRequest(SummaryPart.HISTORY, history, material.budget, material.previous)
            )
        if turn:
            asked.append(
                SummaryRequest(SummaryPart.TURN, turn, material.turn_budget or material.budget)
            )
        return tuple(asked)

    def render_conversation(self, items: Sequence[Item]) -> str:
        return "\n\n".join(
            line for message in group_messages(items) for line in _iter_lines(message) if line
        )

    def join_answers(self, texts: Mapping[SummaryPart, str], material: Material) -> str:
        text = texts.get(SummaryPart.HISTORY)
        if text is None:
            text = (material.previous if self.keeps_previous else None) or _NO_HISTORY
            # The lists of files are written again, for everything that left.
            text = _LISTS.sub("", text)
        if SummaryPart.TURN in texts:
            text += f"\n\n---\n\n{_TURN_HEADING}\n\n{texts[SummaryPart.TURN]}"
        return text + _write_file_lists(material.digest)


def add_touched_files(items: Iterable[Item], previous: Digest) -> Digest:
    """Return the files that pi's own tools touched, added to the previous ones.

    Failed calls count too; modified files are not listed as read.
    """
    read, written = set(previous.read_files), set(previous.modified_files)
    for item in items:
        if isinstance(call := item.block, ToolCall):
            path = call.parse_arguments().get("path")
            if isinstance(path, str) and path:
                if call.name in _READ_TOOLS:
                    read.add(path)
                elif call.name in _WRITE_TOOLS:
                    written.add(path)
    return previous.model_copy(
        update={
            "read_files": tuple(sorted(read - written, key=_make_sort_key)),
            "modified_files": tuple(sorted(written, key=_make_sort_key)),
        }
    )


def _make_sort_key(name: str) -> bytes:
    """Sort by UTF-16 units, as JavaScript does."""
    return name.encode("utf-16-be", "surrogatepass")


def _write_file_lists(digest: Digest) -> str:
    lists = {"read-files": digest.read_files, "modified-files": digest.modified_files}
    return "".join(
        f"\n\n<{tag}>\n" + "\n".join(names) + f"\n</{tag}>" for tag, names in lists.items() if names
    )


def _iter_lines(message: Message) -> Iterable[str]:
    match message.role:
        case Role.TOOL_RESULT:
            yield _add_label(
                "Tool result", _shorten("".join(map(_read_text, _list_blocks(message))))
            )
        case Role.ASSISTANT:
            yield _add_label("Assistant thinking", _join_kind(message, Kind.THINKING, "\n"))
            yield _add_label("Assistant", _join_kind(message, Kind.ASSISTANT, "\n"))
            calls = (b for b in _list_blocks(message) if isinstance(b, ToolCall))
            yield _add_label("Assistant tool calls", "; ".join(map(_write_call, calls)))
        case _:
            yield _add_label("User", "".join(map(_read_text, _list_blocks(message))))


def _add_label(label: str, text: str) -> str:
    return f"[{label}]: {text}" if text else ""


def _list_blocks(message: Message) -> Iterable[AnyBlock]:
    return (item.block for item in message.items)


def _join_kind(message: Message, kind: Kind, between: str) -> str:
    return between.join(block.text for block in _list_blocks(message) if block.kind is kind)


def _read_text(block: AnyBlock) -> str:
    if not isinstance(block, ToolResult) or isinstance(block.content, str):
        return block.text
    return "".join(part.text for part in block.content if isinstance(part, Text))


def _write_call(call: ToolCall) -> str:
    arguments: dict[str, Any] = call.parse_arguments()
    told = ", ".join(f"{name}={_COMPACT.encode(value)}" for name, value in arguments.items())
    return f"{call.name}({told})"


_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def _shorten(text: str) -> str:
    units = text.encode("utf-16-le", "surrogatepass")
    left_out = len(units) // 2 - _MAX_RESULT_UNITS
    if left_out <= 0:
        return text
    shown = units[: 2 * _MAX_RESULT_UNITS].decode("utf-16-le", "surrogatepass")
    return f"{shown}\n\n[... {left_out} more characters truncated]"
