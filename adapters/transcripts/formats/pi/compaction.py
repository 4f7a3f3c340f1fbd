"""What a compaction of pi says: its summary, and from which entry on the messages stayed."""

from typing import Any

from .....domain.compaction_events import Trigger
from ..reading.fields import Item, MalformedError, json_name, take, take_optional
from ..steps import Compacted
from .entries import digest_of
from .tree import Node, Tree, kept_by_content, kept_from

ENCRYPTED = "what the provider keeps in place of the messages is encrypted"
NOT_FOUND = "the entry from which on messages stayed is not above it"
NOT_ALL_FOUND = "some of the messages that stayed are not in the file"


def compacted(entry: Item, node: Node, tree: Tree, places: list[Node | None]) -> Compacted:
    """The compaction that an entry tells of."""
    kept, partial = _kept(entry, node, tree, places)
    preserved = take_optional(entry, "preserveData", dict)
    if preserved and preserved.get("openaiRemoteCompaction") is not None:
        partial = ENCRYPTED
    return Compacted(
        f"{node.id}:compaction",
        Trigger.THRESHOLD,  # where the source does not say, nobody asked for it
        take(entry, "summary", str),
        kept,
        pre_tokens=take_optional(entry, "tokensBefore", int),
        post_tokens=take_optional(entry, "tokensAfter", int),
        source_time=take_optional(entry, "timestamp", str),
        partial=partial,
    )


def _kept(
    entry: Item, node: Node, tree: Tree, places: list[Node | None]
) -> tuple[tuple[str, ...], str | None]:
    tail = take_optional(entry, "retainedTail", list)
    if tail is not None:
        kept, is_all = kept_by_content(node, [digest_of(_message(one)) for one in tail])
        return kept, None if is_all else NOT_ALL_FOUND
    index = take_optional(entry, "firstKeptEntryIndex", int)
    if index is not None:
        # The header has a place as well: whoever keeps from there keeps everything.
        following = (places[place] for place in range(max(0, index), len(places)))
        first = next(filter(None, following), None)
        found = kept_from(node, first)
        return found or (), None if found is not None or first is node else NOT_FOUND
    id = take_optional(entry, "firstKeptEntryId", str)
    if id is None or id == node.id:
        return (), None
    found = kept_from(node, tree.nodes.get(id))
    return found or (), None if found is not None else NOT_FOUND


def _message(one: Any) -> Item:
    if isinstance(one, dict):
        return one
    raise MalformedError(f"retainedTail: expected objects, got {json_name(one)}")
