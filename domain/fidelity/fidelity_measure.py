"""Measures how much of what was needed later a policy's views still carried."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from ..cached_property import cached_property
from ..token_estimate import CHARS_PER_TOKEN
from .anchors import Anchor, list_carried_keys
from .later_references import LaterReference, RowBoundary, iter_stakes
from .rows import Scores, ViewSegment
from .session_reading import SessionReading
from .stakes import Constraint, RepeatedPair
from .visibility import SegmentVisibility, SessionVisibility


class FidelityMeasure:
    """The stakes of one session at certain boundaries, and how many of them views carry.

    Made once for many policies: rows are read in advance, so that the cost of a score grows with
    the stakes and not with the session.
    """

    def __init__(self, reading: SessionReading, boundaries: Sequence[RowBoundary]) -> None:
        self.reading = reading
        self.boundaries = tuple(boundaries)
        self.stakes = tuple(iter_stakes(reading, self.boundaries))
        """The stakes that count in R."""
        self._expected: dict[LaterReference, frozenset[str]] = {}

    def score(self, segments: Iterable[ViewSegment] | SessionVisibility) -> Scores:
        """Return the counts of all stakes and of those that the views carry."""
        sights = self._see(segments)
        hits = [stake for stake in self.stakes if _is_carried(sights, stake)]
        summaries = {sight.segment.summary: sight for sight in reversed(sights.all)}
        return Scores(
            boundaries=len(self.boundaries),
            stakes=len(self.stakes),
            hits=len(hits),
            hard_stakes=sum(stake.is_hard for stake in self.stakes),
            hard_hits=sum(stake.is_hard for stake in hits),
            context_hits=sum(self._is_context_kept(sights.find(hit.call), hit) for hit in hits),
            quoted_hits=sum(self._is_context_quoted(sights.find(hit.call), hit) for hit in hits),
            pairs=len(self.pair_references),
            pair_hits=sum(
                self._has_pair(sights.find(stake.call), stake) for stake in self.pair_references
            ),
            modified=sum(len(keys) for _, keys in self.hidden_files),
            modified_named=sum(
                sights.find(call).has_key(key, call)
                for call, keys in self.hidden_files
                for key in keys
            ),
            constraints=len(self.hidden_rules),
            constraints_kept=sum(
                _is_rule_kept(sights.find(call), call, rule) for call, rule in self.hidden_rules
            ),
            novel=sum(len(sight.novel_facts) for text, sight in summaries.items() if text),
        )

    def find_lost(
        self, segments: Iterable[ViewSegment] | SessionVisibility
    ) -> tuple[LaterReference, ...]:
        """Return the stakes that the views do not carry, in the order in which they were needed."""
        sights = self._see(segments)
        return tuple(stake for stake in self.stakes if not _is_carried(sights, stake))

    def _see(self, segments: Iterable[ViewSegment] | SessionVisibility) -> SessionVisibility:
        if isinstance(segments, SessionVisibility):
            return segments
        return SessionVisibility(self.reading, segments)

    # Stakes apart from facts

    @cached_property
    def pair_references(self) -> tuple[RepeatedPair, ...]:
        """The first use, in a segment, of each pair of words that is only in hidden history."""
        calls = [boundary.call for boundary in self.boundaries]
        found: dict[tuple[int, object], RepeatedPair] = {}
        for again in self.reading.pairs.repeated:
            segment = bisect_right(calls, again.call) - 1
            if segment >= 0 and again.newest < self.boundaries[segment].first_kept:
                found.setdefault((segment, again.pair), again)
        return tuple(found.values())

    @cached_property
    def hidden_files(self) -> tuple[tuple[int, frozenset[str]], ...]:
        """The files that hidden calls modified, by key, with the call of each boundary."""
        edits = [touch for touch in self.reading.file_touches if touch.modifies]
        return tuple(
            (at.call, frozenset(edit.key for edit in edits if edit.position < at.first_kept))
            for at in self.boundaries
        )

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
        return visibility.has_context(hit.key, hit.call, self._find_expected_words(hit))

    def _is_context_quoted(self, visibility: SegmentVisibility, hit: LaterReference) -> bool:
        return visibility.has_quoted_context(hit.key, hit.call, self._find_expected_words(hit))

    def _find_expected_words(self, hit: LaterReference) -> frozenset[str]:
        """Return the words around a fact where it was last hidden, and where it was used."""
        expected = self._expected.get(hit)
        if expected is None:
            reading = self.reading
            expected = self._expected[hit] = frozenset(
                word
                for position in (hit.hidden_in, hit.used_in)
                for word in reading.contexts.collect_words(
                    reading.rows.rows[reading.find_index(position)].text, hit.key
                )
            )
        return expected

    def _has_pair(self, visibility: SegmentVisibility, stake: RepeatedPair) -> bool:
        pair, summary = stake.pair, visibility.segment.summary
        if summary and pair in visibility.summary.pairs:
            return True
        places = self.reading.pairs.places[pair]
        return visibility.has_any_row(places, stake.call) or any(
            pair in told.pairs for told in visibility.iter_partial_texts(places, stake.call)
        )


def _is_rule_kept(visibility: SegmentVisibility, call: int, rule: Constraint) -> bool:
    summary = visibility.segment.summary
    if summary and rule.is_kept_in(visibility.summary.words):
        return True
    return visibility.has_any_row(rule.indices, call) or any(
        rule.is_kept_in(told.words) for told in visibility.iter_partial_texts(rule.indices, call)
    )


def _is_carried(visibilities: SessionVisibility, stake: LaterReference) -> bool:
    """Check whether the view of the call that needed the fact carried it."""
    return visibilities.find(stake.call).has_key(stake.key, stake.call)


def compute_upper_bound(measure: FidelityMeasure, budget: int) -> float:
    """Return the most stakes that texts of `budget` tokens can carry, summed over all boundaries.

    Facts of a text never overlap, so a text is at least as long as all its facts. Each key at stake
    is charged its cheapest equal share of a fact that carries it, and the cheapest are taken until
    the text is full, the last in part. No text can do better.
    """
    by_segment: list[list[LaterReference]] = [[] for _ in measure.boundaries]
    for stake in measure.stakes:
        by_segment[stake.segment].append(stake)
    return sum(_max_stakes(measure, stakes, CHARS_PER_TOKEN * budget) for stakes in by_segment)


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
