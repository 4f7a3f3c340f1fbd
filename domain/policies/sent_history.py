"""The history as a program of messages sends it: a summary, and the messages that were kept."""

from collections.abc import Sequence
from dataclasses import dataclass

from ..blocks import ToolCall, ToolResult
from ..messages import Message, Role, messages_of
from ..window import Item, Window

UNANSWERED = "[nobody has answered this call; whoever ran it was interrupted]"
"""What answers a call that waits, in a history that is sent all the same."""


@dataclass(frozen=True, slots=True)
class Sent:
    """One message of the history that a model is sent."""

    role: Role
    message: Message | None = None
    text: str = ""
    """What no block of the log says: the summary, or the answer to a call that has none."""


def sent_history(window: Window, *, answers_calls: bool) -> tuple[Sent, ...]:
    """The summary as a user's message, and the kept messages; without a summary all of them.

    Behind a boundary none of the first is a tool result. `answers_calls` answers each call that
    waits, behind its message.
    """
    sent = [Sent(Role.USER, text=window.summary.text)] if window.summary else []
    answered = _answered(window.items) if answers_calls else frozenset[str]()
    for message in _kept(window):
        sent.append(Sent(message.role, message))
        if answers_calls:
            waiting = [call for call in message.calls if _id(call) not in answered]
            sent.extend(Sent(Role.TOOL_RESULT, text=UNANSWERED) for _ in waiting)
    return tuple(sent)


def _kept(window: Window) -> tuple[Message, ...]:
    messages = messages_of(window.items)
    if window.boundary is None:
        return messages
    first = next((i for i, m in enumerate(messages) if m.role is not Role.TOOL_RESULT), None)
    return () if first is None else messages[first:]


def _answered(items: Sequence[Item]) -> frozenset[str]:
    return frozenset(_id(item) for item in items if isinstance(item.block, ToolResult))


def _id(item: Item) -> str:
    block = item.block
    return block.tool_call_id if isinstance(block, ToolCall | ToolResult) else ""
