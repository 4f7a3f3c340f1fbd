"""TunaCode's words for a compaction: the record in its sessions, and the injected summary."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

from cutbank.domain.blocks import Kind, ToolCall
from cutbank.domain.compaction_events import CompactBoundary, Summary
from cutbank.domain.item import Item
from cutbank.domain.messages import group_messages
from cutbank.domain.summaries.templates import list_text_parts

HEADER = "[Compaction summary]"
FLAG = "compaction_summary"
FIELD = "compaction"
"""Where a saved session keeps its record; older ones have no such field."""

Message = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CompactionRecord:
    """What a session keeps of its newest compaction."""

    summary: str
    compacted_message_count: int
    tokens_before: int
    tokens_after: int
    compaction_count: int
    """Of the session, this one included."""
    previous_summary: str | None
    last_compacted_at: str
    """ISO 8601, in UTC."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Raises TypeError where a field is of the wrong type, ValueError where one is too low."""
        if not isinstance(data, dict):
            raise TypeError(f"Compaction record must be a dict, got {type(data).__name__}")
        return cls(
            summary=_text(data, "summary"),
            compacted_message_count=_number(data, "compacted_message_count"),
            tokens_before=_number(data, "tokens_before"),
            tokens_after=_number(data, "tokens_after"),
            compaction_count=_number(data, "compaction_count", least=1),
            previous_summary=_text_or_null(data, "previous_summary"),
            last_compacted_at=_text(data, "last_compacted_at"),
        )

    @classmethod
    def of(
        cls, boundary: CompactBoundary, summary: Summary, messages: int, previous: Self | None
    ) -> Self:
        """The record of a boundary and its summary, with which so many messages left."""
        return cls(
            summary=summary.text,
            compacted_message_count=messages,
            tokens_before=boundary.pre_tokens,
            tokens_after=boundary.post_tokens,
            compaction_count=previous.compaction_count + 1 if previous else 1,
            previous_summary=previous.summary if previous else None,
            last_compacted_at=boundary.timestamp.isoformat(),
        )


def saved(record: CompactionRecord | None) -> dict[str, Any]:
    """The field of a saved session."""
    return {FIELD: record.to_dict() if record else None}


def loaded(session: Mapping[str, Any]) -> CompactionRecord | None:
    """The record of a saved session; None of one that was never compacted, or is from before."""
    data = session.get(FIELD)
    return None if data is None else CompactionRecord.from_dict(data)


def messages_json(items: Sequence[Item]) -> list[Message]:
    """A history's blocks as the messages that it holds; what no model is sent is left out."""
    return [
        {
            "role": message.role.value,
            "content": [piece for item in message.items for piece in _pieces(item)],
            "timestamp": None,
        }
        for message in group_messages(items)
    ]


def injected(messages: Sequence[Message], record: CompactionRecord | None) -> list[Message]:
    """The messages that a model is sent: a summary in front, unless there is one already.

    It is made anew for each call, and saved nowhere.
    """
    text = record.summary.strip() if record else ""
    if not text or (messages and is_summary(messages[0])):
        return list(messages)
    summary = {
        "role": "user",
        "content": [_piece(f"{HEADER}\n\n{text}")],
        "timestamp": None,
        FLAG: True,
    }
    return [summary, *messages]


def is_summary(message: Message) -> bool:
    """Whether a message is an injected summary, by its flag or by how it begins."""
    if message.get(FLAG) is True:
        return True
    content = message.get("content")
    first = content[0] if isinstance(content, list) and content else None
    text = first.get("text") if isinstance(first, dict) else None
    return isinstance(text, str) and text.startswith(HEADER)


def _pieces(item: Item) -> list[dict[str, Any]]:
    block = item.block
    if isinstance(block, ToolCall):
        arguments = block.parse_arguments()
        call = {"id": block.tool_call_id, "name": block.name, "arguments": arguments}
        return [{"type": "tool_call", **call}]
    if item.kind is Kind.THINKING:
        return [{"type": "thinking", "thinking": block.text}]
    return [_piece(text) for text in list_text_parts(block)]


def _piece(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _text(data: Mapping[str, Any], name: str) -> str:
    value = data.get(name)
    if isinstance(value, str):
        return value
    raise TypeError(f"Compaction field '{name}' must be a string")


def _text_or_null(data: Mapping[str, Any], name: str) -> str | None:
    value = data.get(name)
    if value is None or isinstance(value, str):
        return value
    raise TypeError(f"Compaction field '{name}' must be a string or null")


def _number(data: Mapping[str, Any], name: str, *, least: int = 0) -> int:
    value = data.get(name)
    # True is an int to Python, and no count of anything.
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"Compaction field '{name}' must be an int")
    if value < least:
        raise ValueError(f"Compaction field '{name}' must be {'>' if least else '>='} 0")
    return value
