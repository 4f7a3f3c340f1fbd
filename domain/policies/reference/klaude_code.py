"""Answers as klaude-code did, first and later: by the newest report, and by measured messages."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ...item import Message, Role, WindowItem, find_role, group_messages, iter_message_spans_back
from ...token_estimate import CHARS_PER_TOKEN, count_characters, estimate_text
from ...window import Window
from ..policy import quirk
from ..reserve_headroom import ReserveHeadroom, ReserveWalk, skip_results

_AT_SUMMARY = -1
"""The index of the summary, in walks that count it as the oldest message."""
_UNANSWERED_TEXT = "[nobody has answered this call; whoever ran it was interrupted]"
"""The answer to an open call in a history that is sent all the same."""


@dataclass(frozen=True)
class KlaudeAsShipped(ReserveHeadroom):
    fits_room: ClassVar[bool] = False
    answers_open_calls: ClassVar[bool] = False

    preset: str = quirk("as_shipped")

    @property
    def fires_by_tokens(self) -> bool:
        return False

    def fires(self, window: Window) -> bool:
        room = self.find_room(window)
        reserve = self.find_headroom(window.limit).reserve
        return room > 0 and self.count_in_use(window) > room - reserve

    def count_in_use(self, window: Window) -> int:
        """Return the newest report; without one, the measured messages."""
        return self._count_sent_tokens(window) if window.usage is None else window.usage

    def _count_sent_tokens(self, window: Window) -> int:
        """Return the tokens of the texts that are sent: the summary and the kept messages."""
        tokens = sum_tokens(list_kept_messages(window))
        if window.summary:
            tokens += estimate_text(window.summary.text)
        if self.answers_open_calls:
            waiting = sum(item.is_open for item in window.items)
            tokens += estimate_text(_UNANSWERED_TEXT) * waiting
        return tokens

    def walk_back(self, window: Window, keep: int) -> ReserveWalk:
        """Walk back over measured messages; a developer's is never the first to stay.

        The cut moves from it to the next user's message or tool result.
        """
        items = window.open_to_cut
        if not items:
            return ReserveWalk()
        oversized, end = _walk_messages(items, keep)
        base = _AT_SUMMARY if _is_only_summary_before(window) else 0
        cut = end if end is not None else base or skip_results(items)
        cut = _move_off_developer(items, cut, base)
        return ReserveWalk(
            None if oversized is None else items[oversized].position,
            items[cut].position if cut > base else None,
        )


@dataclass(frozen=True)
class KlaudeLater(KlaudeAsShipped):
    answers_open_calls: ClassVar[bool] = True

    preset: str = quirk("later")

    def fires(self, window: Window) -> bool:
        room = self.find_room(window)
        reserve = self.find_headroom(window.limit).reserve
        return room > 0 and self.count_in_use(window) >= room - reserve

    def count_in_use(self, window: Window) -> int:
        """Return the newest report and the measured messages after it; without one, all."""
        used = super().count_in_use(window)
        if window.usage is None or window.usage_at is None:
            return used
        later = [item for item in window.items if item.position > window.usage_at]
        return used + sum_tokens(group_messages(later))


def list_kept_messages(window: Window) -> tuple[Message, ...]:
    """Return the messages that are sent; after a boundary, the first is never a tool result."""
    messages = group_messages(window.items)
    if window.boundary is None:
        return messages
    first = next((i for i, m in enumerate(messages) if m.role is not Role.TOOL_RESULT), None)
    return () if first is None else messages[first:]


def sum_tokens(messages: Sequence[Message]) -> int:
    return sum([count_klaude_tokens(message.items) for message in messages])


def count_klaude_tokens(message: Sequence[WindowItem]) -> int:
    """Return the tokens of a message: its characters, with a fixed number for each image."""
    return max(1, -(-sum([count_characters(item.block) for item in message]) // CHARS_PER_TOKEN))


def _is_only_summary_before(window: Window) -> bool:
    """Check whether the last boundary kept nothing, so that the summary is the oldest entry.

    A cut at the first block removes that entry, although no block leaves by it.
    """
    boundary = window.boundary
    return boundary is not None and window.open_to_cut[0].position > boundary.after


def _walk_messages(items: Sequence[WindowItem], keep: int) -> tuple[int | None, int | None]:
    """Return the message that reaches the budget by itself, and where the walk ends.

    Reads no more messages than are kept.
    """
    held, oversized, is_reached = 0, None, False
    for start, end in iter_message_spans_back(items):
        role = find_role(items[start])
        if role is not None and not is_reached:
            tokens = count_klaude_tokens(items[start:end])
            held += tokens
            is_reached = held >= keep
            oversized = start if is_reached and tokens >= keep else None
        if is_reached and role not in {None, Role.TOOL_RESULT}:
            return oversized, start
    return oversized, None


def _move_off_developer(items: Sequence[WindowItem], cut: int, base: int) -> int:
    if cut == _AT_SUMMARY or find_role(items[cut]) is not Role.DEVELOPER:
        return cut
    ends = {Role.USER, Role.TOOL_RESULT}
    for at in range(cut, len(items)):
        if find_role(items[at]) in ends:
            return at
    while cut > base and find_role(items[cut]) is Role.DEVELOPER:
        cut -= 1
    return cut
