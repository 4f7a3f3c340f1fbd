"""A view over a trace: what shows, what is carried, and where the next cut may stand."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, cast, overload

from ...domain.blocks import AnyBlock, Kind
from ...domain.pins import PinRules
from ...domain.window import Item, Window
from .trace import KINDS, Trace


class Shape(NamedTuple):
    """All that there is of a block here."""

    kind: Kind
    message_id: int | None


@dataclass
class TracedView:
    """The blocks from index `first` to before `end`, and those that were carried there."""

    trace: Trace
    pins: PinRules
    limit: int
    first: int = 0
    end: int = 0
    carried: tuple[int, ...] = ()
    """Indices in front of `first` that stayed, in order."""
    summary: int = 0
    """Tokens of the summary that stands for the rest."""
    shortened: dict[int, int] = field(default_factory=dict)
    """Results that show shortened, and the tokens of what shows of each."""

    def __post_init__(self) -> None:
        trace = self.trace
        self._ties = (trace.call, trace.answer, trace.before, trace.behind)
        self._room = self.pins.most * self.limit if self.limit > 0 else float("inf")

    # How large it is

    @property
    def offset(self) -> int:
        """Tokens of a prompt, less those that it had if nothing had ever left."""
        return (
            self.summary
            + sum(map(self.tokens, self.carried))
            - self.trace.running[self.first]
            - self._less_from(self.first)
        )

    def tokens(self, index: int) -> int:
        """Of a block as it shows."""
        shown = self.shortened.get(index)
        return self.trace.tokens(index) if shown is None else shown

    def blocks(self, first: int) -> int:
        """Tokens of the blocks from one on."""
        return self.trace.running[self.end] - self.trace.running[first] - self._less_from(first)

    def in_front_of(self, index: int) -> int:
        """Tokens of the blocks before one."""
        if index < self.first:
            return sum(self.tokens(one) for one in self.carried if one < index)
        return sum(map(self.tokens, self.carried)) + self.blocks(self.first) - self.blocks(index)

    def _less_from(self, first: int) -> int:
        """By how much the blocks from one on are smaller than they were recorded."""
        return sum(
            self.trace.tokens(index) - shown
            for index, shown in self.shortened.items()
            if index >= first
        )

    # What stays whatever is cut

    def held(self) -> frozenset[int]:
        """What a cut carries over: what rules pin, and the calls that wait.

        What a rule has pinned once stays in view, and so the rule goes on holding.
        """
        pinned = {*self._of_kinds(), *(self._first_prompt() if self.pins.first_prompt else ())}
        return frozenset((*filter(self._is_small, pinned), *filter(self.shows, self._open())))

    def carried_over(self, cut: int, held: frozenset[int]) -> tuple[int, ...]:
        """What stays of the blocks in front of a cut, pairs and messages whole."""
        stays = {one for one in held if one < cut}
        for index in stays.union(self.carried):
            group = self._bound(index)
            if len(group) == 1:
                continue  # whether it stays is its own affair
            if any(one in held or one >= cut for one in group):
                stays |= {one for one in group if one < cut}
        return tuple(sorted(stays))

    def shows(self, index: int) -> bool:
        return self.first <= index < self.end or index in self.carried

    def _is_small(self, index: int) -> bool:
        return self.tokens(index) <= self._room

    def _first_prompt(self) -> frozenset[int]:
        first = next(filter(self.shows, self.trace.first_prompts), None)
        if first is None:
            return frozenset()
        pieces = {first}
        for ties in (self.trace.before, self.trace.behind):
            at = first
            while ties[at]:
                at = ties[at] - 1
                pieces.add(at)
        return frozenset(filter(self.shows, pieces))

    def _of_kinds(self) -> Iterator[int]:
        kinds = self.trace.kinds
        for kind in self.pins.kinds:
            number = bytes([KINDS.index(kind)])
            yield from (index for index in self.carried if kinds[index] == number[0])
            at = kinds.find(number, self.first, self.end)
            while at >= 0:
                yield at
                at = kinds.find(number, at + 1, self.end)

    def _open(self) -> Iterator[int]:
        """Calls that wait for their answer."""
        trace, at = self.trace, self.end - 1
        yield from trace.unanswered
        while at >= 0 and trace.awaited[at] > self.end:
            if trace.answer[at] > self.end:
                yield at
            at -= 1

    def _bound(self, index: int) -> set[int]:
        """All that leaves or stays together with a block."""
        group, news = {index}, [index]
        columns = self._ties
        while news:
            at = news.pop()
            for ties in columns:
                other = ties[at] - 1
                if other >= 0 and other not in group and self.shows(other):
                    group.add(other)
                    news.append(other)
        return group

    # Where it may be cut

    def nearest_cut(self, wanted: int, held: frozenset[int]) -> int | None:
        """The index of the legal cut that is next to a position; None where there is none."""
        least = self._goes_after(held) + 1
        if least > self.end - 1:
            return None
        position = self.trace.position
        at = self._at(wanted)
        before = self._whole_before(at, least) if at >= least else None
        after = self._whole_behind(max(at + 1, least))
        if before is None or after is None:
            return after if before is None else before
        return before if wanted - position[before] <= position[after] - wanted else after

    def _goes_after(self, held: frozenset[int]) -> int:
        """The last block of those that at least have to leave; the view's end if none can."""
        seen: set[int] = set()
        last = self.end
        for index in (*self.carried, *range(self.first, self.end)):
            if index >= last:
                break
            if index not in held and index not in seen:
                group = self._bound(index)
                seen |= group
                if held.isdisjoint(group):
                    last = min(last, max(group))
        return max(last, self.first - 1)

    def _at(self, wanted: int) -> int:
        """The last block whose position is not above the wanted one."""
        low, high = self.first, self.end
        while low < high:
            middle = (low + high) // 2
            if self.trace.position[middle] <= wanted:
                low = middle + 1
            else:
                high = middle
        return low - 1

    def _whole_before(self, at: int, least: int) -> int | None:
        while at >= least:
            parted = self._parted(at)
            if parted is None:
                return at
            at = parted[0]
        return None

    def _whole_behind(self, at: int) -> int | None:
        while at < self.end:
            parted = self._parted(at)
            if parted is None:
                return at
            at = parted[1] + 1
        return None

    def _parted(self, cut: int) -> tuple[int, int] | None:
        """Two blocks on both sides of a cut that must not be parted."""
        trace = self.trace
        for index in range(max(self.first, trace.parted[cut]), cut):
            for other in (trace.answer[index] - 1, trace.behind[index] - 1):
                if cut <= other < self.end:
                    return index, other
        return None

    # What goes on

    def cut(self, first: int, carried: tuple[int, ...], summary: int) -> None:
        """Have the blocks in front of one leave, but for those that are carried."""
        self.first, self.carried, self.summary = first, carried, summary
        self.shortened = {
            index: tokens for index, tokens in self.shortened.items() if self.shows(index)
        }

    # What a policy is shown

    def items(self) -> list[Item]:
        return [self.item(index) for index in (*self.carried, *range(self.first, self.end))]

    def item(self, index: int) -> Item:
        trace = self.trace
        shape = Shape(KINDS[trace.kind[index]], trace.message[index] or None)
        # Who goes by tokens alone asks no more of a block.
        return Item(trace.position[index], cast(AnyBlock, shape), 0, self.tokens(index))


