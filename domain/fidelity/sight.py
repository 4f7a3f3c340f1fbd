"""What the calls of one spell saw: rows that show, and texts that stand for others."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from .reading import Reading, first_seen
from .spells import WHOLE, Spell
from .told import Told


@dataclass(frozen=True)
class Sight:
    """One spell over one session."""

    spell: Spell
    reading: Reading

    def shows(self, index: int, call: int) -> bool:
        """Whether a call was sent the row of that index as a whole."""
        row, spell = self.reading.rows.rows[index], self.spell
        if first_seen(row) > call or row.position in spell.shown:
            return False
        return row.position > spell.after or row.position in spell.kept

    def carries(self, key: str, call: int) -> bool:
        """Whether a call was sent anything that carries a key."""
        return self.keeps(key, call) or key in self.reading.told(self.spell.summary).carried

    def keeps(self, key: str, call: int) -> bool:
        """Whether anything but the summary carries a key."""
        # The newest first: most of what shows stands at the end.
        return any(
            self.shows(index, call) for index in reversed(self.reading.places.get(key, ()))
        ) or any(key in told.carried for told in self._shortened)

    @cached_property
    def told(self) -> tuple[Told, ...]:
        """The different texts that stand for history."""
        return (self.reading.told(self.spell.summary), *self._shortened)

    @cached_property
    def _shortened(self) -> tuple[Told, ...]:
        texts = dict.fromkeys(self.spell.shown.values())
        return tuple(self.reading.told(text) for text in texts if text)

    def shown(self, index: int) -> Told | None:
        """What shows of a row that does not show whole."""
        text = self.spell.shown.get(self.reading.rows.rows[index].position)
        return self.reading.told(text) if text else None

    def contexts(self, key: str, call: int) -> Iterator[frozenset[str]]:
        """The plain words around each occurrence of what carries a key, as a call was sent it."""
        near = self.reading.contexts.near
        for told in self.told:
            if key in told.carried:
                yield from near(told.text, key)
        # What was said last is what most often says it still.
        for index in reversed(self.reading.places.get(key, ())):
            if self.shows(index, call):
                yield from near(self.reading.rows.rows[index].text, key)


class Sights:
    """What each call of a session saw."""

    def __init__(self, reading: Reading, spells: Iterable[Spell]) -> None:
        ordered = sorted(spells, key=lambda spell: spell.call)
        if not ordered or ordered[0].call > WHOLE.call:
            ordered.insert(0, WHOLE)
        self._calls = [spell.call for spell in ordered]
        self.all = tuple(Sight(spell, reading) for spell in ordered)
        """In the order of their calls; the first is from the session's beginning on."""

    def at(self, call: int) -> Sight:
        """What a call saw."""
        return self.all[bisect_right(self._calls, call) - 1]
