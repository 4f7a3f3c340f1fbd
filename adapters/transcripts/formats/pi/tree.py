"""The entries of a session as a tree: which branch each is on, and what a compaction kept.

An entry that follows the newest of its parent's branch goes on with it. Any other one begins a
branch of its own, and the branch that it leaves may go on later.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice, takewhile

from ..reading.fields import MalformedError
from ..steps import Begin

DEEPEST = 200
"""Branches that may leave one another, one after the other."""
MOST_KEPT = 10_000
"""Messages that a compaction may keep."""


@dataclass(eq=False, slots=True)
class Branch:
    """A session in the making."""

    begin: Begin
    depth: int = 0
    left: "Node | None" = None
    """The entry at which it leaves another one; None for the first, and where it shares nothing."""
    newest: "Node | None" = None
    prompted: bool = False
    """Whether anybody has said anything in it."""


@dataclass(eq=False, slots=True)
class Node:
    """An entry. Its parent stands before it in the file, so no way up has a cycle."""

    id: str
    parent: "Node | None"
    branch: Branch
    depth: int
    line: int
    """A hash of all that the entry says."""
    said: int | None = None
    """A hash of the message that it is; None where it is none."""
    stands: "Node | None" = None
    """The nearest one up to here that became something in the store."""
    spoke: "Node | None" = None
    """The nearest one up to here that is a message."""

    def messages(self) -> "Iterator[Node]":
        """The messages above it, nearest first."""
        node = self.parent and self.parent.spoke
        while node:
            yield node
            node = node.parent and node.parent.spoke

    def is_above(self, other: "Node") -> bool:
        """Whether the other one follows it, at whatever distance."""
        node: Node | None = other
        while node and node.branch is not self.branch:
            node = node.branch.left
        return node is not None and self.depth <= node.depth and self is not other


class Tree:
    """All entries so far."""

    def __init__(self, begin: Begin) -> None:
        self.home = Branch(begin)
        self.nodes: dict[str, Node] = {}
        self.newest: Node | None = None

    def add(self, id: str, parent: Node | None, line: int) -> Node:
        """An entry that follows `parent`, or that nothing precedes."""
        branch = self._branch(id, parent)
        node = Node(id, parent, branch, parent.depth + 1 if parent else 0, line)
        if parent:
            node.stands, node.spoke = parent.stands, parent.spoke
        branch.newest = self.newest = self.nodes[id] = node
        return node

    def entitle(self, title: str) -> None:
        """Name the session, and every branch that begins from now on."""
        self.home.begin = replace(self.home.begin, title=title)

    def _branch(self, id: str, parent: Node | None) -> Branch:
        home = self.home
        if parent is None:
            if home.newest is None:
                return home
            left, stands = home, None
        elif parent.branch.newest is parent:
            return parent.branch
        else:
            left, stands = parent.branch, parent.stands
        if left.depth == DEEPEST:
            raise MalformedError(f"parentId: more than {DEEPEST} branches leave one another")
        begin = Begin(
            f"{home.begin.key}/branch-{id}",
            title=home.begin.title,
            fork_of=left.begin.key,
            fork_at=stands.id if stands else None,
            project=home.begin.project,
        )
        prompted = stands is not None and left.prompted
        return Branch(begin, left.depth + 1, parent, prompted=prompted)


def kept_from(node: Node, first: Node | None) -> tuple[str, ...] | None:
    """Ids of the messages from `first` to before `node`, not more than the newest `MOST_KEPT`.

    None where `first` is not above it.
    """
    if first is None or not first.is_above(node):
        return None
    newest = islice(node.messages(), MOST_KEPT)
    kept = [above.id for above in takewhile(lambda above: above.depth >= first.depth, newest)]
    return tuple(reversed(kept))


def kept_by_content(node: Node, messages: list[int]) -> tuple[tuple[str, ...], bool]:
    """Ids of the newest messages above `node` that say what these say; whether that is all."""
    kept: list[str] = []
    left = messages[-MOST_KEPT:]
    for above in islice(node.messages(), 2 * len(left)):
        if left and above.said == left[-1]:
            kept.append(above.id)
            left.pop()
    return tuple(reversed(kept)), not left
