"""P: pairs of words that the agent's prose took up again, when all that had them was hidden."""

from dataclasses import replace

from fidelity_sessions import Talk, dropping, measure, score_summary

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


def test_a_pair_is_at_stake_in_each_segment_until_prose_that_shows_has_it() -> None:
    talk = Talk().user("harbour gate").says("first").says("harbour gate").says("third")
    talk.says("gate, harbour").says("gate harbour")
    told = [(2, 2), (3, 3)], [(3, 4)], [(2, 2), (4, 5)]

    calls = [[one.call for one in measure(talk, *at).pair_references] for at in told]

    # The third row takes it up at call 2, and shows it until a boundary hides that row as well.
    assert calls == [[2], [4], [2, 4]]
    by_a_tool = Talk().calls_tool("look", "x").returns("harbour gate").says("a").says("b")
    assert pairs(by_a_tool.says("harbour gate")) == []
