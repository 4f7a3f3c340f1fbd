"""Reads what Claude Code removed from context: compactions, and results that it shortened."""

from collections.abc import Callable, Mapping

from .....domain.compaction_events import Trigger
from ..fields import JsonDict, get_field, require_field
from ..json_lines import SourceLine
from ..steps import ReplacementText, SourceCompaction
from .conversations import EntryNode, PendingCompaction

MAX_SEGMENT_ENTRIES = 1_000
"""Entries of the longest preserved segment that is followed."""
CLEARED_RESULT_TEXT = "[Old tool result content cleared]"
"""The text that the model sees instead of a cleared tool result."""

_Nodes = Mapping[str, EntryNode]


def read_boundary(
    entry: JsonDict, line: SourceLine, node: EntryNode, nodes: _Nodes
) -> PendingCompaction:
    """Read a boundary, or a summary without one."""
    within = "compactMetadata."
    metadata = get_field(entry, "compactMetadata", dict) or {}
    kept = _read_kept_ids(metadata, nodes)
    step = SourceCompaction(
        key=f"{node.id}:compacted",
        trigger=_read_trigger(metadata, within),
        summary=None,
        pre_tokens=get_field(metadata, "preTokens", int, within),
        post_tokens=get_field(metadata, "postTokens", int, within),
        source_time=get_field(entry, "timestamp", str),
    )
    is_partial = kept is None or metadata.get("messagesSummarized") is not None
    return PendingCompaction(line, node, step, kept or [], is_partial)


def _read_kept_ids(metadata: JsonDict, nodes: _Nodes) -> list[str] | None:
    """Return the ids of kept entries; None if something is kept but not listed."""
    within = "compactMetadata."
    messages = get_field(metadata, "preservedMessages", dict, within)
    if messages is not None:
        # `uuids` is one path through the tree; `allUuids` includes the parallel branches.
        field = "allUuids" if messages.get("allUuids") is not None else "uuids"
        return _read_texts(messages, field, f"{within}preservedMessages.")
    segment = get_field(metadata, "preservedSegment", dict, within)
    if segment is None:
        return []
    within += "preservedSegment."
    head = require_field(segment, "headUuid", str, within)
    return _find_segment(nodes, head, require_field(segment, "tailUuid", str, within)) or None


def _find_segment(nodes: _Nodes, head: str, tail: str) -> list[str]:
    """Return the ids from head to tail, oldest first; empty if tail does not lead to head."""
    ids: list[str] = []
    node = nodes.get(tail)
    while node and len(ids) < MAX_SEGMENT_ENTRIES:
        ids.append(node.id)
        if node.id == head:
            return ids[::-1]
        node = node.parent
    return []


def keep_after_summary(nodes: _Nodes, ids: list[str], summary: EntryNode) -> None:
    """Keep these entries in context, as descendants of the summary."""
    for node in map(nodes.get, ids):
        if (
            node
            and node.conversation is summary.conversation
            and node not in (summary, summary.nearest_above)
        ):
            node.index, node.nearest_above = -1, summary


def _read_cleared(entry: JsonDict, key: str, answered: Mapping[str, str]) -> SourceCompaction:
    """Return what a `microcompact_boundary` cleared; `answered` has the entry of each result."""
    metadata = get_field(entry, "microcompactMetadata", dict) or {}
    within = "microcompactMetadata."
    before = get_field(metadata, "preTokens", int, within)
    saved = get_field(metadata, "tokensSaved", int, within)
    calls = _read_texts(metadata, "compactedToolIds", within, optional=True)
    attachments = _read_texts(metadata, "clearedAttachmentUUIDs", within, optional=True)
    return SourceCompaction(
        key=key,
        trigger=_read_trigger(metadata, within),
        summary=None,
        is_shortening=True,
        replacements=(
            *(
                ReplacementText(answered[id], CLEARED_RESULT_TEXT, id)
                for id in calls
                if id in answered
            ),
            *(ReplacementText(id, CLEARED_RESULT_TEXT) for id in attachments),
        ),
        pre_tokens=before,
        post_tokens=None if before is None or saved is None else max(0, before - saved),
        source_time=get_field(entry, "timestamp", str),
    )


def _read_replaced(entry: JsonDict, key: str, answered: Mapping[str, str]) -> SourceCompaction:
    """Return the texts that a `content-replacement` entry shows instead of tool results."""
    instead: list[ReplacementText] = []
    for one in require_field(entry, "replacements", list):
        match one:
            case {"toolUseId": str(id), "replacement": str(text)} if id in answered:
                instead.append(ReplacementText(answered[id], text, id))
    texts = tuple(instead)
    return SourceCompaction(key, Trigger.THRESHOLD, None, replacements=texts, is_shortening=True)


SHORTENING_READERS: dict[str, Callable[[JsonDict, str, Mapping[str, str]], SourceCompaction]] = {
    "system/microcompact_boundary": _read_cleared,
    "content-replacement": _read_replaced,
}


def _read_trigger(metadata: JsonDict, within: str) -> Trigger:
    manual = get_field(metadata, "trigger", str, within) == "manual"
    return Trigger.MANUAL if manual else Trigger.THRESHOLD  # the default if none is named


def _read_texts(owner: JsonDict, field: str, within: str, *, optional: bool = False) -> list[str]:
    """Return the texts in a list, without its other values."""
    read = get_field if optional else require_field
    return [value for value in read(owner, field, list, within) or [] if isinstance(value, str)]
