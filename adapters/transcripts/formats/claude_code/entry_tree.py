"""Tracks which entries of a conversation are in its context, by parent pointers and rewinds.

Every entry names the one that it follows, so a transcript is a tree. Nearly all branches are
parallel tool calls, whose entries are all in context, in file order. The user rewound only if a
later prompt leaves out earlier messages.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .....domain.compaction_events import Trigger
from ..fields import JsonDict, get_field, require_field
from ..json_lines import SourceLine
from ..steps import ReplacementText, SourceShortening

MAX_SEGMENT_ENTRIES = 1_000
"""Entries of the longest preserved segment that is followed."""


@dataclass(slots=True, eq=False)
class EntryNode:
    """An entry of the tree. Its parent precedes it in the file, so no chain has a cycle."""

    id: str
    context: "EntryContext"
    parent: "EntryNode | None" = None
    nearest_above: "EntryNode | None" = None
    """The parent, or a shortcut to the newest ancestor in context."""
    is_root: bool = False
    previous_id: str | None = None
    """The nearest kept ancestor, if its parent is not kept; empty if there is none."""
    skipped_parent_id: str | None = None
    """For a skipped entry, the entry that its children follow instead."""
    index: int = -1
    message_count: int = 0
    """The number of prompts and messages that began in context up to here."""
    root_count: int = 0
    """The number of entries in context up to here without an ancestor in context."""
    last_id: str | None = None
    """The newest entry with blocks up to here."""
    calls: list[tuple[str, bool]] = field(default_factory=list)
    """Tool calls that the entry made or answered, and whether each was open before."""


class EntryContext:
    """The entries of one conversation that are in context, in file order."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.nodes: list[EntryNode] = []

    @property
    def last_id(self) -> str | None:
        """The newest entry with blocks."""
        return self.nodes[-1].last_id if self.nodes else None

    def is_in_context(self, node: EntryNode) -> bool:
        """Return whether the entry is in context. Once removed, it never returns."""
        return 0 <= node.index < len(self.nodes) and self.nodes[node.index] is node

    def add_entry(self, node: EntryNode, *, begins: bool = False, blocks: bool = True) -> None:
        """Add an entry; `begins` marks a prompt, or the first entry of a message."""
        last = self.nodes[-1] if self.nodes else EntryNode("", self)
        branch, end = self._find_nearest(node)
        node.message_count = last.message_count + begins
        node.root_count = last.root_count + (blocks and branch is None and end.is_root)
        node.last_id = node.id if blocks else last.last_id
        node.index = len(self.nodes)
        self.nodes.append(node)

    def count_staying(self, node: EntryNode) -> int | None:
        """Return the number of entries that stay in context before this one; None if all do.

        Entries on another branch also stay if they only call tools, or answer calls, for a message
        that stays: these are parallel calls.
        """
        if not self.nodes:
            return None
        last = self.nodes[-1]
        branch, end = self._find_nearest(node)
        if branch:
            return branch.index + 1 if last.message_count > branch.message_count else None
        # A second root is a new beginning only if the rest is connected.
        return 0 if end.is_root and last.root_count == 1 and last.message_count else None

    def rewind(self, stay: int) -> list[EntryNode]:
        """Remove the newest entries from context and return them, newest first."""
        gone = self.nodes[stay:]
        del self.nodes[stay:]
        return gone[::-1]

    def _find_nearest(self, start: EntryNode) -> tuple[EntryNode | None, EntryNode]:
        """Return the nearest ancestor in context, and the last node on the way there."""
        node = start
        passed = [start]
        while node.nearest_above:
            node = node.nearest_above
            if self.is_in_context(node):
                break
            passed.append(node)
        for one in passed:
            if one is not node:
                one.nearest_above = node
        return (node if node is not start and self.is_in_context(node) else None), node


class EntryTree:
    def __init__(self) -> None:
        self.nodes: dict[str, EntryNode] = {}

    def add(self, id: str, parent: str | None, context: EntryContext, *, rooted: bool) -> EntryNode:
        """Add an entry. A parent that is unknown now counts as missing, even if it comes later."""
        above = self.nodes.get(parent) if parent else None
        up = above if above and above.context is context else None
        follows = above.skipped_parent_id if above else None
        rooted = rooted or above is not up
        node = EntryNode(
            id, context, parent=above, nearest_above=up, is_root=rooted, previous_id=follows
        )
        self.nodes[id] = node
        return node

    def keep(self, ids: list[str], summary: EntryNode) -> None:
        """Keep these entries in context, as descendants of the summary."""
        for id in ids:
            node = self.nodes.get(id)
            if (
                node
                and node.context is summary.context
                and node not in (summary, summary.nearest_above)
            ):
                node.index, node.nearest_above = -1, summary

    def find_segment(self, head: str, tail: str) -> list[str]:
        """Return the ids from head to tail, oldest first; empty if tail does not lead to head."""
        ids: list[str] = []
        node = self.nodes.get(tail)
        while node and len(ids) < MAX_SEGMENT_ENTRIES:
            ids.append(node.id)
            if node.id == head:
                return ids[::-1]
            node = node.parent
        return []


