"""Reads the facts of a whole session once, for any number of comparisons of its views."""

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from ...domain.fidelity.anchors import Anchor, AnchorKind
from ...domain.fidelity.rows import FidelityRow, SessionRows
from ...domain.fidelity.word_facts import WordFacts

_MIN_OFTEN_CALLS, _OFTEN_SHARE = 10, 0.1
"""The least number of calls, and share of all calls, that contain a word of their form."""


class SessionText:
    """A session's text, to find where a fact occurs and whether it was used again."""

    def __init__(self, rows: SessionRows) -> None:
        self.rows = rows
        self._words = WordFacts(rows.roots)
        self._facts: dict[str, Mapping[str, AnchorKind]] = {}
        self._spelled: dict[str, Mapping[str, str]] = {}
        self._carried: dict[str, frozenset[str]] = {}
        self.tool_names = frozenset(row.tool for row in rows.rows if row.tool)
        self.by_position: Mapping[int, FidelityRow] = {row.position: row for row in rows.rows}

    @cached_property
    def call_words(self) -> frozenset[str]:
        """Words in the form of tool calls: argument names, and words in a tenth of all calls."""
        calls = [row for row in self.rows.rows if row.tool]
        often = Counter(key for row in calls for key in self.find_carried_keys(row.text))
        least = max(_MIN_OFTEN_CALLS, len(calls) * _OFTEN_SHARE)
        words = {key for key, times in often.items() if times >= least}
        return frozenset(words.union(*(_collect_field_names(row.arguments) for row in calls)))

    def find_facts(self, text: str) -> Mapping[str, AnchorKind]:
        found = self._facts.get(text)
        if found is None:
            found = self._facts[text] = self._words.find_facts(text)
        return found

    def iter_anchors(self, text: str) -> Iterator[Anchor]:
        return self._words.find_anchors(text)

    def map_spellings(self, text: str) -> Mapping[str, str]:
        """Return the first spelling of each fact in a text."""
        found = self._spelled.get(text)
        if found is None:
            spelled: dict[str, str] = {}
            for key, _, start, end in self.iter_anchors(text):
                spelled.setdefault(key, text[start:end])
            found = self._spelled[text] = spelled
        return found

    def find_carried_keys(self, text: str) -> frozenset[str]:
        """Return the keys that the facts in a text carry, cached."""
        found = self._carried.get(text)
        if found is None:
            found = self._carried[text] = frozenset(self._words.find_carried_keys(text))
        return found

    @cached_property
    def carried_keys(self) -> Mapping[int, frozenset[str]]:
        return {row.position: self.find_carried_keys(row.text) for row in self.rows.rows}


def _collect_field_names(value: Any) -> set[str]:
    if isinstance(value, Mapping):
        return set(value).union(*map(_collect_field_names, value.values()))
    if isinstance(value, list | tuple):
        return set[str]().union(*map(_collect_field_names, value))
    return set()
