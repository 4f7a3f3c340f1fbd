"""The bound: no text of a size carries more of what is at stake, whatever it says."""

from collections.abc import Sequence

import pytest
from fidelity_sessions import TEXTS, Cut, Talk, cut_talks, dropping
from hypothesis import given
from hypothesis import strategies as st

from cutbank.domain.fidelity.fidelity_measure import (
    FidelityMeasure,
    compute_upper_bound,
)
from cutbank.domain.fidelity.later_references import RowBoundary

CUT = (RowBoundary(3, 4),)


def at_stake(*facts: str, hidden: str = "") -> FidelityMeasure:
    """All of the facts are hidden, and used."""
    said = " ".join(facts)
    talk = Talk().user(f"{said} {hidden}").says("a").says("b").says("c").says(said)
    return FidelityMeasure(talk.read(), CUT)


def test_each_fact_costs_its_characters_and_one_that_parts_it_but_for_the_last() -> None:
    measure = at_stake("zone_of", "bank_of")

    # 7 + 1 + 7 characters, of which a token has four.
    assert compute_upper_bound(measure, 4) == 2.0
    assert compute_upper_bound(measure, 2) == 1.0 + 1 / 8
    assert compute_upper_bound(measure, 1) == pytest.approx(5 / 8)
    assert compute_upper_bound(measure, 0) == pytest.approx(1 / 8)
    # The cheapest come first.
    assert compute_upper_bound(at_stake("deep_river_bank", "my_id"), 2) == pytest.approx(1 + 3 / 16)


def test_what_carries_several_is_shared_by_them() -> None:
    # src/river.py carries river.py: 12 + 1 characters for two, 6.5 each; river.py alone costs 9.
    measure = at_stake("src/river.py", "river.py")

    assert compute_upper_bound(measure, 3) == 2.0
    assert compute_upper_bound(measure, 2) == pytest.approx(1 + 2.5 / 6.5)


def test_a_hidden_fact_that_joins_two_may_carry_them_for_less() -> None:
    alone = at_stake("bank_of_the_river", "gate_of")
    joined = at_stake("bank_of_the_river", "gate_of", hidden="gate_of.bank_of_the_river")

    # Shared equally, 26 characters are 13 for either; apart they cost 18 and 8.
    assert compute_upper_bound(alone, 4) == pytest.approx(1 + 9 / 18)
    assert compute_upper_bound(joined, 4) == pytest.approx(1 + 9 / 13)


def test_a_percent_sign_parts_by_itself() -> None:
    facts = ("51%", "61%", "71%", "my_id")
    measure = at_stake(*facts)

    (spell,) = dropping(measure.reading, CUT, "".join(facts))
    assert measure.score([spell]).hits == 4 == compute_upper_bound(measure, 4)


def test_each_boundary_has_a_text_of_its_own() -> None:
    talk = Talk().user("zone_of bank_of").says("a").says("zone_of").says("b").says("c bank_of")
    measure = FidelityMeasure(talk.read(), (RowBoundary(2, 2), RowBoundary(4, 4)))

    assert [stake.segment for stake in measure.stakes] == [0, 1]
    assert compute_upper_bound(measure, 2) == 2.0


def cut_to(words: Sequence[str], separator: str, budget: int) -> str:
    return separator.join(words)[: 4 * budget]


@given(
    cut=cut_talks(),
    words=st.lists(TEXTS, max_size=8),
    separator=st.sampled_from([" ", "\n", ",", ".", "/", "::", "", "%"]),
    budget=st.integers(0, 12),
)
def test_no_text_of_a_size_ever_carries_more(
    cut: Cut, words: list[str], separator: str, budget: int
) -> None:
    reading, boundaries = cut
    measure = FidelityMeasure(reading, boundaries)
    text = cut_to([word for words in words for word in words.split()], separator, budget)

    hits = measure.score(dropping(reading, boundaries, text)).hits

    assert hits <= compute_upper_bound(measure, budget) + 1e-9
