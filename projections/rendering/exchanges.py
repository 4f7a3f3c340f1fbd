"""Groups a view into exchanges as providers require: message, answers to its calls, input."""

from collections.abc import Callable
from dataclasses import dataclass, field

from ...domain.blocks import ASSISTANT_KINDS, UNSENT_KINDS, Block, Kind, Media, ToolCall, ToolResult
from ..view_content import ViewContent, ViewEntry
from . import sendable
from .sendable import JsonObject
from .tool_calls import make_distinct_id

OPENING_TEXT = "[the conversation begins here]"
"""The user's text for a request that must have one if the view has none."""


@dataclass(slots=True)
class ExchangeCall:
    entry: ViewEntry
    id: str
    """Unique in the view, in characters that every provider accepts."""
    result: ViewEntry | None = None
    """None while the call is open."""

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
    """One message of the model, the answers to its calls, and the input after it."""

    message_id: str | None = None
    model_entries: list[ViewEntry | ExchangeCall] = field(default_factory=list)
    """In the order of the log, with thinking between text and calls; empty in the first exchange.
    """
    calls: list[ExchangeCall] = field(default_factory=list)
    """The calls of the message; their answers follow it directly, whenever they came."""
    input_entries: list[ViewEntry] = field(default_factory=list)
    is_continued: bool = False
    """Whether the model's next piece belongs to this message."""

    @property
    def start(self) -> int:
        first = self.model_entries[0]
        return (first.entry if isinstance(first, ExchangeCall) else first).position


@dataclass(frozen=True, slots=True)
class ViewConversation:
    """All exchanges of a view; in the first one, only the user speaks."""

    exchanges: list[Exchange]
    start_of_growth: int
    """After this position, everything has the same predecessors as when it was written.

    Earlier, something changed: a boundary removed blocks, the system prompt or the tools were set
    again, or a call was answered after the model had gone on.
    """


def group_exchanges(view: ViewContent, longest_id: int) -> ViewConversation:
    """Group a view's entries; `longest_id` is the provider's maximum length of call ids."""
    current = Exchange()
    exchanges = [current]
    asked: dict[int, tuple[Exchange, ExchangeCall]] = {}
    ids: set[str] = set()
    settings = (part.position for part in (view.system, view.tools) if part)
    after = view.boundary.after if view.boundary else 0
    grown_since = max(after, view.effective_from, *settings)
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
            # A harness adds remarks between the parallel calls of one message; a user does not.
            if kind is not Kind.DEVELOPER or current.message_id is None:
                current.is_continued = False
    return ViewConversation(exchanges, grown_since)


def join_spoken_text(entry: ViewEntry) -> str:
    """Return a model's block as text, because no request accepts an image in a model's message."""
    words = sendable.replace_half_characters(entry.text)
    made = entry.block.media if isinstance(entry.block, Block) and entry.shown is None else None
    return "\n".join(part for part in (words, made and sendable.describe_media(made)) if part)


def read_native_item(entry: ViewEntry, provider: str) -> JsonObject | None:
    """Return the item that the block came in, if it is this provider's and shown whole."""
    is_whole = entry.shown is None
    return sendable.parse_native_item(entry.block.native, provider) if is_whole else None


def list_block_content(
    entry: ViewEntry,
    make_text: Callable[[str], JsonObject],
    render_media: Callable[[Media], JsonObject],
) -> list[JsonObject]:
    """Return what a block shows: its text, unless it is blank, and its image or document."""
    words = sendable.replace_half_characters(entry.text)
    content = [make_text(words)] if words.strip() else []
    if entry.shown is None and isinstance(entry.block, Block) and entry.block.media:
        content.append(render_media(entry.block.media))
    return content


def find_speaker(told: ViewEntry) -> str:
    """Return whose text it is: the `user`'s or a `developer`'s."""
    is_users = isinstance(told.block, Block) and told.block.kind is not Kind.DEVELOPER
    return "user" if is_users else "developer"
