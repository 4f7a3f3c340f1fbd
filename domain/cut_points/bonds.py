"""Which blocks leave or stay together: a call with its result, and the pieces of one message."""

from collections.abc import Sequence

from ..window import Item


def bound(items: Sequence[Item]) -> list[list[Item]]:
    """The items in groups, each pair and each message being whole in one group."""
    group_at: dict[int, list[Item]] = {}
    message_at: dict[str, int] = {}
    for item in items:
        message = item.block.message_id
        ties = [item.call, message_at.get(message) if message else None]
        tied = [group_at[at] for at in ties if at in group_at]
        group = max(tied, key=len, default=[])
        for other in tied:
            # The larger group takes in the smaller: no item moves more than log(n) times.
            if other is not group:
                group += other
                group_at |= {moved.position: group for moved in other}
        group.append(item)
        group_at[item.position] = group
        if message:
            message_at[message] = item.position
    return list({id(group): group for group in group_at.values()}.values())