_METADATA = "compactMetadata."


@dataclass(slots=True)
class PendingCompaction:
    """A compaction whose summary has not been read yet."""

    line: SourceLine
    node: EntryNode
    trigger: Trigger = Trigger.THRESHOLD  # the default if the source names no trigger
    pre_tokens: int | None = None
    post_tokens: int | None = None
    time: str | None = None
    kept_ids: list[str] = field(default_factory=list)
    is_partial: bool = False
    """Whether older entries stay in context."""
    partial_reason: str | None = None
    """What the entry leaves out."""
    later_ids: list[str] = field(default_factory=list)
    """Ids of entries with blocks between the boundary and its summary; they stay too."""


def read_boundary(
    entry: JsonDict, line: SourceLine, node: EntryNode, tree: EntryTree
) -> PendingCompaction:
    metadata = get_field(entry, "compactMetadata", dict) or {}
    kept = _kept_ids(metadata, tree)
    return PendingCompaction(
        line=line,
        node=node,
        trigger=_read_trigger(metadata, _METADATA),
        pre_tokens=get_field(metadata, "preTokens", int, _METADATA),
        post_tokens=get_field(metadata, "postTokens", int, _METADATA),
        time=get_field(entry, "timestamp", str),
        kept_ids=kept or [],
        is_partial=kept is None or metadata.get("messagesSummarized") is not None,
    )


def _kept_ids(metadata: JsonDict, tree: EntryTree) -> list[str] | None:
    """Return the ids of kept entries; None if something is kept but not listed."""
    messages = get_field(metadata, "preservedMessages", dict, _METADATA)
    if messages is not None:
        # `uuids` is one path through the tree; `allUuids` includes the parallel branches.
        field = "allUuids" if messages.get("allUuids") is not None else "uuids"
        return [
            id
            for id in require_field(messages, field, list, f"{_METADATA}preservedMessages.")
            if isinstance(id, str)
        ]
    segment = get_field(metadata, "preservedSegment", dict, _METADATA)
    if segment is None:
        return []
    within = f"{_METADATA}preservedSegment."
    head = require_field(segment, "headUuid", str, within)
    return tree.find_segment(head, require_field(segment, "tailUuid", str, within)) or None


CLEARED_RESULT_TEXT = "[Old tool result content cleared]"
"""The text that the model sees instead of a cleared tool result."""


def read_cleared(entry: JsonDict, key: str, answered: Mapping[str, str]) -> SourceShortening:
    """Return what a `microcompact_boundary` cleared; `answered` has the entry of each result."""
    within = "microcompactMetadata"
    metadata = get_field(entry, within, dict) or {}
    within += "."
    before = get_field(metadata, "preTokens", int, within)
    saved = get_field(metadata, "tokensSaved", int, within)
    calls = get_field(metadata, "compactedToolIds", list, within) or []
    attachments = get_field(metadata, "clearedAttachmentUUIDs", list, within) or []
    return SourceShortening(
        key=key,
        trigger=_read_trigger(metadata, within),
        replacements=(
            *(
                ReplacementText(answered[id], CLEARED_RESULT_TEXT, id)
                for id in _texts(calls)
                if id in answered
            ),
            *(ReplacementText(id, CLEARED_RESULT_TEXT) for id in _texts(attachments)),
        ),
        pre_tokens=before,
        post_tokens=None if before is None or saved is None else max(0, before - saved),
        source_time=get_field(entry, "timestamp", str),
    )


def read_replaced(entry: JsonDict, key: str, answered: Mapping[str, str]) -> SourceShortening:
    """Return the texts that a `content-replacement` entry shows instead of tool results."""
    instead: list[ReplacementText] = []
    for one in require_field(entry, "replacements", list):
        match one:
            case {"toolUseId": str(id), "replacement": str(text)} if id in answered:
                instead.append(ReplacementText(answered[id], text, id))
    return SourceShortening(key, Trigger.THRESHOLD, tuple(instead))


SHORTENING_READERS: dict[str, Callable[[JsonDict, str, Mapping[str, str]], SourceShortening]] = {
    "system/microcompact_boundary": read_cleared,
    "content-replacement": read_replaced,
}


def _read_trigger(metadata: JsonDict, within: str) -> Trigger:
    manual = get_field(metadata, "trigger", str, within) == "manual"
    return Trigger.MANUAL if manual else Trigger.THRESHOLD


def _texts(values: list[Any]) -> list[str]:
    return [value for value in values if isinstance(value, str)]
