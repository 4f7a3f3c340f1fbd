"""Lists the history as a message-based program sends it: a summary, and the kept messages."""

from dataclasses import dataclass

from ...messages import Message, Role, group_messages
from ...window import Window

UNANSWERED_TEXT = "[nobody has answered this call; whoever ran it was interrupted]"
"""The answer to an open call in a history that is sent all the same."""


@dataclass(frozen=True, slots=True)
class SentMessage:
    """One message of the history that a model is sent."""

    role: Role
    message: Message | None = None
    text: str = ""
    """A text that no block holds: the summary, or the answer to an open call."""


def list_sent_messages(window: Window, *, answers_calls: bool) -> tuple[SentMessage, ...]:
    """Return the summary as a user's message and the kept messages, or all messages.

    `answers_calls` adds an answer to each open call after its message.
    """
    sent = [SentMessage(Role.USER, text=window.summary.text)] if window.summary else []
    waiting = find_waiting_calls(window) if answers_calls else frozenset[int]()
    for message in list_kept_messages(window):
        sent.append(SentMessage(message.role, message))
        waits = (call for call in message.calls if call.position in waiting)
        sent.extend(SentMessage(Role.TOOL_RESULT, text=UNANSWERED_TEXT) for _ in waits)
    return tuple(sent)


def list_kept_messages(window: Window) -> tuple[Message, ...]:
    """Return the messages that are sent; after a boundary, the first is never a tool result."""
    messages = group_messages(window.items)
    if window.boundary is None:
        return messages
    first = next((i for i, m in enumerate(messages) if m.role is not Role.TOOL_RESULT), None)
    return () if first is None else messages[first:]


def find_waiting_calls(window: Window) -> frozenset[int]:
    return frozenset([item.position for item in window.items if item.is_open])
