"""Which blocks leave or stay together: a call with its result, and the pieces of one message."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .window import Item

Group = list["Item"]


def bound(items: Sequence["Item"]) -> list[Group]:
    """The items in groups, each pair and each message being whole in one group."""
    group_at: dict[int, Group] = {}
    message_at: dict[str, int] = {}
    for item in items:
        message, position = item.block.message_id, item.position
        group = group_at.get(item.call) if item.call is not None else None
        if message:
            if message in message_at:
                group = _joined(group, group_at[message_at[message]], group_at)
            message_at[message] = position
        if group is None:
            group = []
        group.append(item)
        group_at[position] = group
    return list({id(group): group for group in group_at.values()}.values())


def _joined(one: Group | None, other: Group, group_at: dict[int, Group]) -> Group:
    """Both as one group."""
    if one is None or one is other:
        return other
    # The larger group takes in the smaller: no item moves more than log(n) times.
    large, small = (one, other) if len(one) >= len(other) else (other, one)
    large += small
    group_at |= {moved.position: large for moved in small}
    return large
