"""Reads Claude Code's compactions: trigger, sizes, kept entries and shortened results."""

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
            case _:
                pass
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
