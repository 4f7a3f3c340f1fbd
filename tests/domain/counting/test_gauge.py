"""What reports teach, and how little a report that cannot be true does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutbank.domain.counting.token_calibration import (
    LEAST,
    MOST,
    UNSEEN,
    WEIGHT,
    Gauge,
    Sort,
    is_credible,
)

TEXT, RESULT = Sort.TEXT, Sort.RESULT


def test_where_nothing_was_reported_the_estimate_stands() -> None:
    gauge = Gauge()

    assert not gauge.has_learned
    assert gauge.tokens({TEXT: 100, RESULT: 50}) == 150


def test_what_was_reported_makes_the_ratio() -> None:
    gauge = Gauge().learned({RESULT: 1_000}, 2_000)

    assert gauge.ratio(RESULT) == pytest.approx((WEIGHT + 2_000) / (WEIGHT + 1_000))
    assert gauge.ratio(TEXT) == 1


def test_a_report_is_shared_out_by_what_was_expected_of_each_sort() -> None:
    gauge = Gauge()
    for _ in range(50):
        gauge = gauge.learned({RESULT: 1_000}, 1_500).learned({RESULT: 500, TEXT: 500}, 1_250)

    assert gauge.ratio(RESULT) == pytest.approx(1.5, rel=0.05)
    assert gauge.ratio(TEXT) == pytest.approx(1.0, rel=0.05)


def test_each_model_has_ratios_of_its_own_and_a_new_one_begins_with_the_last_ones() -> None:
    german = Gauge().speaking_to("a").learned({TEXT: 10_000}, 20_000)

    other = german.speaking_to("b")
    assert other.ratio(TEXT) == german.ratio(TEXT)

    other = other.learned({TEXT: 100_000}, 100_000)
    assert other.ratio(TEXT) < 1.1
    assert other.speaking_to("a").ratio(TEXT) == german.ratio(TEXT)


def test_what_text_is_like_says_nothing_of_images() -> None:
    gauge = Gauge(prior=2.0)

    assert (gauge.ratio(TEXT), gauge.ratio(Sort.MEDIA)) == (2.0, 1.0)


def test_the_error_is_kept_as_the_last_one_and_the_mean() -> None:
    gauge = Gauge().predicted(90, 100).predicted(130, 100)

    assert gauge.calls == 2
    assert gauge.last_error == pytest.approx(0.3)
    assert gauge.mean_error == pytest.approx(0.2)


loads = st.dictionaries(st.sampled_from(Sort), st.integers(0, 10**9))


@given(reports=st.lists(st.tuples(loads, st.floats(-1e12, 1e12))))
def test_whatever_is_reported_no_ratio_leaves_its_bounds(
    reports: list[tuple[dict[Sort, int], float]],
) -> None:
    gauge = Gauge()
    for load, growth in reports:
        gauge = gauge.learned(load, growth)

    assert all(LEAST <= gauge.ratio(sort) <= MOST for sort in Sort)


def test_one_absurd_report_teaches_no_more_than_a_large_one() -> None:
    gauge = Gauge().learned({TEXT: 100}, 10**12)

    assert gauge.ratio(TEXT) < 1.6


@pytest.mark.parametrize(
    ("context", "expected", "credible"),
    [
        (0, 0, False),
        (-5, 0, False),
        (1, 1_000, False),
        (249, 1_000, False),
        (250, 1_000, True),
        (30_000, 10, True),  # a long system prompt that nobody put into the log
        (4_000 + UNSEEN, 1_000, True),
        (4_001 + UNSEEN, 1_000, False),
        (10**12, 100_000, False),
    ],
)
def test_a_report_is_believed_within_bounds(context: int, expected: int, credible: bool) -> None:
    assert is_credible(context, expected) is credible
