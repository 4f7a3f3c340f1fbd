"""Holds a window's messages with their sizes and priorities, each computed once."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from ...item import Item
from ...messages import Message, Role
from .message_scores import compute_priorities, is_read_only, score_message
from .selection import RankedMessages

_ASSISTANT = Role.ASSISTANT
_BUCKETS = {Role.USER: 0, Role.DEVELOPER: 0, Role.ASSISTANT: 1, Role.TOOL_RESULT: 2}


@dataclass(frozen=True)
class WeighedMessages:
    """Messages in order, with their tokens."""

    messages: Sequence[Message]
    tokens: Sequence[int]

    @cached_property
    def total(self) -> int:
        return sum(self.tokens)

    @cached_property
    def buckets(self) -> tuple[int, int, int]:
        """Tokens of users, of the model, and of tool results."""
        sums = [0, 0, 0]
        for message, size in zip(self.messages, self.tokens, strict=True):
            sums[_BUCKETS[message.role]] += size
        return sums[0], sums[1], sums[2]

    @cached_property
    def calls(self) -> Sequence[Sequence[Item]]:
        return [m.calls if m.role is _ASSISTANT else () for m in self.messages]

    @cached_property
    def scores(self) -> tuple[int, ...]:
        return tuple(
            score_message(message.role, calls=bool(calls))
            for message, calls in zip(self.messages, self.calls, strict=True)
        )

    @cached_property
    def priorities(self) -> tuple[float, ...]:
        """The priority of each message, by its score, age and size."""
        return compute_priorities(self.scores, self.tokens)

    @cached_property
    def exchanges(self) -> Sequence[Sequence[int]]:
        """Indices in groups: a message that calls tools with their results, others alone."""
        groups: list[list[int]] = []
        of_call: dict[int, list[int]] = {}
        for index, (message, calls) in enumerate(zip(self.messages, self.calls, strict=True)):
            answered = message.items[0].call
            if answered is not None and (group := of_call.get(answered)):
                group.append(index)
                continue
            group = [index]
            groups.append(group)
            for call in calls:
                of_call[call.position] = group
        return groups

    def rank(
        self, untouched: frozenset[int], *, together: bool, looks_first: bool
    ) -> list[RankedMessages]:
        """Return the messages that may leave, ranked; an exchange ranks as its best message."""
        tokens, worth = self.tokens, self.priorities
        leaves_late = [not (looks_first and is_read_only(calls)) for calls in self.calls]
        if not together:
            alone = map(RankedMessages, leaves_late, worth, tokens, zip(range(len(tokens))))
            return [one for one in alone if untouched.isdisjoint(one.indices)]
        return [
            RankedMessages(
                leaves_late[group[0]],
                max([worth[index] for index in group]),
                sum([tokens[index] for index in group]),
                group,
            )
            for group in self.exchanges
            if untouched.isdisjoint(group)
        ]
