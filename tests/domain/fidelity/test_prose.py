"""P: pairs of words that the agent's prose took up again, when all that had them was hidden."""

import itertools
from dataclasses import replace

from fidelity_sessions import Cut, Talk, cut_talks, dropping, measure, score_summary
from hypothesis import given
from hypothesis import strategies as st

from cutbank.domain.fidelity.fidelity_measure import FidelityMeasure
from cutbank.domain.fidelity.rows import AGENT_KINDS, WHOLE_HISTORY, RowKind
from cutbank.domain.fidelity.session_reading import SessionReading
from cutbank.domain.fidelity.stakes import RepeatedPair
from cutbank.domain.ranges import Ranges


def pairs(talk: Talk) -> list[str]:
    return [" ".join(stake.pair) for stake in measure(talk, (3, 4)).pair_references]


def story(hidden: str, later: str) -> Talk:
    return Talk().user(hidden).says("first").says("second").says("third").says(later)


GATES = measure(story("harbour gate", "harbour gate"), (3, 4))


def test_a_pair_is_at_stake_that_later_prose_has_again() -> None:
    found = {
        ("the harbour gate opens", "a Gate, the harbour"): ["gate harbour"],
        ("harbour of the zone_of gate", "harbour gate"): ["gate harbour"],
        ("harbour\ngate", "harbour gate"): [],
        ("all tests pass at the root cause", "tests pass, root cause"): ["pass root"],
    }

    assert {said: pairs(story(*said)) for said in found} == found


def test_the_summary_has_a_pair_within_three_words_in_a_line() -> None:
    hits = {
        "gate and deep brown harbour": 1,
        "gate deep grey brown harbour": 0,
        "gate\nharbour": 0,
        "": 0,
    }

    assert {text: score_summary(GATES, text).pair_hits for text in hits} == hits
    assert score_summary(GATES, "gate harbour").prose == 1.0


def test_prose_that_still_shows_has_its_pairs() -> None:
    (dropped,) = dropping(GATES.reading, GATES.boundaries)
    kept = replace(dropped, kept=Ranges.span(1, 1))

    for shown, hits in [(None, 1), ("gate", 0), ("harbour of gate", 1)]:
        segment = replace(kept, shown={1: shown} if shown else {})
        assert GATES.score([segment]).pair_hits == hits, shown


PROSE = st.lists(st.sampled_from(["river", "bank", "deep", "gate"]), max_size=5).map(" ".join)


@given(cut_talks(), st.lists(PROSE, min_size=30, max_size=30))
def test_the_pairs_at_stake_are_always_those_of_the_definition(cut: Cut, prose: list[str]) -> None:
    rows = cut[0].rows
    said = [
        replace(row, text=prose[index % 30]) if row.kind is not RowKind.SYSTEM else row
        for index, row in enumerate(rows.rows)
    ]
    of = FidelityMeasure(SessionReading(replace(rows, rows=said)), cut[1])

    assert set(of.pair_references) == _by_definition(of)
    assert of.score([WHOLE_HISTORY]).pair_hits == len(of.pair_references)
    assert of.score(dropping(of.reading, cut[1])).pair_hits == 0


def _by_definition(measure: FidelityMeasure) -> set[RepeatedPair]:
    rows = measure.reading.rows.rows
    prose = [row for row in rows if row.kind in {RowKind.USER, RowKind.ASSISTANT, RowKind.THINKING}]
    found: set[RepeatedPair] = set()
    for number, boundary in enumerate(measure.boundaries):
        later = measure.boundaries[number + 1 :]
        ends = later[0].call if later else measure.reading.rows.calls + 1
        known: set[tuple[str, ...]] = set()
        for row in sorted(prose, key=lambda row: row.call):
            if row.kind not in AGENT_KINDS or not boundary.call <= row.call < ends:
                continue
            words = row.text.split()
            for one, two in itertools.pairwise(words):
                pair = (min(one, two), max(one, two))
                if one == two or pair in known:
                    continue
                before = [
                    earlier.position
                    for earlier in prose
                    if earlier.call + (earlier.kind in AGENT_KINDS) <= row.call
                    and _has(earlier.text.split(), pair)
                ]
                if before and max(before) < boundary.first_kept:
                    known.add(pair)
                    found.add(RepeatedPair(row.call, pair, max(before)))
    return found


def _has(words: list[str], pair: tuple[str, str]) -> bool:
    return any({*pair} == {one, two} for one, two in itertools.pairwise(words))
