"""C: a fact counts in its context where two of the words stand beside it that stood there."""

from dataclasses import replace

from fidelity_sessions import Talk, dropping
from hypothesis import given
from hypothesis import strategies as st

from cutbank.domain.fidelity.canonical_boundaries import Boundary
from cutbank.domain.fidelity.fidelity_measure import Measure
from cutbank.domain.fidelity.plain_words import PlainWords
from cutbank.domain.fidelity.segments import WHOLE
from cutbank.domain.fidelity.word_context import Contexts, is_kept
from cutbank.domain.ranges import Ranges

CONTEXTS = Contexts(PlainWords())
READING = (
    Talk()
    .user("go")
    .calls_tool("look", "ask")
    .returns("the harbour gate opens zone_of slowly")
    .says("well")
    .says("well")
    .says("close zone_of with bronze hinges")
    .read()
)
BOUNDARIES = (Boundary(3, 4),)
MEASURE = Measure(READING, BOUNDARIES)


def kept_with(summary: str) -> tuple[int, int]:
    scores = MEASURE.scores(dropping(READING, BOUNDARIES, summary))
    return scores.hits, scores.context_hits


def test_two_words_of_the_last_hidden_row_are_context_enough() -> None:
    assert kept_with("gate: zone_of, harbour") == (1, 1)


def test_two_words_of_the_row_that_uses_it_are_context_enough() -> None:
    assert kept_with("bronze close zone_of") == (1, 1)


def test_one_word_of_each_is_enough_together() -> None:
    assert kept_with("harbour zone_of bronze") == (1, 1)


def test_the_fact_alone_or_beside_one_word_is_no_context() -> None:
    assert kept_with("zone_of") == (1, 0)
    assert kept_with("gate gate zone_of river bank") == (1, 0)


def test_words_without_the_fact_are_no_hit() -> None:
    assert kept_with("harbour gate opens") == (0, 0)


def test_words_that_stand_too_far_away_are_no_context() -> None:
    far = "river " * 20

    assert kept_with(f"harbour gate {far}zone_of") == (1, 0)
    assert kept_with(f"harbour gate\n{'river ' * 10}\nzone_of") == (1, 1)


def test_the_whole_history_keeps_the_context() -> None:
    scores = MEASURE.scores([WHOLE])

    assert (scores.context_hits, scores.context) == (1, 1.0)


def test_a_row_that_is_kept_keeps_the_context_and_a_shortened_one_what_shows() -> None:
    (dropped,) = dropping(READING, BOUNDARIES)
    kept = replace(dropped, kept=Ranges.span(3, 3))

    assert MEASURE.scores([kept]).context_hits == 1
    assert MEASURE.scores([replace(kept, shown={3: "gate zone_of"})]).context_hits == 0
    assert MEASURE.scores([replace(kept, shown={3: "harbour gate zone_of"})]).context_hits == 1


def test_where_less_than_two_words_ever_stood_nothing_is_context() -> None:
    reading = Talk().user("zone_of").says("gate").says("go on").says("zone_of gate").read()
    boundaries = (Boundary(3, 2),)
    measure = Measure(reading, boundaries)

    assert len(measure.stakes) == 1
    assert measure.scores([WHOLE]).hits == 1
    assert measure.scores([WHOLE]).context_hits == 0


def test_all_occurrences_in_a_row_have_their_words_across_lines() -> None:
    text = f"river zone_of\nbank{' ' * 300}deep src/zone_of.py m.zone_of harbour"

    assert CONTEXTS.near(text, "zone_of") == (
        frozenset({"river", "bank"}),
        frozenset({"deep", "harbour"}),
    )


def test_a_number_is_found_whose_unit_stands_apart() -> None:
    assert CONTEXTS.words("it took 12 ms and 12ms longer", "12ms") == {"took", "longer"}


def test_a_word_that_is_cut_by_the_reach_is_none() -> None:
    gap = " " * 96

    assert CONTEXTS.words(f"bank{gap}zone_of{gap}deep", "zone_of") == {"bank", "deep"}
    assert CONTEXTS.words(f"bank {gap}zone_of {gap}deep", "zone_of") == set()


TEXT = st.lists(
    st.sampled_from(["river", "bank", "deep", "gate", "zone_of", "zone_of.x", ",", "\n"]),
    max_size=60,
)


@given(TEXT.map(" ".join))
def test_the_words_near_are_always_those_of_a_plain_search(text: str) -> None:
    line = PlainWords()
    spots, facts, start = [], [], 0
    for part in text.split("\n"):
        read = line.line(part)
        spots += [(spot.word, start + spot.start, start + spot.end) for spot in read.spots]
        facts += [(start + fact.start, start + fact.end) for fact in read.facts]
        start += len(part) + 1

    assert CONTEXTS.near(text, "zone_of") == tuple(
        frozenset(word for word, a, b in spots if a >= first - 100 and b <= last + 100)
        for first, last in facts
    )


def test_two_words_are_enough_and_have_to_stand_together() -> None:
    expected = frozenset({"river", "bank", "deep"})

    assert is_kept(expected, [frozenset({"river"}), frozenset({"bank", "deep"})])
    assert not is_kept(expected, [frozenset({"river"}), frozenset({"bank"})])
    assert not is_kept(frozenset({"river"}), [frozenset({"river"})])
