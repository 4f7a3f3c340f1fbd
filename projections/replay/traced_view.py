"""Tracks a view over a trace: the visible and the carried blocks, and the next legal cuts."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple, cast

from ...domain.blocks import AnyBlock, Kind
from ...domain.item import Item
from ...domain.pins import PinRules
from .trace import TRACE_KINDS, SessionTrace


class TracedBlock(NamedTuple):
    """A stand-in for a block, with the attributes that matter here."""

    kind: Kind
    message_id: int | None


@dataclass
class TracedView:
    """The blocks from index `first` to before `end`, and the carried ones before them."""

    trace: SessionTrace
    pins: PinRules
    limit: int
    first: int = 0
    end: int = 0
    carried: tuple[int, ...] = ()
    """Indices before `first` that stayed, in order."""
    summary: int = 0
    """Tokens of the summary of the removed blocks."""
    shortened: dict[int, int] = field(default_factory=dict)
    """Results that show shortened, with their tokens."""

    def __post_init__(self) -> None:
        trace = self.trace
        self._ties = (trace.call, trace.answer, trace.before, trace.behind)
        self._room = self.pins.most * self.limit if self.limit > 0 else float("inf")
        self._pinned_kinds = [bytes([TRACE_KINDS.index(kind)]) for kind in self.pins.kinds]
        self._of_kinds: set[int] = set()
        """Blocks before `_looked` that are pinned by kind and so never leave."""
        self._looked = 0
        self._carried: frozenset[int] = frozenset()
        self._carried_tokens = 0
        self._untied: set[int] = set()
        """Blocks known to have no group."""
        self._items: dict[int, Item] = {}
        """Items made so far."""

    # Size

    @property
    def offset(self) -> int:
        """Tokens of a prompt less those it would have if nothing had ever left."""
        return (
            self.summary
            + self._carried_tokens
            - self.trace.running[self.first]
            - self._count_tokens_saved_from(self.first)
        )

    def count_tokens(self, index: int) -> int:
        """Return the tokens of a block as it shows."""
        if self.shortened and index in self.shortened:
            return self.shortened[index]
        running = self.trace.running
        return running[index + 1] - running[index]

    def count_tokens_from(self, first: int) -> int:
        running = self.trace.running
        return running[self.end] - running[first] - self._count_tokens_saved_from(first)

    def count_tokens_before(self, index: int) -> int:
        if index < self.first:
            return sum(self.count_tokens(one) for one in self.carried if one < index)
        return (
            self._carried_tokens
            + self.count_tokens_from(self.first)
            - self.count_tokens_from(index)
        )

    def count_carried_tokens(self, carried: tuple[int, ...]) -> int:
        """Return the tokens of carried blocks, starting from the previous sum."""
        if carried is self.carried:
            return self._carried_tokens
        now = frozenset(carried)
        come, gone = now - self._carried, self._carried - now
        return (
            self._carried_tokens
            + sum(map(self.count_tokens, come))
            - sum(map(self.count_tokens, gone))
        )

    def _count_tokens_saved_from(self, first: int) -> int:
        """Return how much smaller the blocks from `first` on are than recorded."""
        if not self.shortened:
            return 0
        return sum(
            self.trace.count_tokens(index) - shown
            for index, shown in self.shortened.items()
            if index >= first
        )

    # What no cut removes

    def find_held(self) -> set[int]:
        """Return what a cut carries over: blocks pinned by rules, and open calls.

        A block that a rule has pinned stays in view, so that the rule keeps applying.
        """
        self._of_kinds.update(filter(self._is_small, self._iter_new_pinned()))
        self._looked = self.end
        held = self._of_kinds.copy()
        if self.pins.first_prompt:
            held.update(filter(self._is_small, self._find_first_prompt()))
        held.update(filter(self.is_visible, self._iter_open_calls()))
        return held

    def count_held_tokens(self, held: set[int]) -> int:
        """Return the tokens of the held blocks and their groups."""
        bound = set(held)
        for index in held:
            if index not in self._untied and self._has_group(index):
                bound |= self._find_group(index)
        return sum(map(self.count_tokens, bound))

    def find_carried(self, cut: int, held: set[int]) -> tuple[int, ...]:
        """Return the blocks before a cut that stay, with pairs and messages whole."""
        stays = {one for one in held if one < cut}
        # A block without a group stays or leaves by itself.
        tied = set(filter(self._has_group, stays.union(self.carried) - self._untied))
        while tied:
            group = self._find_group(tied.pop())
            tied -= group
            if max(group) >= cut or not held.isdisjoint(group):
                stays.update(one for one in group if one < cut)
        return tuple(sorted(stays))

    def has_released(self, held: set[int]) -> bool:
        """Check whether a carried block is no longer held."""
        return any(
            held.isdisjoint(self._find_group(one))
            for one in self._carried - held
            if self._has_group(one)
        )

    def is_visible(self, index: int) -> bool:
        return self.first <= index < self.end or index in self._carried

    def _is_small(self, index: int) -> bool:
        return self.count_tokens(index) <= self._room

    def _iter_new_pinned(self) -> Iterator[int]:
        kinds = self.trace.kinds
        for kind in self._pinned_kinds:
            at = kinds.find(kind, self._looked, self.end)
            while at >= 0:
                yield at
                at = kinds.find(kind, at + 1, self.end)

    def _find_first_prompt(self) -> Iterable[int]:
        """Return all visible pieces of the first visible prompt."""
        first = next(filter(self.is_visible, self.trace.first_prompts), None)
        if first is None:
            return ()
        if not self._has_group(first):
            return (first,)
        pieces = {first}
        for ties in (self.trace.before, self.trace.behind):
            at = first
            while ties[at]:
                at = ties[at] - 1
                pieces.add(at)
        return filter(self.is_visible, pieces)

    def _iter_open_calls(self) -> Iterator[int]:
        trace, at = self.trace, self.end - 1
        yield from trace.unanswered
        while at >= 0 and trace.awaited[at] > self.end:
            if trace.answer[at] > self.end:
                yield at
            at -= 1

    def _has_group(self, index: int) -> bool:
        """Check whether it may have to leave or stay with others."""
        call, answer, before, behind = self._ties
        if call[index] or answer[index] or before[index] or behind[index]:
            return True
        self._untied.add(index)
        return False

    def _find_group(self, index: int) -> set[int]:
        """Return all blocks that leave or stay together with a block."""
        if not self._has_group(index):
            return {index}
        group, news = {index}, [index]
        columns = self._ties
        while news:
            at = news.pop()
            for ties in columns:
                other = ties[at] - 1
                if other >= 0 and other not in group and self.is_visible(other):
                    group.add(other)
                    news.append(other)
        return group

    # Where it may be cut

    def find_nearest_cut(self, wanted: int, held: set[int]) -> int | None:
        """Return the index of the legal cut nearest to a position; None if there is none."""
        least = self._find_last_leaving(held) + 1
        if least > self.end - 1:
            return None
        position = self.trace.position
        # The last block whose position is not above the wanted one.
        at = bisect_right(position, wanted, self.first, self.end) - 1
        before = self._find_whole_before(at, least) if at >= least else None
        if before is not None and position[before] == wanted:
            return before
        after = self._find_whole_behind(max(at + 1, least))
        if before is None or after is None:
            return after if before is None else before
        return before if wanted - position[before] <= position[after] - wanted else after

    def _find_last_leaving(self, held: set[int]) -> int:
        """Return the end of the first group that can leave; the view's end if none can."""
        seen: set[int] = set()
        last = self.end
        for index in chain(sorted(self._carried - held), range(self.first, self.end)):
            if index >= last:
                break
            if index not in held and index not in seen:
                group = self._find_group(index)
                seen |= group
                if held.isdisjoint(group):
                    last = min(last, max(group))
        return max(last, self.first - 1)

    def _find_whole_before(self, at: int, least: int) -> int | None:
        while at >= least:
            parted = self._find_parted(at)
            if parted is None:
                return at
            at = parted[0]
        return None

    def _find_whole_behind(self, at: int) -> int | None:
        while at < self.end:
            parted = self._find_parted(at)
            if parted is None:
                return at
            at = parted[1] + 1
        return None

    def _find_parted(self, cut: int) -> tuple[int, int] | None:
        """Return two blocks on both sides of a cut that must stay together, or None."""
        trace = self.trace
        for index in range(max(self.first, trace.parted[cut]), cut):
            for other in (trace.answer[index] - 1, trace.behind[index] - 1):
                if cut <= other < self.end:
                    return index, other
        return None

    # Changes

    def cut_before(self, first: int, carried: tuple[int, ...], summary: int) -> None:
        """Remove the blocks before `first`, except the carried ones."""
        self._carried_tokens, self._carried = self.count_carried_tokens(carried), frozenset(carried)
        self.first, self.carried, self.summary = first, carried, summary
        if self.shortened:
            self.shortened = {
                index: tokens for index, tokens in self.shortened.items() if self.is_visible(index)
            }

    def shorten(self, index: int, tokens: int) -> None:
        """Show a result shortened, with `count_tokens` tokens."""
        if index in self._carried:
            self._carried_tokens += tokens - self.count_tokens(index)
        self.shortened[index] = tokens
        self._items.pop(index, None)

    # What a policy sees

    def list_items(self) -> list[Item]:
        return [self.make_item(index) for index in (*self.carried, *range(self.first, self.end))]

    def make_item(self, index: int) -> Item:
        found = self._items.get(index)
        if found is None:
            trace = self.trace
            shape = TracedBlock(TRACE_KINDS[trace.kind[index]], trace.message[index] or None)
            # A policy that depends on tokens alone reads nothing else of a block.
            block = cast(AnyBlock, shape)
            found = Item(trace.position[index], block, 0, self.count_tokens(index))
            self._items[index] = found
        return found
