"""One conversation of a transcript: its open calls, model calls, compactions and rewinds."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from .....domain.blocks import AnyBlock, ToolCall, ToolResult
from .....domain.session_events import Usage
from ..reading.fields import Item, MalformedError, take_optional
from ..steps import Begin, Call, Compacted, Rewind, Step
from .compaction import Boundary
from .entries import usage_of
from .tree import Context, Node, Tree

SYNTHETIC = "<synthetic>"
"""The model of messages that no model wrote."""


class OrphanError(MalformedError):
    """A tool result that answers no open call of the conversation."""


@dataclass(slots=True)
class Message:
    """A message of the provider's, which stands on several lines; the last ones know its cost."""

    id: str
    first: str
    time: str | None
    model: str | None = None
    stop_reason: str | None = None
    usage: Usage | None = None

    def grow(self, message: Item) -> None:
        """Take in what one more line says of the message."""
        self.model = take_optional(message, "model", str, "message.") or self.model
        stop_reason = take_optional(message, "stop_reason", str, "message.")
        self.stop_reason = stop_reason or self.stop_reason
        if usage := usage_of(message):
            # Output is counted while it streams: the largest count is that of the whole message.
            before = (self.usage and self.usage.output) or 0
            if usage.output is None or usage.output < before:
                usage = usage.model_copy(update={"output": before})
            self.usage = usage

    def call(self) -> Call | None:
        """The call that it answered. Its key changes only as the message grows."""
        if self.model == SYNTHETIC:
            return None
        output = self.usage.output if self.usage else None
        return Call(
            key=f"call:{self.id}:{output or 0}",
            fields={
                "call_id": self.id,
                "model": self.model,
                "usage": self.usage,
                "stop_reason": self.stop_reason,
                "source_time": self.time,
            },
            before=self.first,
        )


@dataclass(slots=True)
class Conversation:
    """What is known of one conversation at some line of the file."""

    begin: Begin
    context: Context = field(init=False)
    open: set[str] = field(default_factory=set)
    """Tool calls without a result."""
    answered: dict[str, str] = field(default_factory=dict)
    """Tool calls that were answered, each with the entry that did last."""
    asked: dict[int, str] = field(default_factory=dict)
    """The newest call that asked for something, by a hash of its prompt."""
    begun: dict[str, str] = field(default_factory=dict)
    """Messages that have begun, each with its first entry."""
    message: Message | None = None
    reported: set[str] = field(default_factory=set)
    """Keys of the calls that were reported."""
    boundary: Boundary | None = None

    def __post_init__(self) -> None:
        self.context = Context(self.begin.key)

    def begin_message(self, id: str, entry: str, time: str | None) -> bool:
        """An entry holds a piece of this message; tells whether it is the first piece."""
        begins = id not in self.begun
        first = self.begun.setdefault(id, entry)
        if self.message is None:
            self.message = Message(id, first, time)
        return begins

    def grow_message(self, id: str, message: Item) -> None:
        """Take in what an entry says of the message."""
        if self.message and self.message.id == id:
            self.message.grow(message)

    def call_for(self, prompt: str) -> str | None:
        """The open call that asked for this."""
        call = self.asked.get(hash(prompt))
        return call if call in self.open else None

    def finish_message(self, unless: str | None = None) -> Iterator[Step]:
        """Report the call that the last message answered, unless that one goes on."""
        if self.message is None or self.message.id == unless:
            return
        call, self.message = self.message.call(), None
        if call and call.key not in self.reported:
            self.reported.add(call.key)
            yield call

    def pair(self, node: Node, block: AnyBlock, item: Item) -> None:
        """Hold the block, made of `item`, to the rule that a result answers an open call."""
        match block:
            case ToolCall(tool_call_id=id):
                if id in self.open:
                    raise MalformedError(f"id: the tool call {id} is already open")
                self.open.add(id)
                node.calls.append((id, False))
                if isinstance(prompt := item["input"].get("prompt"), str):
                    self.asked[hash(prompt)] = id
            case ToolResult(tool_call_id=id):
                if id not in self.open:
                    raise OrphanError(f"tool_use_id: {id} answers no open call")
                self.open.remove(id)
                self.answered[id] = node.id
                node.calls.append((id, True))
            case _:
                pass

    def rewind(self, node: Node) -> Iterator[Step]:
        """Go back to where this prompt hangs, if that leaves anything out."""
        stay = self.context.stays_before(node)
        if stay is None:
            return
        yield from self.finish_message()
        for gone in self.context.rewind(stay):
            for id, was_open in reversed(gone.calls):
                (self.open.add if was_open else self.open.discard)(id)
        self.boundary = None
        yield Rewind(f"{node.id}:rewind", to=self.context.last_id)

    def compact(self, boundary: Boundary, summary: str | None, tree: Tree) -> Iterator[Step]:
        """Report a compaction: `boundary`, and the text that stands for what is gone."""
        self.boundary = None
        if boundary.node.last_id is None:
            return  # there was nothing to compact: the file begins with it
        yield from self.finish_message()
        kept = [id for id in boundary.kept if self._holds_blocks_of(tree.nodes.get(id))]
        yield Compacted(
            key=f"{boundary.node.id}:compacted",
            trigger=boundary.trigger,
            summary=summary,
            kept=(*kept, *boundary.since),
            pre_tokens=boundary.pre_tokens,
            post_tokens=boundary.post_tokens,
            source_time=boundary.time,
            partial=boundary.untold,
        )

    def _holds_blocks_of(self, node: Node | None) -> bool:
        return bool(node and node.context is self.context and node.last_id == node.id)
