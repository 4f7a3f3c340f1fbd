"""Which session an entry of a transcript belongs to: the file's own, or a sub-agent's."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from uuid import UUID

from .....domain.blocks import AnyBlock, Origin
from ..json_lines import Line
from ..reading.fields import Item, take_optional, text_in
from ..steps import Begin, Linked
from .conversation import Conversation
from .entries import FORMAT, text_of
from .rest import Held, rest_of
from .tree import Node


@dataclass(slots=True)
class Entry:
    """An entry, and where it stands."""

    item: Item
    kind: str
    line: Line
    conversation: Conversation
    node: Node
    message_id: str | None = None

    def told_by(self, held: Held) -> Iterator[tuple[int, AnyBlock]]:
        """Its blocks, each with where it came from; the first tells all the rest of the entry."""
        rest: str | None = rest_of(self.item, self.line, held)
        follows = self.node.follows
        for index, block in held.items():
            origin = Origin(
                format=FORMAT,
                id=self.item.get("uuid"),
                time=self.item.get("timestamp"),
                entry=rest,
                line=self.line.number,
                follows=follows,
            )
            told = {"origin": origin, "message_id": self.message_id}
            yield index, block.model_copy(update=told)
            rest = follows = None


class Sessions:
    """The conversations of a file.

    Its own session is the one it is named by, or else that of its first entry. It may begin with
    entries copied from another one, which it resumes: they stay in this one.
    """

    def __init__(self, stem: str, first: Item) -> None:
        self.conversations: dict[str, Conversation] = {}
        self.titled_by: str | None = None
        agent = first.get("agentId")
        self.project = text_in(first, "cwd")
        if _is_uuid(stem):
            self.key: str = stem
            self.home = self._conversation(Begin(stem))
        else:
            self.key = first.get("sessionId") or stem
            if first.get("isSidechain") is True and isinstance(agent, str) and agent:
                self.home = self._agent(agent)
            elif first.get("isSidechain") is True and isinstance(id := first.get("uuid"), str):
                key = f"{self.key}/sidechain-{id}"
                self.home = self._conversation(Begin(key, parent_key=self.key))
            else:
                self.home = self._conversation(Begin(self.key))

    def of(self, entry: Item, id: str, parent: Node | None) -> Conversation:
        """The conversation of an entry."""
        if not take_optional(entry, "isSidechain", bool):
            return self.home
        if agent := take_optional(entry, "agentId", str):
            return self._agent(agent)
        # Older versions: the sub-agent's entries lie between those of the session itself, and
        # only their parents tell which of them belong together.
        if self.home.begin.parent_key:
            return self.home
        if parent and parent.context is not self.home.context:
            return self.conversations[parent.context.key]
        key = f"{self.key}/sidechain-{id}"
        return self._conversation(Begin(key, None, self.key, self._call_of(entry)))

    def linked(self, entry: Item, conversation: Conversation, call: str) -> Iterator[Linked]:
        """The sub-agent that a call's result tells of: its own file does not name the call."""
        match entry.get("toolUseResult"):
            case {"agentId": str(agent)}:
                yield Linked(self._agent_key(agent), conversation.begin.key, call)
            case _:
                pass

    def is_homes(self, request: Item) -> bool:
        """Whether a request is of the file's own session, and not of a sub-agent's."""
        agent = take_optional(request, "agentId", str)
        return agent is None or self._agent_key(agent) == self.home.begin.key

    def name(self, kind: str, title: str) -> bool:
        """Name the file's own session; tells whether that changed its title."""
        outranked = self.titled_by == "custom-title" != kind  # a person's title is kept
        if outranked or title == self.home.begin.title:
            return False
        self.titled_by = kind
        self.home.begin = replace(self.home.begin, title=title)
        return True

    def _call_of(self, entry: Item) -> str | None:
        # The call that started it is open, and asked for what the sub-agent is told first.
        return self.home.call_for(text_of(entry))

    def _agent(self, agent: str) -> Conversation:
        return self._conversation(Begin(self._agent_key(agent), parent_key=self.key))

    def _agent_key(self, agent: str) -> str:
        return f"{self.key}/agent-{agent}"

    def _conversation(self, begin: Begin) -> Conversation:
        if begin.key not in self.conversations:
            begin = replace(begin, project=self.project)
            self.conversations[begin.key] = Conversation(begin)
        return self.conversations[begin.key]


def _is_uuid(text: str) -> bool:
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False
