"""What is measured beside R: context, prose, files, rules, re-reads, and what summaries invent."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

from .canonical import Boundary
from .constraints import Constraint
from .plain_words import Pair
from .reading import Reading
from .rereads import FileAgain
from .scores import Scores
from .sight import Sight, Sights
from .stakes import Stake


class PairStake(NamedTuple):
    """The first use in a segment of a pair of words whose every earlier place is hidden."""

    call: int
    pair: Pair


class FilesAt(NamedTuple):
    """The files that hidden calls touched, by their keys."""

    call: int
    modified: frozenset[str]
    read: frozenset[str]
    """Those that were read and never modified."""


class RulesAt(NamedTuple):
    """What users said of how things must be, as far as all of it that says so is hidden."""

    call: int
    rules: tuple[Constraint, ...]


class Beside:
    """What is at stake beside facts at certain boundaries; it is asked of many policies."""

    def __init__(self, reading: Reading, boundaries: Sequence[Boundary]) -> None:
        self.reading = reading
        self.boundaries = tuple(boundaries)
        self._calls = [boundary.call for boundary in self.boundaries]
        self._expected: dict[Stake, frozenset[str]] = {}

    def scores(self, sights: Sights, hits: Iterable[Stake]) -> Scores:
        """All counts but those of facts; `hits` are the facts at stake that the views carry."""
        summaries = {sight.spell.summary: sight for sight in reversed(sights.all)}
        told = [sight for text, sight in summaries.items() if text]
        files = [(sights.at(at.call), at) for at in self.files]
        rules = [(sights.at(at.call), at.call, rule) for at in self.rules for rule in at.rules]
        return Scores(
            context_hits=sum(self._keeps_context(sights.at(hit.call), hit) for hit in hits),
            pairs=len(self.pairs),
            pair_hits=sum(self._has_pair(sights.at(stake.call), stake) for stake in self.pairs),
            modified=sum(len(at.modified) for _, at in files),
            modified_named=sum(_named(sight, at.modified, at.call) for sight, at in files),
            read=sum(len(at.read) for _, at in files),
            read_named=sum(_named(sight, at.read, at.call) for sight, at in files),
            constraints=len(rules),
            constraints_kept=sum(_survives(*rule) for rule in rules),
            rereads=len(self.rereads),
            rereads_named=sum(
                sights.at(again.call).carries(again.key, again.call) for again in self.rereads
            ),
            carried=sum(len(sight.summary.facts) for sight in told),
            novel=sum(len(sight.novel) for sight in told),
        )

    # What is at stake

    @cached_property
    def pairs(self) -> tuple[PairStake, ...]:
        found: dict[tuple[int, Pair], PairStake] = {}
        for call, pair, newest in self.reading.pairs.again:
            segment = self._hides(newest, call)
            if segment is not None:
                found.setdefault((segment, pair), PairStake(call, pair))
        return tuple(found.values())

    @cached_property
    def rereads(self) -> tuple[FileAgain, ...]:
        found: dict[tuple[int, str], FileAgain] = {}
        for again in self.reading.files_again:
            segment = self._hides(again.newest, again.call)
            if segment is not None:
                found.setdefault((segment, again.key), again)
        return tuple(found.values())

    @cached_property
    def files(self) -> tuple[FilesAt, ...]:
        touches = self.reading.touches
        found: list[FilesAt] = []
        for boundary in self.boundaries:
            hidden = [touch for touch in touches if touch.position < boundary.first_kept]
            modified = frozenset(touch.key for touch in hidden if touch.modifies)
            read = frozenset(touch.key for touch in hidden) - modified
            found.append(FilesAt(boundary.call, modified, read))
        return tuple(found)

    @cached_property
    def rules(self) -> tuple[RulesAt, ...]:
        reading = self.reading
        found: list[RulesAt] = []
        for boundary in self.boundaries:
            below, kept = reading.seen_by(boundary.call), reading.index_at(boundary.first_kept)
            rules = tuple(
                rule
                for rule in reading.constraints
                if rule.indices[0] < kept and not any(kept <= at < below for at in rule.indices)
            )
            found.append(RulesAt(boundary.call, rules))
        return tuple(found)

    def _hides(self, position: int, call: int) -> int | None:
        """Which boundary is in effect at a call, if it hides what stands at a position."""
        segment = bisect_right(self._calls, call) - 1
        if segment < 0 or position >= self.boundaries[segment].first_kept:
            return None
        return segment

    # Who met it

    def _keeps_context(self, sight: Sight, hit: Stake) -> bool:
        expected = self._expected.get(hit)
        if expected is None:
            said = (self._text_at(hit.hidden_in), self._text_at(hit.used_in))
            words = self.reading.contexts.words
            expected = frozenset(word for text in said for word in words(text, hit.key))
            self._expected[hit] = expected
        return sight.keeps_context(hit.key, hit.call, expected)

    def _text_at(self, position: int) -> str:
        return self.reading.rows.rows[self.reading.index_at(position)].text

    def _has_pair(self, sight: Sight, stake: PairStake) -> bool:
        pair, summary = stake.pair, sight.spell.summary
        if summary and pair in sight.summary.pairs:
            return True
        places = self.reading.pairs.places[pair]
        return sight.shows_any(places, stake.call) or any(
            pair in told.pairs for told in sight.shown(places, stake.call)
        )


def _named(sight: Sight, keys: frozenset[str], call: int) -> int:
    return sum(sight.carries(key, call) for key in keys)


def _survives(sight: Sight, call: int, rule: Constraint) -> bool:
    summary = sight.spell.summary
    if summary and rule.survives_in(sight.summary.bag):
        return True
    return sight.shows_any(rule.indices, call) or any(
        rule.survives_in(told.bag) for told in sight.shown(rule.indices, call)
    )
