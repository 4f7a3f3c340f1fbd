"""How far a figure would lie elsewhere with other sessions of the same kind: the bootstrap."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from hashlib import shake_256
from operator import itemgetter
from struct import unpack

RESAMPLES = 2_000
SEED = b"resamples"
"""Any would do; the same each time, so that the same sessions give the same interval."""
CERTAIN = 0.95

Interval = tuple[float, float]
Draw = Callable[[Sequence[float]], tuple[float, ...]]
"""Picks the values of the sessions of one resample."""


def interval_of(
    columns: Sequence[Sequence[float]], figure: Callable[[Sequence[float]], float | None]
) -> Interval | None:
    """Where `figure` lies in 95 of 100 resamples of the sessions, by percentiles.

    Each column holds a number of each session, in one order; `figure` is given the columns' sums
    over a resample, and may answer None where it means nothing there. None where it never does.
    """
    sessions = len(columns[0]) if columns else 0
    if sessions < 2:
        return None
    found = [
        value
        for draw in _draws(sessions)
        if (value := figure([sum(draw(column)) for column in columns])) is not None
    ]
    return _percentiles(sorted(found)) if found else None


def _percentiles(ordered: Sequence[float]) -> Interval:
    left = (1 - CERTAIN) / 2
    return _at(ordered, left), _at(ordered, 1 - left)


def _at(ordered: Sequence[float], part: float) -> float:
    """The value at a part of the way, between its neighbours where it lies between two."""
    place = part * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    # Written so that equal neighbours give just that value.
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


@lru_cache(maxsize=8)
def _draws(sessions: int) -> tuple[Draw, ...]:
    """The same resamples for all figures over so many sessions, so that figures compare."""
    # Drawn from a digest: the same on every machine and in every version of Python. That 2**32 is
    # no multiple of the number of sessions shows in no figure.
    numbers = unpack(f"<{RESAMPLES * sessions}I", shake_256(SEED).digest(4 * RESAMPLES * sessions))
    drawn = [number % sessions for number in numbers]
    return tuple(
        itemgetter(*drawn[start : start + sessions])
        for start in range(0, RESAMPLES * sessions, sessions)
    )
