"""What Claude Code says of its compactions: why, how much, what stays, and what is shortened."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .....domain.compaction_events import Trigger
from ..json_lines import Line
from ..reading.fields import Item, take, take_optional
from ..steps import Instead, Shortened
from .tree import Node, Tree

_METADATA = "compactMetadata."


@dataclass(slots=True)
class Boundary:
    """A compaction whose summary was not read yet."""

    line: Line
    node: Node
    trigger: Trigger = Trigger.THRESHOLD  # where the source does not say, nobody asked for it
    pre_tokens: int | None = None
    post_tokens: int | None = None
    time: str | None = None
    kept: list[str] = field(default_factory=list)
    """Ids of older entries that stay in context."""
    partial: bool = False
    """Says that older entries stay in context."""
    untold: str | None = None
    """What it does not say."""
    since: list[str] = field(default_factory=list)
    """Ids of entries with blocks that came before the summary did: they stay, too."""


def boundary_of(entry: Item, line: Line, node: Node, tree: Tree) -> Boundary:
    """What a `compact_boundary` entry says."""
    metadata = take_optional(entry, "compactMetadata", dict) or {}
    kept = _kept(metadata, tree)
    return Boundary(
        line=line,
        node=node,
        trigger=_trigger(metadata, _METADATA),
        pre_tokens=take_optional(metadata, "preTokens", int, _METADATA),
        post_tokens=take_optional(metadata, "postTokens", int, _METADATA),
        time=take_optional(entry, "timestamp", str),
        kept=kept or [],
        partial=kept is None or metadata.get("messagesSummarized") is not None,
    )


def _kept(metadata: Item, tree: Tree) -> list[str] | None:
    """Ids of what stays; None where it is said that something does, and not what."""
    messages = take_optional(metadata, "preservedMessages", dict, _METADATA)
    if messages is not None:
        # `uuids` is one way through the tree; `allUuids` has the parallel branches as well.
        field = "allUuids" if messages.get("allUuids") is not None else "uuids"
        return [
            id
            for id in take(messages, field, list, f"{_METADATA}preservedMessages.")
            if isinstance(id, str)
        ]
    segment = take_optional(metadata, "preservedSegment", dict, _METADATA)
    if segment is None:
        return []
    within = f"{_METADATA}preservedSegment."
    head = take(segment, "headUuid", str, within)
    return tree.segment(head, take(segment, "tailUuid", str, within)) or None


CLEARED = "[Old tool result content cleared]"
"""What the model sees in the place of a tool result that was cleared."""


def cleared_of(entry: Item, key: str, answered: Mapping[str, str]) -> Shortened:
    """What a `microcompact_boundary` entry cleared; `answered` has the entry of each result."""
    within = "microcompactMetadata"
    metadata = take_optional(entry, within, dict) or {}
    within += "."
    before = take_optional(metadata, "preTokens", int, within)
    saved = take_optional(metadata, "tokensSaved", int, within)
    calls = take_optional(metadata, "compactedToolIds", list, within) or []
    attachments = take_optional(metadata, "clearedAttachmentUUIDs", list, within) or []
    return Shortened(
        key=key,
        trigger=_trigger(metadata, within),
        instead=(
            *(Instead(answered[id], CLEARED, id) for id in _texts(calls) if id in answered),
            *(Instead(id, CLEARED) for id in _texts(attachments)),
        ),
        pre_tokens=before,
        post_tokens=None if before is None or saved is None else max(0, before - saved),
        source_time=take_optional(entry, "timestamp", str),
    )


def replaced_of(entry: Item, key: str, answered: Mapping[str, str]) -> Shortened:
    """What a `content-replacement` entry shows in the place of tool results."""
    instead: list[Instead] = []
    for one in take(entry, "replacements", list):
        match one:
            case {"toolUseId": str(id), "replacement": str(text)} if id in answered:
                instead.append(Instead(answered[id], text, id))
            case _:
                pass
    return Shortened(key, Trigger.THRESHOLD, tuple(instead))


SHORTENING: dict[str, Callable[[Item, str, Mapping[str, str]], Shortened]] = {
    "system/microcompact_boundary": cleared_of,
    "content-replacement": replaced_of,
}
"""Types of entries that shorten earlier ones, and how they tell which."""


def _trigger(metadata: Item, within: str) -> Trigger:
    manual = take_optional(metadata, "trigger", str, within) == "manual"
    return Trigger.MANUAL if manual else Trigger.THRESHOLD


def _texts(values: list[Any]) -> list[str]:
    return [value for value in values if isinstance(value, str)]
