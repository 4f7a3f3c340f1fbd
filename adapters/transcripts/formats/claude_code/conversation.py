"""Tracks one conversation of a transcript: open calls, model calls, compactions and rewinds."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from .....domain.blocks import AnyBlock, ToolCall, ToolResult
from .....domain.session_events import Usage
from ..reading.fields import JsonDict, MalformedError, get_field
from ..steps import ImportStep, ReportedCall, Rewind, SessionStart, SourceCompaction
from .compaction import PendingCompaction
from .entries import read_claude_usage
from .entry_tree import EntryContext, EntryNode, EntryTree

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
    """The state of one conversation at a line of the file."""

    begin: SessionStart
    context: EntryContext = field(init=False)
    open_calls: set[str] = field(default_factory=set)
    """Tool calls without a result."""
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
            case _:
                pass

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
