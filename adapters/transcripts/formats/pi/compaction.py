"""Reads a compaction of pi: its summary, and the first kept entry."""

from typing import Any

from .....domain.compaction_events import Trigger
from ..reading.fields import JsonDict, MalformedError, get_field, json_name, require_field
from ..steps import SourceCompaction
from .branch_tree import BranchNode, BranchTree, find_kept_from, match_kept
from .entries import digest_message

_MESSAGES_ENCRYPTED = "what the provider keeps in place of the messages is encrypted"
FIRST_KEPT_MISSING = "the entry from which on messages stayed is not above it"
_SOME_KEPT_MISSING = "some of the messages that stayed are not in the file"


def read_compaction_entry(
    entry: JsonDict, node: BranchNode, tree: BranchTree, places: list[BranchNode | None]
) -> SourceCompaction:
    kept, partial = _find_kept(entry, node, tree, places)
    preserved = get_field(entry, "preserveData", dict)
    if preserved and preserved.get("openaiRemoteCompaction") is not None:
        partial = _MESSAGES_ENCRYPTED
    return SourceCompaction(
        f"{node.id}:compaction",
        Trigger.THRESHOLD,  # the default if the source names no trigger
        require_field(entry, "summary", str),
        kept,
        pre_tokens=get_field(entry, "tokensBefore", int),
        post_tokens=get_field(entry, "tokensAfter", int),
        source_time=get_field(entry, "timestamp", str),
        partial_reason=partial,
    )


def _find_kept(
    entry: JsonDict, node: BranchNode, tree: BranchTree, places: list[BranchNode | None]
) -> tuple[tuple[str, ...], str | None]:
    tail = get_field(entry, "retainedTail", list)
    if tail is not None:
        kept, is_all = match_kept(node, [digest_message(_message_of(one)) for one in tail])
        return kept, None if is_all else _SOME_KEPT_MISSING
    index = get_field(entry, "firstKeptEntryIndex", int)
    if index is not None:
        # The header counts as an entry: a compaction that keeps from there keeps everything.
        following = (places[place] for place in range(max(0, index), len(places)))
        first = next(filter(None, following), None)
        found = find_kept_from(node, first)
        return found or (), None if found is not None or first is node else FIRST_KEPT_MISSING
    id = get_field(entry, "firstKeptEntryId", str)
    if id is None or id == node.id:
        return (), None
    found = find_kept_from(node, tree.nodes.get(id))
    return found or (), None if found is not None else FIRST_KEPT_MISSING


def _message_of(one: Any) -> JsonDict:
    if isinstance(one, dict):
        return one
    raise MalformedError(f"retainedTail: expected objects, got {json_name(one)}")
