"""Finds the session of a transcript's entry: the file's own, or a sub-agent's."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from uuid import UUID

from .....domain.blocks import AnyBlock, Origin
from ..json_lines import SourceLine
from ..reading.fields import JsonDict, find_text, get_field
from ..steps import SessionStart, SubAgentLink
from .conversation import ClaudeConversation
from .entries import FORMAT_NAME, read_message_text
from .entry_remainder import IndexedBlocks, remove_block_content
from .entry_tree import EntryNode


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
        if _is_uuid(stem):
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
            case _:
                pass

    def is_main_request(self, request: JsonDict) -> bool:
        """Return whether a request belongs to the file's own session, not to a sub-agent."""
        agent = get_field(request, "agentId", str)
        return agent is None or self._agent_key(agent) == self.home.begin.key

    def set_title(self, kind: str, title: str) -> bool:
        """Set the title of the file's own session; return whether it changed."""
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


def _is_uuid(text: str) -> bool:
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False
