"""What a whole session said, read for its facts once, however often views of it are compared."""

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from ...domain.fidelity.anchors import Anchor, AnchorKind
from ...domain.fidelity.rows import Row, Rows
from ...domain.fidelity.words import Words

OFTEN, OFTEN_SHARE = 10, 0.1
"""A word is part of how tools are called where so many calls have it, and such a share of all."""


class Log:
    """What a whole session said, to find where a fact was told and whether it was used again."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self._words = Words(rows.roots)
        self._facts: dict[str, Mapping[str, AnchorKind]] = {}
        self._spelled: dict[str, Mapping[str, str]] = {}
        self._carried: dict[str, frozenset[str]] = {}
        self.tool_names = frozenset(row.tool for row in rows.rows if row.tool)
        self.by_position: Mapping[int, Row] = {row.position: row for row in rows.rows}

    @cached_property
    def call_words(self) -> frozenset[str]:
        """How tools are called: names of arguments, and what stands in a tenth of all calls."""
        calls = [row for row in self.rows.rows if row.tool]
        often = Counter(key for row in calls for key in self.carried_in(row.text))
        least = max(OFTEN, len(calls) * OFTEN_SHARE)
        words = {key for key, times in often.items() if times >= least}
        return frozenset(words.union(*(_names_in(row.arguments) for row in calls)))

    def facts_in(self, text: str) -> Mapping[str, AnchorKind]:
        """The facts that stand in a text themselves; each text is read once."""
        found = self._facts.get(text)
        if found is None:
            found = self._facts[text] = self._words.facts(text)
        return found

    def anchors_in(self, text: str) -> Iterator[Anchor]:
        """The facts of a text, each with its place."""
        return self._words.anchors(text)

    def spelled_in(self, text: str) -> Mapping[str, str]:
        """How the facts of a text are spelled in it, each where it stands first."""
        found = self._spelled.get(text)
        if found is None:
            spelled: dict[str, str] = {}
            for key, _, start, end in self.anchors_in(text):
                spelled.setdefault(key, text[start:end])
            found = self._spelled[text] = spelled
        return found

    def carried_in(self, text: str) -> frozenset[str]:
        """The keys that some fact in a text carries; each text is read once."""
        found = self._carried.get(text)
        if found is None:
            found = self._carried[text] = frozenset(self._words.carried(text))
        return found

    @cached_property
    def carried(self) -> Mapping[int, frozenset[str]]:
        """Of each block the keys that some fact in it carries."""
        return {row.position: self.carried_in(row.text) for row in self.rows.rows}


def _names_in(value: Any) -> set[str]:
    """The names of fields in a tree of arguments."""
    if isinstance(value, Mapping):
        return set(value).union(*map(_names_in, value.values()))
    if isinstance(value, list | tuple):
        return set[str]().union(*map(_names_in, value))
    return set()
