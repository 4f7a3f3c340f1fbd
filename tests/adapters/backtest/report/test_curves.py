"""Context use, thinned: what matters of a curve stays."""

from hypothesis import given
from hypothesis import strategies as st

from cutbank.adapters.analysis.backtest.report.curves import thin_points

curves = st.lists(st.integers(0, 1_000), max_size=300)


@given(curves, st.integers(4, 60))
def test_a_thinned_curve_is_bounded_and_keeps_its_ends_and_extremes(
    values: list[int], points: int
) -> None:
    kept = thin_points(values, points)

    assert len(kept) <= max(points, 0) or len(values) <= points
    assert kept == sorted(set(kept))
    if values:
        assert (kept[0], kept[-1]) == (0, len(values) - 1)
        shown = [values[index] for index in kept]
        assert (min(shown), max(shown)) == (min(values), max(values))


@given(curves)
def test_a_short_curve_stays_whole(values: list[int]) -> None:
    assert thin_points(values, 300) == list(range(len(values)))
