"""Tracks the conversations of a file: their entries in context, open calls and compactions.

Every entry names the one that it follows, so a transcript is a tree. Nearly all branches are
parallel tool calls, whose entries are all in context, in file order. The user rewound only if a
later prompt leaves out earlier messages.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .....domain.blocks import AnyBlock, ToolCall, ToolResult
from ..entry_steps import EntrySteps
from ..fields import JsonDict, MalformedError, find_text, get_field, is_uuid
from ..json_lines import SourceLine
from ..steps import ImportStep, Rewind, SessionStart, SourceCompaction, SubAgentLink
from .content import IndexedBlocks
from .entries import SYNTHETIC_MODEL, ProviderMessage, read_message_text


@dataclass(slots=True, eq=False)
class EntryNode:
    """An entry of the tree. Its parent precedes it in the file, so no chain has a cycle."""

    id: str
    conversation: "ClaudeConversation"
    parent: "EntryNode | None" = None
    nearest_above: "EntryNode | None" = None
    """The parent, or a shortcut to the newest ancestor in context."""
    is_root: bool = False
    content_hash: int | None = None
    """A hash of the entry's content, once it was read."""
    index: int = -1
    message_count: int = 0
    """The number of prompts and messages that began in context up to here."""
    root_count: int = 0
    """The number of entries in context up to here without an ancestor in context."""
    last_id: str | None = None
    """The newest entry with blocks up to here."""
    calls: list[tuple[str, bool]] = field(default_factory=list)
    """Tool calls that the entry made or answered, and whether each was open before."""


@dataclass(slots=True)
class PendingCompaction:
    """A compaction whose summary has not been read yet."""

    line: SourceLine
    node: EntryNode
    step: SourceCompaction
    """The compaction without its summary and the entries that stay."""
    kept_ids: list[str] = field(default_factory=list)
    is_partial: bool = False
    """Whether older entries stay in context."""
    later_ids: list[str] = field(default_factory=list)
    """Ids of entries with blocks between the boundary and its summary; they stay too."""


@dataclass(slots=True, eq=False)
class ClaudeConversation:
    begin: SessionStart
    nodes: list[EntryNode] = field(default_factory=list)
    """The entries in context, in file order."""
    open_calls: set[str] = field(default_factory=set)
    answer_entries: dict[str, str] = field(default_factory=dict)
    """Answered tool calls, each with the entry of its last result."""
    prompt_calls: dict[int, str] = field(default_factory=dict)
    """The newest call that started a sub-agent, by a hash of its prompt."""
    message_entries: dict[str, str] = field(default_factory=dict)
    """Messages that have begun, each with its first entry."""
    message: ProviderMessage | None = None
    reported_calls: set[str] = field(default_factory=set)
    boundary: PendingCompaction | None = None

    def is_in_context(self, node: EntryNode) -> bool:
        """Return whether the entry is in context. Once removed, it never returns."""
        return 0 <= node.index < len(self.nodes) and self.nodes[node.index] is node

    def add_to_context(self, node: EntryNode, *, begins: bool = False, blocks: bool = True) -> None:
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

    def rewind(self, node: EntryNode) -> Iterator[ImportStep]:
        """Go back to the parent of this prompt, if that removes anything from context."""
        stay = self.count_staying(node)
        if stay is None:
            return
        yield from self.finish_message()
        for gone in reversed(self.nodes[stay:]):
            for id, was_open in reversed(gone.calls):
                (self.open_calls.add if was_open else self.open_calls.discard)(id)
        del self.nodes[stay:]
        self.boundary = None
        yield Rewind(f"{node.id}:rewind", to=self.nodes[-1].last_id if self.nodes else None)

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

    def begin_message(self, id: str, entry: str, time: str | None) -> bool:
        """Record that an entry holds a piece of this message; return whether it is the first."""
        begins = id not in self.message_entries
        first = self.message_entries.setdefault(id, entry)
        if self.message is None:
            self.message = ProviderMessage(id, first, time)
        return begins

    def finish_message(self, next_id: str | None = None) -> Iterator[ImportStep]:
        """Yield the calls that the last message answered, unless that message goes on."""
        if self.message is None or self.message.id == next_id:
            return
        message, self.message = self.message, None
        for call in message.report_calls():
            if call.fields["model"] != SYNTHETIC_MODEL and call.key not in self.reported_calls:
                self.reported_calls.add(call.key)
                yield call

    def check_pairing(self, node: EntryNode, block: AnyBlock, item: JsonDict) -> None:
        """Check that the block, read from `item`, keeps the rule that a result answers an open
        call.
        """
        match block:
            case ToolCall(tool_call_id=id):
                if id in self.open_calls:
                    raise MalformedError(f"id: the tool call {id} is already open")
                self.open_calls.add(id)
                node.calls.append((id, False))
                if isinstance(prompt := item["input"].get("prompt"), str):
                    self.prompt_calls[hash(prompt)] = id
            case ToolResult(tool_call_id=id):
                if id not in self.open_calls:
                    raise MalformedError(f"tool_use_id: {id} answers no open call")
                self.open_calls.remove(id)
                self.answer_entries[id] = node.id
                node.calls.append((id, True))

    def compact(
        self, boundary: PendingCompaction, summary: str | None, nodes: dict[str, EntryNode]
    ) -> Iterator[ImportStep]:
        self.boundary = None
        if boundary.node.last_id is None:
            return  # nothing precedes it in the file
        yield from self.finish_message()
        kept = [id for id in boundary.kept_ids if self._holds_blocks_of(nodes.get(id))]
        yield replace(boundary.step, summary=summary, kept_ids=(*kept, *boundary.later_ids))

    def _holds_blocks_of(self, node: EntryNode | None) -> bool:
        return bool(node and node.conversation is self and node.last_id == node.id)


