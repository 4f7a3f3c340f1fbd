"""Measures context, prose, files and rules in addition to recall."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

from .file_touches import RepeatedRead
from .later_references import LaterReference, RowBoundary
from .plain_words import WordPair
from .prose import Constraint
from .scores import Scores
from .session_reading import SessionReading
from .visibility import SegmentVisibility, SessionVisibility


class PairReference(NamedTuple):
    """The first use, in a segment, of a pair of words that is otherwise only in hidden history."""

    call: int
    pair: WordPair


class HiddenFiles(NamedTuple):
    """The files that hidden calls touched, by key."""

    call: int
    modified: frozenset[str]
    read: frozenset[str]
    """Files that were read and never modified."""


class HiddenRules(NamedTuple):
    """The users' rules that are completely hidden."""

    call: int
    rules: tuple[Constraint, ...]


class SecondaryMeasures:
    """The stakes at certain boundaries apart from facts, computed once for many policies."""

    def __init__(self, reading: SessionReading, boundaries: Sequence[RowBoundary]) -> None:
        self.reading = reading
        self.boundaries = tuple(boundaries)
        self._calls = [boundary.call for boundary in self.boundaries]
        self._expected: dict[LaterReference, frozenset[str]] = {}

    def score(self, visibilities: SessionVisibility, hits: Iterable[LaterReference]) -> Scores:
        """Return all counts except those of facts; `hits` are the stakes that the views carry."""
        summaries = {sight.segment.summary: sight for sight in reversed(visibilities.all)}
        told = [sight for text, sight in summaries.items() if text]
        files = [(visibilities.find(at.call), at) for at in self.hidden_files]
        rules = [
            (visibilities.find(at.call), at.call, rule)
            for at in self.hidden_rules
            for rule in at.rules
        ]
        return Scores(
            context_hits=sum(
                self._is_context_kept(visibilities.find(hit.call), hit) for hit in hits
            ),
            pairs=len(self.pair_references),
            pair_hits=sum(
                self._has_pair(visibilities.find(stake.call), stake)
                for stake in self.pair_references
            ),
            modified=sum(len(at.modified) for _, at in files),
            modified_named=sum(_count_named(sight, at.modified, at.call) for sight, at in files),
            read=sum(len(at.read) for _, at in files),
            read_named=sum(_count_named(sight, at.read, at.call) for sight, at in files),
            constraints=len(rules),
            constraints_kept=sum(_is_rule_kept(*rule) for rule in rules),
            rereads=len(self.repeated_reads),
            rereads_named=sum(
                visibilities.find(again.call).has_key(again.key, again.call)
                for again in self.repeated_reads
            ),
            carried=sum(len(sight.summary.facts) for sight in told),
            novel=sum(len(sight.novel_facts) for sight in told),
        )

    # Stakes

    @cached_property
    def pair_references(self) -> tuple[PairReference, ...]:
        found: dict[tuple[int, WordPair], PairReference] = {}
        for call, pair, newest in self.reading.pairs.repeated:
            segment = self._find_hiding_boundary(newest, call)
            if segment is not None:
                found.setdefault((segment, pair), PairReference(call, pair))
        return tuple(found.values())

    @cached_property
    def repeated_reads(self) -> tuple[RepeatedRead, ...]:
        found: dict[tuple[int, str], RepeatedRead] = {}
        for again in self.reading.repeated_reads:
            segment = self._find_hiding_boundary(again.newest, again.call)
            if segment is not None:
                found.setdefault((segment, again.key), again)
        return tuple(found.values())

    @cached_property
    def hidden_files(self) -> tuple[HiddenFiles, ...]:
        touches = self.reading.file_touches
        found: list[HiddenFiles] = []
        for boundary in self.boundaries:
            hidden = [touch for touch in touches if touch.position < boundary.first_kept]
            modified = frozenset(touch.key for touch in hidden if touch.modifies)
            read = frozenset(touch.key for touch in hidden) - modified
            found.append(HiddenFiles(boundary.call, modified, read))
        return tuple(found)

    @cached_property
    def hidden_rules(self) -> tuple[HiddenRules, ...]:
        reading = self.reading
        found: list[HiddenRules] = []
        for boundary in self.boundaries:
            below, kept = (
                reading.count_rows_seen(boundary.call),
                reading.find_index(boundary.first_kept),
            )
            rules = tuple(
                rule
                for rule in reading.constraints
                if rule.indices[0] < kept and not any(kept <= at < below for at in rule.indices)
            )
            found.append(HiddenRules(boundary.call, rules))
        return tuple(found)

    def _find_hiding_boundary(self, position: int, call: int) -> int | None:
        """Return the index of the boundary in effect at a call, if it hides the position."""
        segment = bisect_right(self._calls, call) - 1
        if segment < 0 or position >= self.boundaries[segment].first_kept:
            return None
        return segment

    # What the views carry

    def _is_context_kept(self, visibility: SegmentVisibility, hit: LaterReference) -> bool:
        expected = self._expected.get(hit)
        if expected is None:
            said = (self._read_text(hit.hidden_in), self._read_text(hit.used_in))
            words = self.reading.contexts.collect_words
            expected = frozenset(word for text in said for word in words(text, hit.key))
            self._expected[hit] = expected
        return visibility.has_context(hit.key, hit.call, expected)

    def _read_text(self, position: int) -> str:
        return self.reading.rows.rows[self.reading.find_index(position)].text

    def _has_pair(self, visibility: SegmentVisibility, stake: PairReference) -> bool:
        pair, summary = stake.pair, visibility.segment.summary
        if summary and pair in visibility.summary.pairs:
            return True
        places = self.reading.pairs.places[pair]
        return visibility.has_any_row(places, stake.call) or any(
            pair in told.pairs for told in visibility.iter_partial_texts(places, stake.call)
        )


def _count_named(visibility: SegmentVisibility, keys: frozenset[str], call: int) -> int:
    return sum(visibility.has_key(key, call) for key in keys)


def _is_rule_kept(visibility: SegmentVisibility, call: int, rule: Constraint) -> bool:
    summary = visibility.segment.summary
    if summary and rule.is_kept_in(visibility.summary.words):
        return True
    return visibility.has_any_row(rule.indices, call) or any(
        rule.is_kept_in(told.words) for told in visibility.iter_partial_texts(rule.indices, call)
    )
