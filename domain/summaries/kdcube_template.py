"""Reads blocks as entries of kdcube's timeline, and writes kdcube's summaries of them."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from json.encoder import encode_basestring_ascii
from typing import Any, NamedTuple

from pydantic import JsonValue

from ..blocks import PROMPT_KINDS, AnyBlock, Block, BlockKind, ToolCall
from ..digest import read_arguments
from ..item import WindowItem
from .summarizer import Material, SummaryPart, SummaryRequest
from .templates import NO_HISTORY_TEXT, TURN_SECTIONS, append_files, append_turn, make_requests

TURN_HEADING = "Turn Context (split turn)"
SUMMARY_TYPE, HEADER_TYPE, PROMPT_TYPE = "conv.range.summary", "turn.header", "user.prompt"
CALL_TYPE, RESULT_TYPE, COMPLETION_TYPE = (
    "react.tool.call",
    "react.tool.result",
    "assistant.completion",
)

_FORMAT = "kdcube"
"""The format of blocks whose origin keeps their entry of the timeline."""
_TYPE_BY_KIND = {
    BlockKind.USER: PROMPT_TYPE,
    BlockKind.IMAGE: "user.attachment",
    BlockKind.DOCUMENT: "user.attachment",
    BlockKind.ASSISTANT: COMPLETION_TYPE,
    BlockKind.THINKING: "react.thinking",
    BlockKind.TOOL_CALL: CALL_TYPE,
    BlockKind.TOOL_RESULT: RESULT_TYPE,
    BlockKind.ARTIFACT: "react.artifact",
    BlockKind.NOTE: "react.note",
    BlockKind.DEVELOPER: "system.message",
}
_AUTHOR_BY_KIND = {BlockKind.ASSISTANT: "assistant", BlockKind.DEVELOPER: "system"} | dict.fromkeys(
    PROMPT_KINDS, "user"
)
_LABELS = {
    PROMPT_TYPE: "User",
    "react.note": "Internal Note",
    COMPLETION_TYPE: "Assistant",
    CALL_TYPE: "Assistant tool calls",
    RESULT_TYPE: "Tool result",
}
_PATH_ARGUMENTS = ("path", "paths", "filepath", "file", "files")
_READ_TOOLS = frozenset({"read"})
_WRITE_TOOLS = frozenset({"write", "patch", "apply_patch", "edit"})


class TimelineEntry(NamedTuple):
    """The fields of a block's entry in kdcube's timeline, without the text."""

    type: str
    author: str
    """In lower case; empty if unknown."""
    is_hidden: bool
    replacement: str
    """The text that a hidden block shows in its place; empty if it shows nothing."""
    known: Mapping[str, Any]
    """The entry that the block was imported from; empty if it was not imported."""


def read_timeline_entry(block: AnyBlock) -> TimelineEntry:
    """Return a block's entry, or what its kind says if it was not imported."""
    known, kind = _parse_entry(block), block.kind
    author = known.get("author") or known.get("role") if known else _AUTHOR_BY_KIND.get(kind)
    meta = known.get("meta")
    meta = meta if isinstance(meta, dict) else {}
    return TimelineEntry(
        type=str(known.get("type") or _TYPE_BY_KIND[kind]),
        author=str(author or "").strip().lower(),
        is_hidden=bool(known.get("hidden") or meta.get("hidden")),
        replacement=str(known.get("replacement_text") or meta.get("replacement_text") or ""),
        known=known,
    )


def _parse_entry(block: AnyBlock) -> dict[str, Any]:
    origin = block.origin
    if origin is None or origin.format != _FORMAT or origin.entry is None:
        return {}
    try:
        known = json.loads(origin.entry)
    except (ValueError, RecursionError):
        return {}  # an import may keep any text here
    return known if isinstance(known, dict) else {}


def find_turn(item: WindowItem, known: Mapping[str, Any]) -> str:
    return str(known.get("turn_id") or (f"turn_{item.turn}" if item.turn else ""))


def render_shown_text(block: AnyBlock) -> str:
    """Return what a reader sees: the replacement text if the block is hidden, or else its text.

    The text of a tool call is the whole request in the timeline's JSON.
    """
    if block.origin is not None:
        entry = read_timeline_entry(block)
        if entry.is_hidden and entry.replacement.strip():
            return entry.replacement
    if not isinstance(block, ToolCall):
        return block.text
    name, call = encode_basestring_ascii(block.name), encode_basestring_ascii(block.tool_call_id)
    return (
        f'{{"tool_id": {name}, "tool_call_id": {call}'
        f', "params": {_escape_to_ascii(block.arguments)}}}'
    )


def _escape_to_ascii(arguments: str) -> str:
    if arguments.isascii():
        return arguments
    try:
        return json.dumps(json.loads(arguments))
    except (ValueError, RecursionError):  # arguments that are not JSON stay as the model wrote them
        return encode_basestring_ascii(arguments)


def is_summary_entry(block: AnyBlock) -> bool:
    return block.origin is not None and read_timeline_entry(block).type == SUMMARY_TYPE


def is_turn_start(block: AnyBlock) -> bool:
    """Check whether the block is a turn's header or a user's message."""
    if block.origin is None:
        return block.kind in PROMPT_KINDS
    entry = read_timeline_entry(block)
    return entry.type in {HEADER_TYPE, PROMPT_TYPE} or entry.author == "user"


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
            if is_summary_entry(item.block):
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
    block, entry = item.block, read_timeline_entry(item.block)
    if isinstance(block, ToolCall) and not entry.is_hidden:
        arguments = ", ".join(
            f"{name}={json.dumps(value, ensure_ascii=False)}"
            for name, value in read_arguments(block).items()
        )
        return f"[{_LABELS[CALL_TYPE]}]: {block.name}({arguments})"
    text = (entry.replacement if entry.is_hidden else block.text).strip()
    label = _LABELS.get(entry.type)
    if label is None:
        return f"[Block] {_write_header(item, entry)}\n{text}"
    return f"[{label}]: {text or f'({_write_header(item, entry)})'}"


def _write_header(item: WindowItem, entry: TimelineEntry) -> str:
    """Return the line that names a block's type, author and turn, above its text."""
    block, known = item.block, entry.known
    header = {
        "type": entry.type,
        "author": entry.author,
        "hidden": "true" if entry.is_hidden else "",
        "turn": find_turn(item, known),
        "ts": known.get("ts") or (block.origin.time if block.origin else None),
        "path": known.get("path"),
        "mime": known.get("mime"),
        "call_id": known.get("call_id") if isinstance(block, Block) else block.tool_call_id,
    }
    return " | ".join(f"{name}={value}" for name, value in header.items() if value)
