"""What a `compact_boundary` entry of Claude Code says: why, how much, and what stays."""

from dataclasses import dataclass, field

from ....domain.compaction_events import Trigger
from ..json_lines import Line
from .entries import Item, take, take_optional
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
    since: list[str] = field(default_factory=list)
    """Ids of entries with blocks that came before the summary did: they stay, too."""


def boundary_of(entry: Item, line: Line, node: Node, tree: Tree) -> Boundary:
    """What a `compact_boundary` entry says."""
    metadata = take_optional(entry, "compactMetadata", dict) or {}
    manual = take_optional(metadata, "trigger", str, _METADATA) == "manual"
    kept = _kept(metadata, tree)
    return Boundary(
        line=line,
        node=node,
        trigger=Trigger.MANUAL if manual else Trigger.THRESHOLD,
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
