"""The history as a program of messages sends it: a summary, and the messages that were kept."""

from dataclasses import dataclass

from ...messages import Message, Role, group_messages
from ...window import Window

UNANSWERED_TEXT = "[nobody has answered this call; whoever ran it was interrupted]"
"""What answers a call that waits, in a history that is sent all the same."""


@dataclass(frozen=True, slots=True)
class SentMessage:
    """One message of the history that a model is sent."""

    role: Role
    message: Message | None = None
    text: str = ""
    """What no block of the log says: the summary, or the answer to a call that has none."""


def list_sent_messages(window: Window, *, answers_calls: bool) -> tuple[SentMessage, ...]:
    """The summary as a user's message, and the kept messages; without a summary all of them.

    `answers_calls` answers each call that waits, behind its message.
    """
    sent = [SentMessage(Role.USER, text=window.summary.text)] if window.summary else []
    waiting = find_waiting_calls(window) if answers_calls else frozenset[int]()
    for message in list_kept_messages(window):
        sent.append(SentMessage(message.role, message))
        waits = (call for call in message.calls if call.position in waiting)
        sent.extend(SentMessage(Role.TOOL_RESULT, text=UNANSWERED_TEXT) for _ in waits)
    return tuple(sent)


def list_kept_messages(window: Window) -> tuple[Message, ...]:
    """The messages that are sent; behind a boundary none of the first is a tool result."""
    messages = group_messages(window.items)
    if window.boundary is None:
        return messages
    first = next((i for i, m in enumerate(messages) if m.role is not Role.TOOL_RESULT), None)
    return () if first is None else messages[first:]


def find_waiting_calls(window: Window) -> frozenset[int]:
    """The positions of the calls that nobody has answered."""
    return frozenset([item.position for item in window.items if item.is_open])
