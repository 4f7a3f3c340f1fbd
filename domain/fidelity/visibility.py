"""Finds what the calls of each segment saw: rows that show, and texts that replace others."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..cached_property import cached_property
from ..summaries.layout import MODIFIED_TAG, READ_TAG
from .rows import WHOLE_HISTORY, ViewSegment
from .session_reading import SessionReading
from .stakes import SummaryContent
from .words import MIN_SHARED_WORDS, WordContexts

_TAGS = frozenset({f"/{READ_TAG}", f"/{MODIFIED_TAG}"})
_MAX_HANDLE_CHARS = 16
"""No log has positions of so many digits."""
_MIN_QUOTE_WORDS = 4
"""A shorter quote says nothing: a list of labels next to facts would have its context too."""
_HANDLES = re.compile(r" \(#[\d, #-]+\)$")
_MARKS = "`\"'“”"
"""What a summary puts around a quote."""


def find_novel_facts(facts: Iterable[str], reading: SessionReading, call: int) -> tuple[str, ...]:
    """Return the facts that no row before a call contains.

    A handle, which names a position of the log, is not a fact, nor is the tag of a list of files.
    """
    below = reading.count_rows_seen(call)
    newest = reading.positions[below - 1] if below else 0
    new = [key for key in facts if reading.places.get(key, (below,))[0] >= below]
    return tuple(sorted(key for key in new if not _is_handle(key, newest) and key not in _TAGS))


def _is_handle(key: str, newest: int) -> bool:
    if key[0] != "#" or len(key) > _MAX_HANDLE_CHARS:
        return False
    number = key[1:]
    return number.isdecimal() and 1 <= int(number) <= newest


@dataclass(frozen=True)
class SegmentVisibility:
    """What the calls of one segment saw of a session."""

    segment: ViewSegment
    reading: SessionReading

    def has_key(self, key: str, call: int) -> bool:
        """Check whether a call was sent anything that carries a key."""
        return (
            self.has_any_row(self.reading.places.get(key, ()), call)
            or self._first_calls_of_partial_keys.get(key, call + 1) <= call
            or key in self.summary.carried_keys
        )

    def has_any_row(self, places: Sequence[int], call: int) -> bool:
        """Check whether a call was sent one of these rows whole; `places` are ascending."""
        return any(True for _ in self.iter_visible_rows(places, call))

    def iter_visible_rows(self, places: Sequence[int], call: int) -> Iterator[int]:
        """Yield the rows that a call was sent whole."""
        first_seen, behind, shown = (
            self.reading.first_calls,
            self._kept_window_start,
            self._partial_rows,
        )
        # Newest first, since most visible rows are at the end.
        for index in reversed(places):
            if index < behind:
                break
            if first_seen[index] <= call and index not in shown:
                yield index
        if not self._carried_rows.isdisjoint(places):
            for index in self._carried_rows.intersection(places):
                if first_seen[index] <= call:
                    yield index

    @cached_property
    def _kept_window_start(self) -> int:
        """The index from which on all rows show."""
        return self.reading.find_index(self.segment.after + 1)

    @cached_property
    def _carried_rows(self) -> frozenset[int]:
        """The indices of earlier rows that show whole."""
        positions, behind = self.reading.positions, self._kept_window_start
        spans = (
            range(bisect_left(positions, first), bisect_right(positions, last, hi=behind))
            for first, last in self.segment.kept.runs
        )
        return frozenset[int]().union(*spans) - self._partial_rows

    @cached_property
    def _partial_rows(self) -> frozenset[int]:
        shown = self.segment.shown
        return frozenset(self.reading.indices[at] for at in shown if at in self.reading.indices)

    @cached_property
    def _first_calls_of_partial_keys(self) -> Mapping[str, int]:
        """The first call that was sent each key in a shortened row."""
        first: dict[str, int] = {}
        for text, call in self._first_calls_of_partial_texts.items():
            for key in self.reading.find_carried_keys(text):
                first[key] = min(call, first.get(key, call))
        return first

    @cached_property
    def summary(self) -> SummaryContent:
        return self.reading.read_summary(self.segment.summary)

    @cached_property
    def novel_facts(self) -> tuple[str, ...]:
        return find_novel_facts(self.summary.facts, self.reading, self.segment.call)

    @cached_property
    def _first_calls_of_partial_texts(self) -> Mapping[str, int]:
        """The first call that was sent each shortened text; 0 if there is no such row."""
        first: dict[str, int] = {}
        indices, calls = self.reading.indices, self.reading.first_calls
        for position, text in self.segment.shown.items():
            if text:
                call = calls[indices[position]] if position in indices else 0
                first[text] = min(call, first.get(text, call))
        return first

    def iter_partial_texts(self, places: Iterable[int], call: int) -> Iterator[SummaryContent]:
        """Yield the texts that a call was sent of rows that do not show whole."""
        shown = self.segment.shown
        if shown:
            reading = self.reading
            positions = (
                reading.positions[index] for index in places if reading.first_calls[index] <= call
            )
            yield from (reading.read_summary(text) for at in positions if (text := shown.get(at)))

    def has_context(self, key: str, call: int, expected: frozenset[str]) -> bool:
        """Check whether a call was sent a key with enough of the expected words around it."""
        return self._is_near_in_rows(key, call, expected) or any(
            self._is_near(key, text, expected) for text in self._iter_replacement_texts(key, call)
        )

    def has_quoted_context(self, key: str, call: int, expected: frozenset[str]) -> bool:
        """Check the same, where of texts that replace rows only quotes of these rows count."""
        if self._is_near_in_rows(key, call, expected):
            return True
        if len(expected) < MIN_SHARED_WORDS:
            return False
        reading = self.reading
        sources = [reading.rows.rows[index].text for index in reading.places.get(key, ())]
        return any(
            _has_quoted_context(text, key, expected, sources, reading.contexts)
            for text in self._iter_replacement_texts(key, call)
        )

    def _is_near_in_rows(self, key: str, call: int, expected: frozenset[str]) -> bool:
        reading = self.reading
        # The newest rows are the likeliest match, and are cached already.
        return any(
            self._is_near(key, reading.rows.rows[index].text, expected)
            for index in self.iter_visible_rows(reading.places.get(key, ()), call)
        )

    def _is_near(self, key: str, text: str, expected: frozenset[str]) -> bool:
        near = self.reading.contexts.list_nearby_words(text, key)
        return any(len(words & expected) >= MIN_SHARED_WORDS for words in near)

    def _iter_replacement_texts(self, key: str, call: int) -> Iterator[str]:
        """Yield the summary and shortened texts that a call was sent and that carry a key."""
        if key in self.summary.carried_keys:
            yield self.summary.text
        if self._first_calls_of_partial_keys.get(key, call + 1) <= call:
            for text, first in self._first_calls_of_partial_texts.items():
                if first <= call and key in self.reading.find_carried_keys(text):
                    yield text


class SessionVisibility:
    """What each call of a session saw."""

    def __init__(self, reading: SessionReading, segments: Iterable[ViewSegment]) -> None:
        ordered = sorted(segments, key=lambda spell: spell.call)
        if not ordered or ordered[0].call > WHOLE_HISTORY.call:
            ordered.insert(0, WHOLE_HISTORY)
        self._calls = [spell.call for spell in ordered]
        self.all = tuple(SegmentVisibility(spell, reading) for spell in ordered)
        """In the order of their calls; the first starts with the session."""

    def find(self, call: int) -> SegmentVisibility:
        return self.all[bisect_right(self._calls, call) - 1]


def _has_quoted_context(
    text: str,
    key: str,
    expected: frozenset[str],
    sources: Iterable[str],
    contexts: WordContexts,
) -> bool:
    """Check whether a line of a text quotes a fact with enough of the expected words around it.

    The quote is contiguous in one of the sources, apart from white space, and four words or longer.
    """
    folded = [" ".join(source.split()) for source in sources]
    lines = (_HANDLES.sub("", line).split() for line in text.split("\n") if key in line)
    return any(
        len(words & expected) >= MIN_SHARED_WORDS
        for line in lines
        for source in folded
        for quote in _iter_quotes(line, key, source)
        for words in contexts.list_nearby_words(quote, key)
    )


def _iter_quotes(line: list[str], key: str, source: str) -> Iterator[str]:
    """Yield the longest run of words around each occurrence of a key that the source has too."""
    for at, word in enumerate(line):
        if key not in word:
            continue
        quote = word if word in source else word.strip(_MARKS)
        if quote not in source:
            continue
        count = 1
        for template, words in (("{1} {0}", reversed(line[:at])), ("{0} {1}", line[at + 1 :])):
            for added in words:
                longer = (template.format(quote, form) for form in (added, added.strip(_MARKS)))
                found = next((one for one in longer if one.strip() == one and one in source), None)
                if found is None:
                    break
                quote, count = found, count + 1
        if count >= _MIN_QUOTE_WORDS:
            yield quote
