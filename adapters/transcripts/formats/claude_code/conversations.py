"""Tracks the conversations of a file, its own and those of sub-agents, and what is open in each."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from .....domain.blocks import AnyBlock, Origin, ToolCall, ToolResult
from .....domain.session_events import Usage
from ..fields import JsonDict, MalformedError, find_text, get_field, is_uuid
from ..json_lines import SourceLine
from ..steps import ImportStep, ReportedCall, Rewind, SessionStart, SourceCompaction, SubAgentLink
from .content import IndexedBlocks, remove_block_content
from .entries import FORMAT_NAME, read_claude_usage, read_message_text
from .entry_tree import EntryContext, EntryNode, EntryTree, PendingCompaction

SYNTHETIC_MODEL = "<synthetic>"
"""The model name of messages that no model wrote."""


class OrphanResultError(MalformedError):
    """A tool result that answers no open call of the conversation."""


@dataclass(slots=True)
class ProviderMessage:
    """A provider message, which spans several lines; the last ones have its usage."""

    id: str
    first_entry_id: str
    time: str | None
    model: str | None = None
    stop_reason: str | None = None
    usage: Usage | None = None

    def update(self, message: JsonDict) -> None:
        """Add the content of one more line of the message."""
        self.model = get_field(message, "model", str, "message.") or self.model
        stop_reason = get_field(message, "stop_reason", str, "message.")
        self.stop_reason = stop_reason or self.stop_reason
        if usage := read_claude_usage(message):
            # Output is counted while it streams, so the largest count is the final one.
            before = (self.usage and self.usage.output) or 0
            if usage.output is None or usage.output < before:
                usage = usage.model_copy(update={"output": before})
            self.usage = usage

    def report_call(self) -> ReportedCall | None:
        """Return the call that it answered. Its key changes only as the message grows."""
        if self.model == SYNTHETIC_MODEL:
            return None
        output = self.usage.output if self.usage else None
        return ReportedCall(
            key=f"call:{self.id}:{output or 0}",
            fields={
                "call_id": self.id,
                "model": self.model,
                "usage": self.usage,
                "stop_reason": self.stop_reason,
                "source_time": self.time,
            },
            first_answer_id=self.first_entry_id,
        )


@dataclass(slots=True)
class ClaudeConversation:
    begin: SessionStart
    context: EntryContext = field(init=False)
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

    def __post_init__(self) -> None:
        self.context = EntryContext(self.begin.key)

    def begin_message(self, id: str, entry: str, time: str | None) -> bool:
        """Record that an entry holds a piece of this message; return whether it is the first."""
        begins = id not in self.message_entries
        first = self.message_entries.setdefault(id, entry)
        if self.message is None:
            self.message = ProviderMessage(id, first, time)
        return begins

    def update_message(self, id: str, message: JsonDict) -> None:
        if self.message and self.message.id == id:
            self.message.update(message)

    def find_asking_call(self, prompt: str) -> str | None:
        """Return the open call with this prompt."""
        call = self.prompt_calls.get(hash(prompt))
        return call if call in self.open_calls else None

    def finish_message(self, next_id: str | None = None) -> Iterator[ImportStep]:
        """Yield the call that the last message answered, unless that message goes on."""
        if self.message is None or self.message.id == next_id:
            return
        call, self.message = self.message.report_call(), None
        if call and call.key not in self.reported_calls:
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
                    raise OrphanResultError(f"tool_use_id: {id} answers no open call")
                self.open_calls.remove(id)
                self.answer_entries[id] = node.id
                node.calls.append((id, True))

    def rewind(self, node: EntryNode) -> Iterator[ImportStep]:
        """Go back to the parent of this prompt, if that removes anything from context."""
        stay = self.context.count_staying(node)
        if stay is None:
            return
        yield from self.finish_message()
        for gone in self.context.rewind(stay):
            for id, was_open in reversed(gone.calls):
                (self.open_calls.add if was_open else self.open_calls.discard)(id)
        self.boundary = None
        yield Rewind(f"{node.id}:rewind", to=self.context.last_id)

    def compact(
        self, boundary: PendingCompaction, summary: str | None, tree: EntryTree
    ) -> Iterator[ImportStep]:
        self.boundary = None
        if boundary.node.last_id is None:
            return  # nothing precedes it in the file
        yield from self.finish_message()
        kept = [id for id in boundary.kept_ids if self._holds_blocks_of(tree.nodes.get(id))]
        yield SourceCompaction(
            key=f"{boundary.node.id}:compacted",
            trigger=boundary.trigger,
            summary=summary,
            kept_ids=(*kept, *boundary.later_ids),
            pre_tokens=boundary.pre_tokens,
            post_tokens=boundary.post_tokens,
            source_time=boundary.time,
            partial_reason=boundary.partial_reason,
        )

    def _holds_blocks_of(self, node: EntryNode | None) -> bool:
        return bool(node and node.context is self.context and node.last_id == node.id)


@dataclass(slots=True)
class ClaudeEntry:
    """An entry with its line and its position in the tree."""

    item: JsonDict
    kind: str
    line: SourceLine
    conversation: ClaudeConversation
    node: EntryNode
    message_id: str | None = None

    def pair_blocks(self, held: IndexedBlocks) -> Iterator[tuple[int, AnyBlock]]:
        """Yield blocks with their origins; the first origin holds the rest of the entry."""
        rest: str | None = remove_block_content(self.item, self.line, held)
        follows = self.node.previous_id
        for index, block in held.items():
            origin = Origin(
                format=FORMAT_NAME,
                id=self.item.get("uuid"),
                time=self.item.get("timestamp"),
                entry=rest,
                line=self.line.number,
                follows=follows,
            )
            told = {"origin": origin, "message_id": self.message_id}
            yield index, block.model_copy(update=told)
            rest = follows = None


class ConversationMap:
    """The conversations of a file.

    The file's own session is the one in its name, or else that of its first entry. A file may begin
    with entries copied from a session that it resumes; they stay in this one.
    """

    def __init__(self, stem: str, first: JsonDict) -> None:
        self.conversations: dict[str, ClaudeConversation] = {}
        self.titled_by: str | None = None
        agent = first.get("agentId")
        self.project = find_text(first, "cwd")
        if is_uuid(stem):
            self.key: str = stem
            self.home = self._add_conversation(SessionStart(stem))
        else:
            self.key = first.get("sessionId") or stem
            if first.get("isSidechain") is True and isinstance(agent, str) and agent:
                self.home = self._find_agent(agent)
            elif first.get("isSidechain") is True and isinstance(id := first.get("uuid"), str):
                key = f"{self.key}/sidechain-{id}"
                self.home = self._add_conversation(SessionStart(key, parent_key=self.key))
            else:
                self.home = self._add_conversation(SessionStart(self.key))

    def find_conversation(
        self, entry: JsonDict, id: str, parent: EntryNode | None
    ) -> ClaudeConversation:
        if not get_field(entry, "isSidechain", bool):
            return self.home
        if agent := get_field(entry, "agentId", str):
            return self._find_agent(agent)
        # Older versions mix the sub-agent's entries with those of the session itself; only their
        # parents show which of them belong together.
        if self.home.begin.parent_key:
            return self.home
        if parent and parent.context is not self.home.context:
            return self.conversations[parent.context.key]
        key = f"{self.key}/sidechain-{id}"
        return self._add_conversation(SessionStart(key, None, self.key, self._call_of(entry)))

    def link_sub_agent(
        self, entry: JsonDict, conversation: ClaudeConversation, call: str
    ) -> Iterator[SubAgentLink]:
        """Yield the sub-agent that a call's result names: its own file does not name the call."""
        match entry.get("toolUseResult"):
            case {"agentId": str(agent)}:
                yield SubAgentLink(self._agent_key(agent), conversation.begin.key, call)

    def is_main_request(self, request: JsonDict) -> bool:
        """Return whether a request belongs to the file's own session, not to a sub-agent."""
        agent = get_field(request, "agentId", str)
        return agent is None or self._agent_key(agent) == self.home.begin.key

    def set_title(self, kind: str, title: str) -> bool:
        outranked = self.titled_by == "custom-title" != kind  # a user's title takes precedence
        if outranked or title == self.home.begin.title:
            return False
        self.titled_by = kind
        self.home.begin = replace(self.home.begin, title=title)
        return True

    def _call_of(self, entry: JsonDict) -> str | None:
        # Its call is open, and its prompt is the sub-agent's first message.
        return self.home.find_asking_call(read_message_text(entry))

    def _find_agent(self, agent: str) -> ClaudeConversation:
        return self._add_conversation(SessionStart(self._agent_key(agent), parent_key=self.key))

    def _agent_key(self, agent: str) -> str:
        return f"{self.key}/agent-{agent}"

    def _add_conversation(self, begin: SessionStart) -> ClaudeConversation:
        if begin.key not in self.conversations:
            begin = replace(begin, project=self.project)
            self.conversations[begin.key] = ClaudeConversation(begin)
        return self.conversations[begin.key]
