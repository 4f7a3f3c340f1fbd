"""The shape every provider asks for: the model speaks, its calls are answered, it is told more."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from ...domain.blocks import ASSISTANT_KINDS, UNSENT_KINDS, Block, Kind, ToolCall, ToolResult
from ..view_content import ViewContent
from ..view_entry import ViewEntry
from . import media_parts, sendable_json
from .tool_calls import make_distinct_id

OPENING_TEXT = "[the conversation begins here]"
"""Stands where a request must hold a user's words and the view has none."""


@dataclass(slots=True)
class ExchangeCall:
    """A tool call and its answer."""

    entry: ViewEntry
    id: str
    """Distinct from all other ids of the view, in letters that every provider accepts."""
    result: ViewEntry | None = None
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
    model_entries: list[ViewEntry | ExchangeCall] = field(default_factory=list)
    """In the order of the log: thinking may stand between words and calls. Empty at the opening."""
    calls: list[ExchangeCall] = field(default_factory=list)
    """The calls among what was said; their answers follow it directly, whenever they came."""
    input_entries: list[ViewEntry] = field(default_factory=list)
    is_continued: bool = False
    """Whether the model's next piece still belongs to this message."""

    @property
    def start(self) -> int:
        """Position of the first piece that the model said."""
        first = self.model_entries[0]
        return (first.entry if isinstance(first, ExchangeCall) else first).position


@dataclass(frozen=True, slots=True)
class ViewConversation:
    """All exchanges of a view; the first is the opening, in which only the user speaks."""

    exchanges: list[Exchange]
    start_of_growth: int
    """What precedes a later position is what preceded it when it was written.

    Before it something changed since: a boundary took blocks out, the system prompt or the tools
    were set anew, or a call was answered after the model had gone on without the answer.
    """


def group_exchanges(view: ViewContent, longest_id: int) -> ViewConversation:
    """Group a view's entries; a provider takes call ids of at most `longest_id` characters."""
    current = Exchange()
    exchanges = [current]
    asked: dict[int, tuple[Exchange, ExchangeCall]] = {}
    ids: set[str] = set()
    grown_since = max(_iter_changes(view))
    for entry in view.entries:
        block = entry.block
        kind = block.kind
        if kind is Kind.TOOL_RESULT and entry.call in asked:
            exchange, call = asked.pop(entry.call)
            call.result = entry
            if exchange is not current:
                grown_since = max(grown_since, entry.position)
            elif exchange.message_id is None:
                exchange.is_continued = False
        elif kind in ASSISTANT_KINDS:
            if not current.is_continued or block.message_id != current.message_id:
                current = Exchange(block.message_id, is_continued=True)
                exchanges.append(current)
            if isinstance(block, ToolCall):
                call = ExchangeCall(
                    entry, make_distinct_id(block.tool_call_id, entry.position, ids, longest_id)
                )
                ids.add(call.id)
                asked[entry.position] = current, call
                current.model_entries.append(call)
                current.calls.append(call)
            else:
                current.model_entries.append(entry)
        elif kind not in UNSENT_KINDS:
            current.input_entries.append(entry)
            # A harness's remarks fall between the parallel calls of one message; a user's do not.
            if kind is not Kind.DEVELOPER or current.message_id is None:
                current.is_continued = False
    return ViewConversation(exchanges, grown_since)


def join_spoken_text(entry: ViewEntry) -> str:
    """What the model said, in words: no request takes back an image in the model's message."""
    words = sendable_json.replace_half_characters(entry.text)
    made = entry.block.media if isinstance(entry.block, Block) and entry.shown is None else None
    return "\n".join(part for part in (words, made and media_parts.describe_media(made)) if part)


def find_speaker(told: ViewEntry) -> str:
    """Whose words these are: the `user`'s, or a `developer`'s, who is neither user nor model."""
    is_users = isinstance(told.block, Block) and told.block.kind is not Kind.DEVELOPER
    return "user" if is_users else "developer"


def _iter_changes(view: ViewContent) -> Iterator[int]:
    yield view.boundary.after if view.boundary else 0
    yield view.effective_from
    yield view.system.position if view.system else 0
    yield view.tools.position if view.tools else 0
