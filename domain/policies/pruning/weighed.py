"""A window's messages with what each takes and is worth, looked at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from ...blocks import ToolCall
from ...messages import Message, Role
from .scores import only_looks, priorities, score
from .selection import Ranked

TOLD_APART = {Role.USER: 0, Role.DEVELOPER: 0, Role.ASSISTANT: 1, Role.TOOL_RESULT: 2}


@dataclass(frozen=True)
class Weighed:
    """Messages in order."""

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
            sums[TOLD_APART[message.role]] += size
        return sums[0], sums[1], sums[2]

    @cached_property
    def scores(self) -> tuple[int, ...]:
        return tuple(map(score, self.messages))

    @cached_property
    def priorities(self) -> tuple[float, ...]:
        """What each is worth, by its score, its age and its size."""
        return priorities(self.scores, self.tokens)

    @cached_property
    def exchanges(self) -> Sequence[Sequence[int]]:
        """Indices in groups: a message that calls tools with their results, others alone."""
        groups: list[list[int]] = []
        of_call: dict[int, list[int]] = {}
        for index, message in enumerate(self.messages):
            first = message.items[0]
            if first.call is not None and (group := of_call.get(first.call)):
                group.append(index)
                continue
            group = [index]
            groups.append(group)
            if message.role is Role.ASSISTANT:
                for item in message.items:
                    if isinstance(item.block, ToolCall):
                        of_call[item.position] = group
        return groups

    def ranked(
        self, untouched: frozenset[int], *, together: bool, looks_first: bool
    ) -> list[Ranked]:
        """What may leave, by what it is worth; of an exchange, as much as the best of it."""
        tokens, worth, messages = self.tokens, self.priorities, self.messages
        if not together:
            return [
                Ranked(
                    leaves_late=not (looks_first and only_looks(message)),
                    worth=worth[index],
                    tokens=tokens[index],
                    indices=(index,),
                )
                for index, message in enumerate(messages)
                if index not in untouched
            ]
        return [
            Ranked(
                leaves_late=not (looks_first and only_looks(messages[group[0]])),
                worth=max([worth[index] for index in group]),
                tokens=sum([tokens[index] for index in group]),
                indices=group,
            )
            for group in self.exchanges
            if untouched.isdisjoint(group)
        ]
