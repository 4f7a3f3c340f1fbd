"""Counts add up, ratios come last, and nothing at stake is no score at all."""

import pytest
from fidelity_sessions import TEXTS, Cut, cut_talks, dropping
from hypothesis import given
from hypothesis import strategies as st

from cutbank.domain.fidelity.fidelity_measure import FidelityMeasure
from cutbank.domain.fidelity.rows import Scores

COUNTS = st.lists(st.integers(0, 50), min_size=4, max_size=4)


def scores(stakes: int, hits: int, pairs: int, pair_hits: int) -> Scores:
    return Scores(stakes=stakes, hits=hits, pairs=pairs, pair_hits=pair_hits)


def test_the_headline_is_the_harmonic_mean_of_recall_context_and_prose() -> None:
    told = Scores(stakes=10, hits=8, context_hits=4, pairs=10, pair_hits=2)

    assert (told.recall, told.context, told.prose) == (0.8, 0.4, 0.2)
    assert told.f3 == pytest.approx(3 / (1 / 0.8 + 1 / 0.4 + 1 / 0.2))
    assert Scores(stakes=10, hits=8, context_hits=4, pairs=10).f3 == 0.0
    assert Scores(stakes=10, hits=8, context_hits=4).f3 is None
    assert Scores().recall is Scores().prose is Scores().f3 is None


@given(COUNTS, COUNTS, COUNTS)
def test_adding_never_depends_on_the_order(one: list[int], two: list[int], more: list[int]) -> None:
    a, b, c = scores(*one), scores(*two), scores(*more)

    assert a + b == b + a
    assert (a + b) + c == a + (b + c)
    assert a + Scores() == a
    assert (a + b).hits == one[1] + two[1]


@given(cut_talks(), TEXTS, TEXTS)
def test_adding_lines_to_a_summary_never_lowers_a_count(cut: Cut, summary: str, more: str) -> None:
    reading, boundaries = cut
    measure = FidelityMeasure(reading, boundaries)

    before = measure.score(dropping(reading, boundaries, summary))
    after = measure.score(dropping(reading, boundaries, f"{summary}\n{more}"))

    for name in Scores.model_fields:
        assert getattr(after, name) >= getattr(before, name), name


@given(cut_talks(), TEXTS)
def test_no_count_ever_passes_what_it_is_a_part_of(cut: Cut, summary: str) -> None:
    told = FidelityMeasure(*cut).score(dropping(*cut, summary))

    assert told.context_hits <= told.hits <= told.stakes
    assert told.pair_hits <= told.pairs
    assert told.modified_named <= told.modified
    assert told.constraints_kept <= told.constraints
