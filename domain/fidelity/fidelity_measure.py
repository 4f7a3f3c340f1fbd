"""Measures how much of what was needed later a policy's views still carried."""

from bisect import bisect_right
from collections.abc import Hashable, Iterable, Sequence
from functools import cached_property
from typing import NamedTuple, TypeVar

from .anchors import Anchor, list_carried_keys
from .file_touches import RepeatedRead
from .later_references import LaterReference, RowBoundary, iter_candidate_stakes
from .prose import Constraint, RepeatedPair
from .rows import ViewSegment
from .scores import Scores
from .session_reading import SessionReading
from .visibility import SegmentVisibility, SessionVisibility


class HiddenFiles(NamedTuple):
    """The files that hidden calls touched, by key."""

    call: int
    modified: frozenset[str]
    read: frozenset[str]
    """Files that were read and never modified."""


_RepeatT = TypeVar("_RepeatT", RepeatedPair, RepeatedRead)


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
            constraints=len(self.hidden_rules),
            constraints_kept=sum(
                _is_rule_kept(visibilities.find(call), call, rule)
                for call, rule in self.hidden_rules
            ),
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
    def pair_references(self) -> tuple[RepeatedPair, ...]:
        """The first use, in a segment, of each pair of words that is only in hidden history."""
        return self._list_first_hidden(self.reading.pairs.repeated)

    @cached_property
    def repeated_reads(self) -> tuple[RepeatedRead, ...]:
        return self._list_first_hidden(self.reading.repeated_reads)

    def _list_first_hidden(self, repeated: Iterable[_RepeatT]) -> tuple[_RepeatT, ...]:
        """Return what repeats something that the boundary in effect hides, once in a segment."""
        found: dict[tuple[int, Hashable], _RepeatT] = {}
        for again in repeated:
            segment = bisect_right(self._calls, again.call) - 1
            if segment >= 0 and again.newest < self.boundaries[segment].first_kept:
                found.setdefault((segment, again[1]), again)
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
    def hidden_rules(self) -> tuple[tuple[int, Constraint], ...]:
        """The users' rules that each boundary hides completely, with the boundary's call."""
        reading = self.reading
        found: list[tuple[int, Constraint]] = []
        for boundary in self.boundaries:
            call, kept = boundary.call, reading.find_index(boundary.first_kept)
            below = reading.count_rows_seen(call)
            found += (
                (call, rule)
                for rule in reading.constraints
                if rule.indices[0] < kept and not any(kept <= at < below for at in rule.indices)
            )
        return tuple(found)

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

    def _has_pair(self, visibility: SegmentVisibility, stake: RepeatedPair) -> bool:
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


class FidelityMeasure:
    """The stakes of one session at certain boundaries, and how many of them views carry.

    Made once for many policies: rows are read in advance, so that the cost of a score grows with
    the stakes and not with the session.
    """

    def __init__(self, reading: SessionReading, boundaries: Sequence[RowBoundary]) -> None:
        self.reading = reading
        self.boundaries = tuple(boundaries)
        self.candidates = tuple(iter_candidate_stakes(reading, self.boundaries))
        """All stakes of any count, including generic and loose ones."""
        self.beside = SecondaryMeasures(reading, self.boundaries)

    @cached_property
    def stakes(self) -> tuple[LaterReference, ...]:
        """The stakes that count in R."""
        return tuple(
            stake for stake in self.candidates if not stake.is_generic and not stake.is_lifted
        )

    def score(self, segments: Iterable[ViewSegment] | SessionVisibility) -> Scores:
        """Return the counts of all stakes and of those that the views carry."""
        sights = SessionVisibility.from_segments(self.reading, segments)
        met = [stake for stake in self.candidates if _is_carried(sights, stake)]
        with_generic = [stake for stake in self.candidates if not stake.is_lifted]
        loose = [stake for stake in self.candidates if not stake.is_generic]
        hit = [stake for stake in met if not stake.is_generic and not stake.is_lifted]
        hard = [stake for stake in self.stakes if stake.is_hard]
        facts = Scores(
            boundaries=len(self.boundaries),
            stakes=len(self.stakes),
            hits=len(hit),
            told_hits=sum(
                stake.key in sights.find(stake.call).summary.carried_keys for stake in hit
            ),
            hard_stakes=len(hard),
            hard_hits=sum(stake.is_hard for stake in hit),
            uses=sum(stake.uses for stake in self.stakes),
            uses_hit=sum(stake.uses for stake in hit),
            generic_stakes=len(with_generic),
            generic_hits=sum(not stake.is_lifted for stake in met),
            loose_stakes=len(loose),
            loose_hits=sum(
                self._is_carried_loosely(sights, stake) for stake in met if not stake.is_generic
            ),
        )
        return facts + self.beside.score(sights, hit)

    def find_lost(
        self, segments: Iterable[ViewSegment] | SessionVisibility
    ) -> tuple[LaterReference, ...]:
        """Return the stakes that the views do not carry, in the order in which they were needed."""
        sights = SessionVisibility.from_segments(self.reading, segments)
        return tuple(stake for stake in self.stakes if not _is_carried(sights, stake))

    def _is_carried_loosely(self, visibilities: SessionVisibility, stake: LaterReference) -> bool:
        """Check the same without tool results after the boundary."""
        sight, since = visibilities.find(stake.call), self.boundaries[stake.segment].call
        return stake.key in sight.summary.carried_keys or sight.has_key_since(
            stake.key, stake.call, since
        )


