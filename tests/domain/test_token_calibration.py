"""What reports teach, and how little a report that cannot be true does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutbank.domain.token_estimate import (
    MAX_RATIO,
    MAX_UNSEEN_TOKENS,
    MIN_RATIO,
    PRIOR_WEIGHT_TOKENS,
    ContentKind,
    TokenCalibration,
    is_credible,
    make_uniform_ratios,
)

TEXT, RESULT = ContentKind.TEXT, ContentKind.RESULT


def test_what_was_reported_makes_the_ratio() -> None:
    assert not TokenCalibration().has_learned
    assert TokenCalibration().predict_tokens({TEXT: 100, RESULT: 50}) == 150

    gauge = TokenCalibration().learn_growth({RESULT: 1_000}, 2_000)

    assert gauge.get_ratio(RESULT) == pytest.approx(
        (PRIOR_WEIGHT_TOKENS + 2_000) / (PRIOR_WEIGHT_TOKENS + 1_000)
    )
    assert gauge.get_ratio(TEXT) == 1
    # What text is like says nothing of images.
    german = TokenCalibration(prior=make_uniform_ratios(2.0))
    assert (german.get_ratio(TEXT), german.get_ratio(ContentKind.MEDIA)) == (2.0, 1.0)


def test_a_report_is_shared_out_by_what_was_expected_of_each_sort() -> None:
    gauge = TokenCalibration()
    for _ in range(50):
        gauge = gauge.learn_growth({RESULT: 1_000}, 1_500).learn_growth(
            {RESULT: 500, TEXT: 500}, 1_250
        )

    assert gauge.get_ratio(RESULT) == pytest.approx(1.5, rel=0.05)
    assert gauge.get_ratio(TEXT) == pytest.approx(1.0, rel=0.05)


def test_each_model_has_ratios_of_its_own_and_a_new_one_begins_with_the_last_ones() -> None:
    german = TokenCalibration().switch_model("a").learn_growth({TEXT: 10_000}, 20_000)

    other = german.switch_model("b")
    assert other.get_ratio(TEXT) == german.get_ratio(TEXT)

    other = other.learn_growth({TEXT: 100_000}, 100_000)
    assert other.get_ratio(TEXT) < 1.1
    assert other.switch_model("a").get_ratio(TEXT) == german.get_ratio(TEXT)


loads = st.dictionaries(st.sampled_from(ContentKind), st.integers(0, 10**9))


@given(reports=st.lists(st.tuples(loads, st.floats(-1e12, 1e12))))
def test_whatever_is_reported_no_ratio_leaves_its_bounds(
    reports: list[tuple[dict[ContentKind, int], float]],
) -> None:
    gauge = TokenCalibration()
    for load, growth in reports:
        gauge = gauge.learn_growth(load, growth)

    assert all(MIN_RATIO <= gauge.get_ratio(sort) <= MAX_RATIO for sort in ContentKind)
    assert TokenCalibration().learn_growth({TEXT: 100}, 10**12).get_ratio(TEXT) < 1.6


def test_a_report_is_believed_within_bounds() -> None:
    rows: list[tuple[int, int, bool]] = [
        (0, 0, False),
        (-5, 0, False),
        (249, 1_000, False),
        (250, 1_000, True),
        (30_000, 10, True),  # a long system prompt that nobody put into the log
        (4_000 + MAX_UNSEEN_TOKENS, 1_000, True),
        (4_001 + MAX_UNSEEN_TOKENS, 1_000, False),
        (10**12, 100_000, False),
    ]

    assert [
        (context, expected, is_credible(context, expected)) for context, expected, _ in rows
    ] == rows
