"""Tracks a session's entries as a tree: the branch of each, and what a compaction kept.

An entry after the newest of its parent's branch continues that branch. Any other entry begins a new
branch, and the old branch may continue later.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice, takewhile
from typing import Any

from .....domain.compaction_events import Trigger
from ..fields import JsonDict, MalformedError, find_text, get_field, json_name, require_field
from ..steps import SessionStart, SourceCompaction
from .entries import digest_message, read_spent

MAX_BRANCH_DEPTH = 200
MAX_KEPT_MESSAGES = 10_000


@dataclass(eq=False, slots=True)
class SessionBranch:
    begin: SessionStart
    depth: int = 0
    fork_node: "BranchNode | None" = None
    """The entry at which it leaves another branch; None for the first, and if it shares nothing."""
    newest: "BranchNode | None" = None
    has_content: bool = False
    """Whether it has a user message."""


@dataclass(eq=False, slots=True)
class BranchNode:
    """An entry. Its parent precedes it in the file, so no path up has a cycle."""

    id: str
    parent: "BranchNode | None"
    branch: SessionBranch
    depth: int
    line_hash: int
    message_hash: int | None = None
    """A hash of the entry's message; None if it is not a message."""
    stored_node: "BranchNode | None" = None
    """The nearest node, from this one up, that has a place in the store."""
    message_node: "BranchNode | None" = None
    """The nearest node, from this one up, that is a message."""

    def iter_messages(self) -> "Iterator[BranchNode]":
        """Yield the messages above it, nearest first."""
        node = self.parent and self.parent.message_node
        while node:
            yield node
            node = node.parent and node.parent.message_node

    def is_above(self, other: "BranchNode") -> bool:
        """Return whether the other one is a descendant."""
        node: BranchNode | None = other
        while node and node.branch is not self.branch:
            node = node.branch.fork_node
        return node is not None and self.depth <= node.depth and self is not other


class BranchTree:
    def __init__(self, begin: SessionStart) -> None:
        self.home = SessionBranch(begin)
        self.nodes: dict[str, BranchNode] = {}
        self.newest: BranchNode | None = None

    def add(self, id: str, parent: BranchNode | None, line: int) -> BranchNode:
        branch = self._begin_branch(id, parent)
        node = BranchNode(id, parent, branch, parent.depth + 1 if parent else 0, line)
        if parent:
            node.stored_node, node.message_node = parent.stored_node, parent.message_node
        branch.newest = self.newest = self.nodes[id] = node
        return node

    def set_title(self, title: str) -> None:
        """Set the title of the session and of all later branches."""
        self.home.begin = replace(self.home.begin, title=title)

    def _begin_branch(self, id: str, parent: BranchNode | None) -> SessionBranch:
        home = self.home
        if parent is None:
            if home.newest is None:
                return home
            left, stands = home, None
        elif parent.branch.newest is parent:
            return parent.branch
        else:
            left, stands = parent.branch, parent.stored_node
        if left.depth == MAX_BRANCH_DEPTH:
            raise MalformedError(
                f"parentId: more than {MAX_BRANCH_DEPTH} branches leave one another"
            )
        begin = SessionStart(
            f"{home.begin.key}/branch-{id}",
            title=home.begin.title,
            fork_of=left.begin.key,
            fork_at=stands.id if stands else None,
            project=home.begin.project,
        )
        prompted = stands is not None and left.has_content
        return SessionBranch(begin, left.depth + 1, parent, has_content=prompted)


def find_kept_from(node: BranchNode, first: BranchNode | None) -> tuple[str, ...] | None:
    """Return ids of the messages from `first` to before `node`, at most `MAX_KEPT_MESSAGES`.

    Return None if `first` is not above `node`.
    """
    if first is None or not first.is_above(node):
        return None
    newest = islice(node.iter_messages(), MAX_KEPT_MESSAGES)
    kept = [above.id for above in takewhile(lambda above: above.depth >= first.depth, newest)]
    return tuple(reversed(kept))


def match_kept(node: BranchNode, messages: list[int]) -> tuple[tuple[str, ...], bool]:
    """Return ids of the newest messages above `node` with this content; and whether all match."""
    kept: list[str] = []
    left = messages[-MAX_KEPT_MESSAGES:]
    for above in islice(node.iter_messages(), 2 * len(left)):
        if left and above.message_hash == left[-1]:
            kept.append(above.id)
            left.pop()
    return tuple(reversed(kept)), not left


_MESSAGES_ENCRYPTED = "what the provider keeps in place of the messages is encrypted"
FIRST_KEPT_MISSING = "the entry from which on messages stayed is not above it"
_ARCHIVE_MARKS = str.maketrans({"\u2588": "\n", "\x0e": None, "\x0f": None})
"""The line ends of an archived history, and the marks of text that its images show dim."""
_SOME_KEPT_MISSING = "some of the messages that stayed are not in the file"


def read_compaction_entry(
    entry: JsonDict, node: BranchNode, tree: BranchTree, places: list[BranchNode | None]
) -> SourceCompaction:
    kept, partial = _find_kept(entry, node, tree, places)
    preserved = get_field(entry, "preserveData", dict)
    if preserved and preserved.get("openaiRemoteCompaction") is not None:
        partial = _MESSAGES_ENCRYPTED
    summary = require_field(entry, "summary", str)
    match preserved:
        case {"snapcompact": dict(archive)}:
            summary = "\n".join([summary, *_read_archive(archive)])
    return SourceCompaction(
        f"{node.id}:compaction",
        Trigger.THRESHOLD,  # the default if the source names no trigger
        summary,
        kept,
        pre_tokens=get_field(entry, "tokensBefore", int),
        post_tokens=get_field(entry, "tokensAfter", int),
        source_time=get_field(entry, "timestamp", str),
        partial_reason=partial,
        summary_call=read_spent(entry) if entry.get("usage") else None,
    )


def _read_archive(archive: JsonDict) -> list[str]:
    """Return the archived history as text, or else the parts of it that are not only images."""
    fields = ("text",) if find_text(archive, "text") else ("textHead", "textTail")
    texts = [find_text(archive, field) for field in fields]
    return [text.translate(_ARCHIVE_MARKS) for text in texts if text]


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
