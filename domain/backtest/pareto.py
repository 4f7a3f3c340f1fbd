"""Finds the setups that no other setup beats in both cost and fidelity."""

from collections.abc import Sequence


def find_pareto_front(points: Sequence[tuple[float, float] | None]) -> list[int]:
    """Return the indices of the points on the front, by cost.

    Each point is a cost and a fidelity. A point is not on the front if another costs no more, keeps
    no less, and is better in one of the two. None is a point with an unknown value, which is not on
    the front.
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
