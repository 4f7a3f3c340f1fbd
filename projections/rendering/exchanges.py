"""The shape every provider asks for: the model speaks, its calls are answered, it is told more."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from ...domain.blocks import BY_ASSISTANT, NOT_SENT, Block, Kind, ToolCall, ToolResult
from ..history_view import Entry, HistoryView
from . import media, sendable
from .tool_calls import distinct_id

OPENING = "[the conversation begins here]"
"""Stands where a request must hold a user's words and the view has none."""


@dataclass(slots=True)
class Call:
    """A tool call and its answer."""

    entry: Entry
    id: str
    """Distinct from all other ids of the view, in letters that every provider accepts."""
    result: Entry | None = None
    """None while nobody has answered."""

    @property
    def name(self) -> str:
        block = self.entry.block
        return block.name if isinstance(block, ToolCall) else ""

    @property
    def is_error(self) -> bool:
        block = self.result.block if self.result else None
        return isinstance(block, ToolResult) and block.is_error


@dataclass(slots=True)
class Exchange:
    """One message of the model, the answers to its calls, and what it was told next."""

    message_id: str | None = None
    said: list[Entry | Call] = field(default_factory=list)
    """In the order of the log: thinking may stand between words and calls. Empty at the opening."""
    calls: list[Call] = field(default_factory=list)
    """The calls among what was said; their answers follow it directly, whenever they came."""
    told: list[Entry] = field(default_factory=list)
    goes_on: bool = False
    """Whether the model's next piece still belongs to this message."""

    @property
    def begins(self) -> int:
        """Position of the first piece that the model said."""
        first = self.said[0]
        return (first.entry if isinstance(first, Call) else first).position


@dataclass(frozen=True, slots=True)
class Conversation:
    """All exchanges of a view; the first is the opening, in which only the user speaks."""

    exchanges: list[Exchange]
    grown_since: int
    """What precedes a later position is what preceded it when it was written.

    Before it something changed since: a boundary took blocks out, the system prompt or the tools
    were set anew, or a call was answered after the model had gone on without the answer.
    """


def conversation(view: HistoryView, longest_id: int) -> Conversation:
    """Group a view's entries; a provider takes call ids of at most `longest_id` characters."""
    current = Exchange()
    exchanges = [current]
    asked: dict[int, tuple[Exchange, Call]] = {}
    ids: set[str] = set()
    grown_since = max(_changes(view))
    for entry in view.entries:
        block = entry.block
        kind = block.kind
        if kind is Kind.TOOL_RESULT and entry.call in asked:
            exchange, call = asked.pop(entry.call)
            call.result = entry
            if exchange is not current:
                grown_since = max(grown_since, entry.position)
            elif exchange.message_id is None:
                exchange.goes_on = False
        elif kind in BY_ASSISTANT:
            if not current.goes_on or block.message_id != current.message_id:
                current = Exchange(block.message_id, goes_on=True)
                exchanges.append(current)
            if isinstance(block, ToolCall):
                call = Call(entry, distinct_id(block.tool_call_id, entry.position, ids, longest_id))
                ids.add(call.id)
                asked[entry.position] = current, call
                current.said.append(call)
                current.calls.append(call)
            else:
                current.said.append(entry)
        elif kind not in NOT_SENT:
            current.told.append(entry)
            # A harness's remarks fall between the parallel calls of one message; a user's do not.
            if kind is not Kind.DEVELOPER or current.message_id is None:
                current.goes_on = False
    return Conversation(exchanges, grown_since)


def spoken_text(entry: Entry) -> str:
    """What the model said, in words: no request takes back an image in the model's message."""
    words = sendable.text(entry.text)
    made = entry.block.media if isinstance(entry.block, Block) and entry.shown is None else None
    return "\n".join(part for part in (words, made and media.described(made)) if part)


def speaker(told: Entry) -> str:
    """Whose words these are: the `user`'s, or a `developer`'s, who is neither user nor model."""
    is_users = isinstance(told.block, Block) and told.block.kind is not Kind.DEVELOPER
    return "user" if is_users else "developer"


def _changes(view: HistoryView) -> Iterator[int]:
    yield view.boundary.after if view.boundary else 0
    yield view.effective_from
    yield view.system.position if view.system else 0
    yield view.tools.position if view.tools else 0