def _is_carried(visibilities: SessionVisibility, stake: LaterReference) -> bool:
    """Check whether the view of the call that needed the fact carried it."""
    return visibilities.find(stake.call).has_key(stake.key, stake.call)


_CHARS_PER_TOKEN = 4


def compute_upper_bound(measure: FidelityMeasure, budget: int | Sequence[int]) -> float:
    """Return the most stakes that can be carried, summed over all boundaries.

    `budget` is in tokens, for every text or for each. Facts of a text never overlap, so a text is
    at least as long as all its facts. Each key at stake is charged its cheapest equal share of a
    fact that carries it, and the cheapest are taken until the text is full, the last in part. No
    text can do better.
    """
    budgets = [budget] * len(measure.boundaries) if isinstance(budget, int) else budget
    by_segment = _group_by_segment(measure, measure.stakes)
    return sum(
        _max_stakes(measure, stakes, _CHARS_PER_TOKEN * tokens)
        for stakes, tokens in zip(by_segment, budgets, strict=True)
    )


def compute_own_bound(
    measure: FidelityMeasure, segments: Iterable[ViewSegment] | SessionVisibility
) -> float:
    """Return the same bound for a policy's own boundaries and the sizes of its own summaries.

    Stakes carried by rows that it keeps count as carried.
    """
    sights = SessionVisibility.from_segments(measure.reading, segments)
    summaries = {sight.segment.call: sight.segment.summary for sight in sights.all}
    met = {
        stake
        for stake in measure.stakes
        if sights.find(stake.call).has_key_outside_summary(stake.key, stake.call)
    }
    rest = _group_by_segment(measure, (stake for stake in measure.stakes if stake not in met))
    return len(met) + sum(
        _max_stakes(measure, stakes, len(summaries.get(boundary.call, "")))
        for boundary, stakes in zip(measure.boundaries, rest, strict=True)
    )


def _group_by_segment(
    measure: FidelityMeasure, stakes: Iterable[LaterReference]
) -> list[list[LaterReference]]:
    segments: list[list[LaterReference]] = [[] for _ in measure.boundaries]
    for stake in stakes:
        segments[stake.segment].append(stake)
    return segments


def _max_stakes(
    measure: FidelityMeasure, stakes: Sequence[LaterReference], characters: int
) -> float:
    # The last fact of a text needs no separator.
    room = characters + 1.0
    most = 0.0
    for share in sorted(compute_cost_shares(measure, stakes)):
        if share > room:
            return most + room / share
        most += 1
        room -= share
    return most


def compute_cost_shares(
    measure: FidelityMeasure, stakes: Sequence[LaterReference]
) -> Iterable[float]:
    """Return, for each stake, the fewest characters that carrying it costs.

    The cost of a fact, or of a tail of one, is shared equally by the stakes that it carries.
    """
    if not stakes:
        return ()
    reading = measure.reading
    kept = reading.find_index(measure.boundaries[stakes[0].segment].first_kept)
    wanted = {stake.key: stake for stake in stakes}
    cheapest = dict.fromkeys(wanted, float("inf"))
    items = {(key, stake.kind) for key, stake in wanted.items()}
    for key in wanted:
        items.update(
            (part, fact.kind)
            for fact in reading.carriers.get(key, ())
            if fact.first < kept
            for part in fact.parts
            if key in list_carried_keys(Anchor(part, fact.kind, 0, 0))
        )
    for item, kind in items:
        carried = {*list_carried_keys(Anchor(item, kind, 0, 0))} & wanted.keys()
        for key in carried:
            cheapest[key] = min(cheapest[key], _count_characters(item) / len(carried))
    return cheapest.values()


def _count_characters(item: str) -> int:
    """Return its length, with a separator; only a percent sign needs none."""
    return len(item) + (not item.endswith("%"))