class ConversationMap:
    """The conversations of a file, and the tree of its entries.

    The file's own session is the one in its name, or else that of its first entry. A file may begin
    with entries copied from a session that it resumes; they stay in this one.
    """

    def __init__(self, stem: str, first: JsonDict) -> None:
        self.conversations: dict[str, ClaudeConversation] = {}
        self.nodes: dict[str, EntryNode] = {}
        self.current: ClaudeConversation | None = None
        """The conversation of the last step."""
        self.titled_by: str | None = None
        self.project = find_text(first, "cwd")
        self.key: str = stem
        if is_uuid(stem):
            self.home = self._find_by_key(stem)
            return
        self.key = first.get("sessionId") or stem
        match first:
            case {"isSidechain": True, "agentId": str(agent)} if agent:
                self.home = self._find_by_key(self._agent_key(agent))
            case {"isSidechain": True, "uuid": str(id)}:
                self.home = self._find_by_key(self._sidechain_key(id))
            case _:
                self.home = self._find_by_key(self.key)

    def find_conversation(
        self, entry: JsonDict, id: str, parent: EntryNode | None
    ) -> ClaudeConversation:
        if not get_field(entry, "isSidechain", bool):
            return self.home
        if agent := get_field(entry, "agentId", str):
            return self._find_by_key(self._agent_key(agent))
        # Older versions mix the sub-agent's entries with those of the session itself; only their
        # parents show which of them belong together.
        if self.home.begin.parent_key:
            return self.home
        if parent and parent.conversation is not self.home:
            return parent.conversation
        # Its call is open, and its prompt is the sub-agent's first message.
        call = self.home.prompt_calls.get(hash(read_message_text(entry)))
        open_call = call if call in self.home.open_calls else None
        return self._find_by_key(self._sidechain_key(id), open_call)

    def add_node(
        self, id: str, parent: EntryNode | None, conversation: ClaudeConversation, *, is_root: bool
    ) -> EntryNode:
        """Add an entry, unless it was read before. A parent that is unknown now counts as missing,
        even if it comes later.
        """
        known = self.nodes.get(id)
        if known and known.content_hash is not None:
            return known
        above = parent if parent and parent.conversation is conversation else None
        node = EntryNode(
            id,
            conversation,
            parent=parent,
            nearest_above=above,
            is_root=is_root or parent is not above,
        )
        self.nodes[id] = node
        return node

    def enter(
        self, conversation: ClaudeConversation, steps: Iterable[ImportStep]
    ) -> Iterator[ImportStep]:
        """Yield steps of a conversation, after its start if the last step was of another one."""
        for step in steps:
            if self.current is not conversation:
                self.current = conversation
                yield conversation.begin
            yield step

    def link_sub_agent(
        self, entry: JsonDict, conversation: ClaudeConversation, call: str
    ) -> Iterator[SubAgentLink]:
        """Yield the sub-agent that a call's result names: its own file does not name the call."""
        match entry.get("toolUseResult"):
            case {"agentId": str(agent)}:
                yield SubAgentLink(self._agent_key(agent), conversation.begin.key, call)

    def read_title(self, kind: str, title: str) -> Iterator[SessionStart]:
        """Yield the start of the session with its new title; a user's title takes precedence."""
        if self.titled_by == "custom-title" != kind or title == self.home.begin.title:
            return
        self.titled_by = kind
        self.home.begin = replace(self.home.begin, title=title)
        self.current = self.home
        yield self.home.begin

    def _agent_key(self, agent: str) -> str:
        return f"{self.key}/agent-{agent}"

    def _sidechain_key(self, id: str) -> str:
        return f"{self.key}/sidechain-{id}"

    def _find_by_key(self, key: str, call: str | None = None) -> ClaudeConversation:
        if key not in self.conversations:
            parent = None if key == self.key else self.key
            begin = SessionStart(key, None, parent, call, project=self.project)
            self.conversations[key] = ClaudeConversation(begin)
        return self.conversations[key]


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
