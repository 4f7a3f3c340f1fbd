"""Defines the item, one visible block as a policy sees it, and groups items that stay together."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from operator import attrgetter

from .blocks import ASSISTANT_KINDS, UNSENT_KINDS, AnyBlock, BlockKind


@dataclass(frozen=True, slots=True)
class WindowItem:
    position: int
    block: AnyBlock
    turn: int
    tokens: int
    """Estimated size as shown in the view."""
    call: int | None = None
    """For a tool result: the position of its call."""
    is_open: bool = False
    """For a tool call: it has no answer yet."""
    is_pinned: bool = False
    is_unfinished: bool = False
    """For a piece of a model's message: the model was interrupted before it ended."""
    length: int | None = None
    """The number of characters shown, if that is not the block's own text."""
    behind: int | None = None
    """For a late result: the position of the block that it follows in the view."""

    @property
    def kind(self) -> BlockKind:
        return self.block.kind

    @property
    def message(self) -> str | None:
        """The id of its message; None for a late result, which is apart from the other pieces."""
        return self.block.message_id if self.behind is None else None

    @property
    def place(self) -> int:
        """Its place in the view, as a position; the items of a window are in this order."""
        return self.position if self.behind is None else self.behind


get_place = attrgetter("place")


_Group = list["WindowItem"]


def group_blocks(items: Sequence["WindowItem"]) -> list[_Group]:
    """Return the items in groups; each call with its result, and each message, is in one group."""
    group_at: dict[int, _Group] = {}
    message_at: dict[str, int] = {}
    for item in items:
        message, position = item.message, item.position
        group = group_at.get(item.call) if item.call is not None else None
        if message:
            if message in message_at:
                group = _join_groups(group, group_at[message_at[message]], group_at)
            message_at[message] = position
        if group is None:
            group = []
        group.append(item)
        group_at[position] = group
    return list({id(group): group for group in group_at.values()}.values())


def _join_groups(one: _Group | None, other: _Group, group_at: dict[int, _Group]) -> _Group:
    if one is None or one is other:
        return other
    # Append the smaller group to the larger, so that no item moves more than log(n) times.
    large, small = (one, other) if len(one) >= len(other) else (other, one)
    large += small
    group_at |= {moved.position: large for moved in small}
    return large


class MessageRuns:
    """Assigns blocks, in order of position, to the runs in which a view shows them.

    A run is a message of the model with the answers to its calls, or the blocks between two such
    messages. A late result belongs to the run of its call, even if the model or the user has gone
    on.
    """

    def __init__(self) -> None:
        self.newest = 0
        self._of_call: dict[int, int] = {}
        """The run of each call, by the call's position."""
        self._message: str | None = None
        self._is_models = False
        self._goes_on = False
        """Whether the model's next piece may belong to the same message."""

    def add(self, position: int, block: AnyBlock, call: int | None) -> int:
        """Return the run of the next block; it is below `newest` for a late result."""
        kind = block.kind
        if call is not None:
            run = self._of_call.get(call, self.newest)
            if run == self.newest and self._message is None:
                self._goes_on = False
            return run
        if kind in ASSISTANT_KINDS:
            if not self._goes_on or block.message_id != self._message:
                self._begin_run(is_models=True)
                self._message = block.message_id
            if kind is BlockKind.TOOL_CALL:
                self._of_call[position] = self.newest
        elif self._is_models and not self._is_message_continued(kind):
            self._begin_run(is_models=False)
        return self.newest

    def _is_message_continued(self, kind: BlockKind) -> bool:
        """Check whether the model's message may go on after a block that it did not write."""
        # A harness adds remarks between the parallel calls of one message; a user does not.
        return kind in UNSENT_KINDS or (kind is BlockKind.DEVELOPER and self._message is not None)

    def _begin_run(self, *, is_models: bool) -> None:
        self.newest += 1
        self._is_models = self._goes_on = is_models


def order_for_view(items: Iterable["WindowItem"]) -> list["WindowItem"]:
    """Return items, given by position, in the order of the view: late results after their calls."""
    taking, runs = MessageRuns(), list[_Group]([[]])
    for item in items:
        number = taking.add(item.position, item.block, item.call)
        if number == len(runs):
            runs.append([])
        run = runs[number]
        is_late = number < taking.newest
        run.append(replace(item, behind=run[-1].place, turn=run[0].turn) if is_late else item)
    return list(chain.from_iterable(runs))
