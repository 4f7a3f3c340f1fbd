"""Holds one line while it is read, and holds back lines that were written before their call."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..entry_steps import EntrySteps
from ..fields import JsonDict, get_field
from ..json_lines import SourceLine
from ..steps import ImportStep
from .content import IndexedBlocks
from .conversations import ClaudeConversation, ConversationMap, EntryNode


@dataclass(slots=True, kw_only=True)
class ClaudeEntry(EntrySteps):
    """A line with its entry, and the entry's place."""

    sessions: ConversationMap
    conversation: ClaudeConversation
    """The file's own, until the entry is placed."""
    kind: str = field(init=False)
    node: EntryNode = field(init=False)
    """Its place in the tree, set by `place`."""
    contents: Sequence[Any] = ()
    """The content items of its message."""
    message_id: str | None = None

    def place(self) -> None:
        """Find the entry's conversation and its place in the tree."""
        uuid = get_field(self.value, "uuid", str)
        above = get_field(self.value, "parentUuid", str)
        id = uuid or self.line.digest
        parent = self.sessions.nodes.get(above or "")
        conversation = self.sessions.find_conversation(self.value, id, parent)
        is_root = above is None and "parentUuid" in self.value
        self.node = self.sessions.add_node(id, parent, conversation, is_root=is_root)
        self.conversation, self.id = conversation, uuid
        self.key = f"{uuid}:entry" if uuid else id
        self.time = get_field(self.value, "timestamp", str)

    def add(self, *steps: ImportStep) -> None:
        """Add steps of the entry's conversation."""
        self.steps += self.sessions.enter(self.conversation, steps)

    def append_items(self, blocks: IndexedBlocks) -> None:
        for index, block in blocks.items():
            self.append_block(f"{self.node.id}:{index}", block, self.node.id, self.message_id)


@dataclass(slots=True)
class WaitingLines:
    """The waiting lines, in groups: a result without its call, and its descendants."""

    known_calls: set[str] = field(default_factory=set)
    groups: dict[int, list[SourceLine]] = field(default_factory=dict)
    """Groups by the number of their first line."""
    group_of: dict[str, int] = field(default_factory=dict)
    """The group of each waiting entry, by id."""
    wanted_calls: dict[str, set[int]] = field(default_factory=dict)

    def take(self, line: SourceLine) -> Iterator[SourceLine]:
        """Yield the lines that can be read now, in order; none if this one has to wait."""
        item = line.value if isinstance(line.value, dict) else {}
        answered = list(_call_ids(item, "user", "tool_result", "tool_use_id"))
        above = item.get("parentUuid")
        group = self.group_of.get(above) if isinstance(above, str) else None
        if group is not None and not answered and item.get("type") in ("user", "assistant"):
            yield from self._release(group)
        elif group is not None or (answered and self.known_calls.isdisjoint(answered)):
            self._hold(line, item, answered, line.number if group is None else group)
            return
        yield line
        for call in _call_ids(item, "assistant", "tool_use", "id"):
            self.known_calls.add(call)
            for waiting in sorted(self.wanted_calls.pop(call, ())):
                for held in self._release(waiting):
                    yield from self.take(held)

    def release(self) -> Iterator[SourceLine]:
        """Yield all lines that still wait."""
        for group in list(self.groups):
            yield from self._release(group)

    def _hold(self, line: SourceLine, item: JsonDict, answered: list[str], group: int) -> None:
        self.groups.setdefault(group, []).append(line)
        if isinstance(id := item.get("uuid"), str):
            self.group_of[id] = group
        for call in answered:
            self.wanted_calls.setdefault(call, set()).add(group)

    def _release(self, group: int) -> list[SourceLine]:
        lines = self.groups.pop(group, [])
        for line in lines:
            if isinstance(id := line.value.get("uuid"), str):
                self.group_of.pop(id, None)
        return lines


def _call_ids(item: JsonDict, kind: str, part: str, field: str) -> Iterator[str]:
    """Yield the ids of tool calls that an entry of this kind makes or answers."""
    message = item.get("message") if item.get("type") == kind else None
    content = message.get("content") if isinstance(message, dict) else None
    for one in content if isinstance(content, list) else ():
        if isinstance(one, dict) and one.get("type") == part and isinstance(one.get(field), str):
            yield one[field]
