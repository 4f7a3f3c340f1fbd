"""Counts add up, ratios come last, and nothing at stake is no score at all."""

import pytest
from fidelity_sessions import TEXTS, Cut, cut_talks, dropping
from hypothesis import given

from cutbank.domain.fidelity.fidelity_measure import FidelityMeasure
from cutbank.domain.fidelity.rows import Scores


def test_counts_add_up_and_the_headline_is_the_harmonic_mean_of_recall_context_and_prose() -> None:
    told = Scores(stakes=10, hits=8, context_hits=4, pairs=10, pair_hits=2)

    assert (told.recall, told.context, told.prose) == (0.8, 0.4, 0.2)
    assert told + Scores(stakes=1, pairs=2, hits=1) == told.model_copy(
        update={"stakes": 11, "hits": 9, "pairs": 12}
    )
    assert told.f3 == pytest.approx(3 / (1 / 0.8 + 1 / 0.4 + 1 / 0.2))
    assert Scores(stakes=10, hits=8, context_hits=4, pairs=10).f3 == 0.0
    assert Scores(stakes=10, hits=8, context_hits=4).f3 is None
    assert Scores().recall is Scores().prose is Scores().f3 is None


@given(cut_talks(), TEXTS, TEXTS)
def test_adding_lines_to_a_summary_never_lowers_a_count(cut: Cut, summary: str, more: str) -> None:
    reading, boundaries = cut
    measure = FidelityMeasure(reading, boundaries)

    before = measure.score(dropping(reading, boundaries, summary))
    after = measure.score(dropping(reading, boundaries, f"{summary}\n{more}"))

    for name in Scores.model_fields:
        assert getattr(after, name) >= getattr(before, name), name
