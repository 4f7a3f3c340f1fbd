"""What the calls of one spell saw: rows that show, and texts that stand for others."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from .context import ENOUGH, is_kept
from .novelty import novel
from .reading import Reading
from .spells import WHOLE, Spell
from .told import Told


@dataclass(frozen=True)
class Sight:
    """One spell over one session."""

    spell: Spell
    reading: Reading

    def carries(self, key: str, call: int) -> bool:
        """Whether a call was sent anything that carries a key."""
        return self.keeps(key, call) or key in self.summary.carried

    def keeps(self, key: str, call: int) -> bool:
        """Whether anything but the summary carries a key."""
        return (
            self.shows_any(self.reading.places.get(key, ()), call)
            or self._carried_shortened.get(key, call + 1) <= call
        )

    def keeps_since(self, key: str, call: int, since: int) -> bool:
        """The same, where nothing counts that a tool answered once a call was under way."""
        reading = self.reading
        if self.shows_any(
            [at for at in reading.places.get(key, ()) if not reading.came_again(at, since)], call
        ):
            return True
        return self._carried_shortened.get(key, call + 1) <= call and any(
            key in reading.carried_in(text)
            for position, text in self.spell.shown.items()
            if text
            and self._shown_since(position) <= call
            and not reading.came_again(reading.index_at(position), since)
        )

    def shows_any(self, places: Sequence[int], call: int) -> bool:
        """Whether a call was sent one of these rows as a whole; they are in ascending order."""
        return any(True for _ in self.showing(places, call))

    def showing(self, places: Sequence[int], call: int) -> Iterator[int]:
        """Those of the rows that a call was sent as a whole."""
        first_seen, behind, shown = self.reading.first_seen, self._behind, self._shown
        # The newest first: most of what shows stands at the end.
        for index in reversed(places):
            if index < behind:
                break
            if first_seen[index] <= call and index not in shown:
                yield index
        if not self._kept.isdisjoint(places):
            for index in self._kept.intersection(places):
                if first_seen[index] <= call:
                    yield index

    @cached_property
    def _behind(self) -> int:
        """The index of the first row that shows whatever is kept of those in front of it."""
        return self.reading.index_at(self.spell.after + 1)

    @cached_property
    def _kept(self) -> frozenset[int]:
        """The indices of the rows in front of that which show as a whole."""
        positions, behind = self.reading.positions, self._behind
        spans = (
            range(bisect_left(positions, first), bisect_right(positions, last, hi=behind))
            for first, last in self.spell.kept.runs
        )
        return frozenset[int]().union(*spans) - self._shown

    @cached_property
    def _shown(self) -> frozenset[int]:
        """The indices of the rows that show in part."""
        shown = self.spell.shown
        return frozenset(self.reading.indices[at] for at in shown if at in self.reading.indices)

    @cached_property
    def _carried_shortened(self) -> Mapping[str, int]:
        """Of each key that a shortened row carries the first call that was sent it."""
        first: dict[str, int] = {}
        for text, call in self._shortened.items():
            for key in self.reading.carried_in(text):
                first[key] = min(call, first.get(key, call))
        return first

    @cached_property
    def summary(self) -> Told:
        """What stands for all that left."""
        return self.reading.told(self.spell.summary)

    @cached_property
    def novel(self) -> tuple[str, ...]:
        """The facts of the summary that stand nowhere in history."""
        return novel(self.summary.facts, self.reading, self.spell.call)

    @cached_property
    def _shortened(self) -> Mapping[str, int]:
        """The first call that each text was sent to which is of rows that do not show whole."""
        first: dict[str, int] = {}
        for position, text in self.spell.shown.items():
            if text:
                call = self._shown_since(position)
                first[text] = min(call, first.get(text, call))
        return first

    def _shown_since(self, position: int) -> int:
        """The first call that was sent what shows at a position; 0 where no row is read there."""
        index = self.reading.indices.get(position)
        return 0 if index is None else self.reading.first_seen[index]

    def shown(self, places: Iterable[int], call: int) -> Iterator[Told]:
        """What a call was sent of those rows that do not show whole."""
        shown = self.spell.shown
        if shown:
            reading = self.reading
            positions = (
                reading.positions[index] for index in places if reading.first_seen[index] <= call
            )
            yield from (reading.told(text) for at in positions if (text := shown.get(at)))

    def keeps_context(self, key: str, call: int, expected: frozenset[str]) -> bool:
        """Whether what a call was sent has a key beside enough of the words that are expected."""
        if len(expected) < ENOUGH:
            return False
        reading = self.reading
        near = reading.contexts.near
        # What was said last is what most often says it still, and was read for others before.
        rows = self.showing(reading.places.get(key, ()), call)
        texts = chain((reading.rows.rows[index].text for index in rows), self._telling(key, call))
        return any(is_kept(expected, near(text, key)) for text in texts)

    def _telling(self, key: str, call: int) -> Iterator[str]:
        """The texts that a call was sent, carry a key and stand for what does not show whole."""
        if key in self.summary.carried:
            yield self.summary.text
        if self._carried_shortened.get(key, call + 1) <= call:
            for text, first in self._shortened.items():
                if first <= call and key in self.reading.carried_in(text):
                    yield text


class Sights:
    """What each call of a session saw."""

    def __init__(self, reading: Reading, spells: Iterable[Spell]) -> None:
        ordered = sorted(spells, key=lambda spell: spell.call)
        if not ordered or ordered[0].call > WHOLE.call:
            ordered.insert(0, WHOLE)
        self._calls = [spell.call for spell in ordered]
        self.all = tuple(Sight(spell, reading) for spell in ordered)
        """In the order of their calls; the first is from the session's beginning on."""

    @classmethod
    def of(cls, reading: Reading, spells: "Iterable[Spell] | Sights") -> "Sights":
        """Those of the spells; as they are where that is what is given."""
        return spells if isinstance(spells, Sights) else cls(reading, spells)

    def at(self, call: int) -> Sight:
        """What a call saw."""
        return self.all[bisect_right(self._calls, call) - 1]
