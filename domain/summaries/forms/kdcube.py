"""kdcube's summaries: one of the history, one of a split turn's beginning, file lists below."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pydantic import JsonValue

from ... import timeline
from ...blocks import AnyBlock, ToolCall
from ...digest import arguments_of
from ...item import Item
from ..summariser import Asked, Material, Part

NO_HISTORY = "No prior history."
"""What stands above a split turn's beginning where nothing came before it."""
TURN_CONTEXT = "Turn Context (split turn)"

SECTIONS = (
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
TURN_SECTIONS = ("Original Request", "Early Progress", "Context for Suffix")

LABELS = {
    timeline.PROMPT: "User",
    "react.note": "Internal Note",
    timeline.COMPLETION: "Assistant",
    timeline.CALL: "Assistant tool calls",
    timeline.RESULT: "Tool result",
}
PATHS = ("path", "paths", "filepath", "file", "files")
READS = frozenset({"read"})
WRITES = frozenset({"write", "patch", "apply_patch", "edit"})


class Files(NamedTuple):
    """Files that calls name by a path, in order of their names."""

    read: tuple[str, ...]
    """Only read."""
    modified: tuple[str, ...]


@dataclass(frozen=True)
class KdcubeForm:
    """Of the history and, apart from it, of the beginning of a split turn.

    The file lists below the history's summary are of what it sums up, and of nothing earlier.
    """

    turn_start: int = 0
    """The position where a split turn begins, as the policy has it: what the store takes for the
    turn's beginning and stands in front of it belongs to the history."""
    ends_heading: str = ""
    """What ends the heading above the beginning of a split turn."""

    @property
    def sections(self) -> tuple[str, ...]:
        return SECTIONS

    @property
    def turn_sections(self) -> tuple[str, ...]:
        return TURN_SECTIONS

    def asked(self, material: Material) -> tuple[Asked, ...]:
        history, turn = self._parted(material)
        asked = []
        if history:
            previous = (material.previous or "").strip() or None
            asked.append(Asked(Part.HISTORY, history, material.budget, previous))
        if turn:
            asked.append(Asked(Part.TURN, turn, material.turn_budget or material.budget))
        return tuple(asked)

    def said(self, items: Sequence[Item]) -> str:
        return "\n\n".join(filter(None, (_said(item).strip() for item in items)))

    def joined(self, texts: Mapping[Part, str], material: Material) -> str:
        text = texts.get(Part.HISTORY)
        if text is None:
            text = material.previous or NO_HISTORY
        else:
            text = "\n\n".join([text, *_tags(files_of(self._parted(material)[0]))])
        if Part.TURN in texts:
            heading = f"**{TURN_CONTEXT}{self.ends_heading}**"
            text = f"{text}\n\n---\n\n{heading}\n\n{texts[Part.TURN]}"
        return text

    def _parted(self, material: Material) -> tuple[tuple[Item, ...], tuple[Item, ...]]:
        """The history, and the beginning of the split turn."""
        history: list[Item] = []
        turn: list[Item] = []
        for item in material.gone:
            if timeline.is_summary(item.block):
                continue
            is_turn = item.position >= self.turn_start and item.position in material.prefix
            (turn if is_turn else history).append(item)
        return tuple(history), tuple(turn)


def files_of(items: Iterable[Item]) -> Files:
    """What the calls among the items read and modified, by the last part of the tools' names."""
    read, modified = set[str](), set[str]()
    for item in items:
        if isinstance(item.block, ToolCall):
            tool = item.block.name.rpartition(".")[2]
            into = read if tool in READS else modified if tool in WRITES else None
            if into is not None:
                into.update(_paths(arguments_of(item.block)))
    return Files(tuple(sorted(read - modified)), tuple(sorted(modified)))


def _paths(arguments: JsonValue) -> Iterator[str]:
    """The strings under a path's name, however deep."""
    if not isinstance(arguments, dict):
        return
    for name in PATHS:
        value = arguments.get(name)
        for path in value if isinstance(value, list) else [value]:
            if isinstance(path, str) and path.strip():
                yield path.strip()
            else:
                yield from _paths(path)


def _tags(files: Files) -> Iterator[str]:
    for name, paths in (("read-files", files.read), ("modified-files", files.modified)):
        if paths:
            yield "\n".join([f"<{name}>", *paths, f"</{name}>"])


def _said(item: Item) -> str:
    block, is_hidden = item.block, timeline.is_hidden(item.block)
    if isinstance(block, ToolCall) and not is_hidden:
        arguments = ", ".join(
            f"{name}={json.dumps(value, ensure_ascii=False)}"
            for name, value in arguments_of(block).items()
        )
        return f"[{LABELS[timeline.CALL]}]: {block.name}({arguments})"
    text = (timeline.replacement_of(block) if is_hidden else block.text).strip()
    label = LABELS.get(timeline.type_of(block))
    if label is None:
        return f"[Block] {_header(item, block)}\n{text}"
    return f"[{label}]: {text or f'({_header(item, block)})'}"


def _header(item: Item, block: AnyBlock) -> str:
    """What is known of a block besides its text."""
    known = {
        "type": timeline.type_of(block),
        "author": timeline.author_of(block),
        "hidden": "true" if timeline.is_hidden(block) else "",
        "turn": timeline.turn_of(item),
        "ts": timeline.time_of(block),
        "path": timeline.path_of(block),
        "mime": timeline.mime_of(block),
        "call_id": timeline.call_of(block),
    }
    return " | ".join(f"{name}={value}" for name, value in known.items() if value)
