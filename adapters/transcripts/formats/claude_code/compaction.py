"""What Claude Code says of its compactions: why, how much, what stays, and what is shortened."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .....domain.compaction_events import Trigger
from ..json_lines import SourceLine
from ..reading.fields import JsonDict, get_field, require_field
from ..steps import ReplacementText, SourceShortening
from .entry_tree import EntryNode, EntryTree

_METADATA = "compactMetadata."


@dataclass(slots=True)
class PendingCompaction:
    """A compaction whose summary was not read yet."""

    line: SourceLine
    node: EntryNode
    trigger: Trigger = Trigger.THRESHOLD  # where the source does not say, nobody asked for it
    pre_tokens: int | None = None
    post_tokens: int | None = None
    time: str | None = None
    kept_ids: list[str] = field(default_factory=list)
    """Ids of older entries that stay in context."""
    is_partial: bool = False
    """Says that older entries stay in context."""
    partial_reason: str | None = None
    """What it does not say."""
    later_ids: list[str] = field(default_factory=list)
    """Ids of entries with blocks that came before the summary did: they stay, too."""


def read_boundary(
    entry: JsonDict, line: SourceLine, node: EntryNode, tree: EntryTree
) -> PendingCompaction:
    """What a `compact_boundary` entry says."""
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
    """Ids of what stays; None where it is said that something does, and not what."""
    messages = get_field(metadata, "preservedMessages", dict, _METADATA)
    if messages is not None:
        # `uuids` is one way through the tree; `allUuids` has the parallel branches as well.
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
"""What the model sees in the place of a tool result that was cleared."""


def read_cleared(entry: JsonDict, key: str, answered: Mapping[str, str]) -> SourceShortening:
    """What a `microcompact_boundary` entry cleared; `answered` has the entry of each result."""
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
    """What a `content-replacement` entry shows in the place of tool results."""
    instead: list[ReplacementText] = []
    for one in require_field(entry, "replacements", list):
        match one:
            case {"toolUseId": str(id), "replacement": str(text)} if id in answered:
                instead.append(ReplacementText(answered[id], text, id))
            case _:
                pass
    return SourceShortening(key, Trigger.THRESHOLD, tuple(instead))


SHORTENING_READERS: dict[str, Callable[[JsonDict, str, Mapping[str, str]], SourceShortening]] = {
    "system/microcompact_boundary": read_cleared,
    "content-replacement": read_replaced,
}
"""Types of entries that shorten earlier ones, and how they tell which."""


def _read_trigger(metadata: JsonDict, within: str) -> Trigger:
    manual = get_field(metadata, "trigger", str, within) == "manual"
    return Trigger.MANUAL if manual else Trigger.THRESHOLD


def _texts(values: list[Any]) -> list[str]:
    return [value for value in values if isinstance(value, str)]
