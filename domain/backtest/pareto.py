"""The setups that nothing else beats in cost and in fidelity at once."""

from collections.abc import Sequence


def find_pareto_front(points: Sequence[tuple[float, float] | None]) -> list[int]:
    """Which points are on the front, by cost: each a cost, less being better, and a fidelity.

    A point is off it if another costs no more, keeps no less, and is better in one of the two; None
    stands for a point of which one of the two is not known, and is off it.
    """
    known = [(point, number) for number, point in enumerate(points) if point is not None]
    ordered = sorted(known, key=lambda one: (one[0][0], -one[0][1], one[1]))
    on_front: list[int] = []
    best: tuple[float, float] | None = None
    for point, number in ordered:
        if best is None or point[1] > best[1] or point == best:
            on_front.append(number)
            best = point
    return on_front