@dataclass(frozen=True)
class TracedWindow(Window):
    """A window whose kept part is looked up in a trace, for who looks at few of its blocks."""

    kept: "Kept | None" = None
    sums: "Sums | None" = None

    @property
    def begins(self) -> int:
        assert self.kept is not None
        return self.kept.begins

    @property
    def open_to_cut(self) -> Sequence[Item]:  # type: ignore[override]  # made as it is looked at
        assert self.kept is not None
        return self.kept

    @property
    def running(self) -> Sequence[int]:  # type: ignore[override]  # as above
        assert self.sums is not None
        return self.sums

    @cached_property
    def tokens(self) -> int:
        return self.used


class Kept(Sequence[Item]):
    """The kept window's items, each made when it is looked at."""

    def __init__(self, view: TracedView) -> None:
        self._view = view
        self._first, self._end = view.first, view.end

    @property
    def begins(self) -> int:
        return self._view.trace.position[self._first] if len(self) else 1

    @overload
    def __getitem__(self, index: int) -> Item: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Item, ...]: ...

    def __getitem__(self, index: int | slice) -> Item | tuple[Item, ...]:
        found = range(self._first, self._end)[index]
        if isinstance(found, range):
            return tuple(map(self._view.item, found))
        return self._view.item(found)

    def __len__(self) -> int:
        return self._end - self._first


class Sums(Sequence[int]):
    """What precedes each item of the kept window, in tokens; and the sum of all."""

    def __init__(self, view: TracedView) -> None:
        self._view, self._first, self._all = view, view.first, view.blocks(view.first)
        self._length = view.end - view.first + 1

    @overload
    def __getitem__(self, index: int) -> int: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[int, ...]: ...

    def __getitem__(self, index: int | slice) -> int | tuple[int, ...]:
        if isinstance(index, slice):
            return tuple(self[at] for at in range(self._length)[index])
        at = index + self._length if index < 0 else index
        if not 0 <= at < self._length:
            raise IndexError(index)
        return self._all - self._view.blocks(self._first + at)

    def __len__(self) -> int:
        return self._length
