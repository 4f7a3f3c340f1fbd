"""The front of cost against fidelity."""

from hypothesis import given
from hypothesis import strategies as st

from cutbank.domain.backtest.pareto import find_pareto_front

points = st.lists(st.none() | st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=10)


def test_a_known_front() -> None:
    cheap, dear, beaten, best = (1.0, 0.2), (9.0, 1.0), (5.0, 0.4), (4.0, 0.7)

    assert find_pareto_front([dear, beaten, cheap, best]) == [2, 3, 0]


@given(points)
def test_a_point_is_on_the_front_if_and_only_if_none_beats_it(
    found: list[tuple[float, float] | None],
) -> None:
    known = [point for point in found if point is not None]
    unbeaten = {
        number
        for number, point in enumerate(found)
        if point is not None
        and not any(
            other[0] <= point[0] and other[1] >= point[1] and other != point for other in known
        )
    }

    assert set(find_pareto_front(found)) == unbeaten
