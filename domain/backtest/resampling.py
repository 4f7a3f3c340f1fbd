"""How far a figure would lie elsewhere with other sessions of the same kind: the bootstrap."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from hashlib import shake_256
from math import sqrt
from operator import itemgetter
from statistics import NormalDist
from struct import unpack

RESAMPLES = 2_000
SEED = b"resamples"
"""Any would do; the same each time, so that the same sessions give the same interval."""
_CONFIDENCE = 0.95

Interval = tuple[float, float]
_Draw = Callable[[Sequence[float]], tuple[float, ...]]
"""Picks the values of the sessions of one resample."""


def bootstrap_interval(
    columns: Sequence[Sequence[float]], figure: Callable[[Sequence[float]], float | None]
) -> Interval | None:
    """Where `figure` lies, at 95 percent: percentiles of resamples, set wider for few sessions.

    Each column holds a number of each session, in one order; `figure` is given the columns' sums
    over a resample, and may answer None where it means nothing there. None where it never does.
    """
    sessions = len(columns[0]) if columns else 0
    if sessions < 2:
        return None
    found = [
        value
        for draw in _draw_resamples(sessions)
        if (value := figure([sum(draw(column)) for column in columns])) is not None
    ]
    if not found:
        return None
    ordered, left = sorted(found), _compute_tail_share(sessions)
    return _interpolate(ordered, left), _interpolate(ordered, 1 - left)


def _compute_tail_share(sessions: int) -> float:
    """The part of the resamples that lies outside on either side: 0.025 of very many sessions.

    Resamples of n sessions spread too little by sqrt((n - 1) / n), and their quantiles are those of
    a normal distribution where Student's are due. Both are made up for by going further out
    (Hesterberg's expanded percentiles): of six sessions, plain ones would be wrong 15 times in 100.
    """
    normal = NormalDist()
    freedom = sessions - 1
    quantile = _student_quantile(normal.inv_cdf((1 + _CONFIDENCE) / 2), freedom)
    return normal.cdf(-sqrt(sessions / freedom) * quantile)


def _student_quantile(z: float, freedom: int) -> float:
    """The quantile of Student's distribution for a normal one: its expansion in 1 / freedom."""
    return (
        z
        + (z**3 + z) / (4 * freedom)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3)
    )


def _interpolate(ordered: Sequence[float], part: float) -> float:
    """The value at a part of the way, between its neighbours where it lies between two."""
    place = part * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    if place == low or ordered[low] == ordered[high]:  # which may both be infinite
        return ordered[low]
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


@lru_cache(maxsize=8)
def _draw_resamples(sessions: int) -> tuple[_Draw, ...]:
    """The same resamples for all figures over so many sessions, so that figures compare."""
    # Drawn from a digest: the same on every machine and in every version of Python. That 2**32 is
    # no multiple of the number of sessions shows in no figure.
    numbers = unpack(f"<{RESAMPLES * sessions}I", shake_256(SEED).digest(4 * RESAMPLES * sessions))
    drawn = [number % sessions for number in numbers]
    return tuple(
        itemgetter(*drawn[start : start + sessions])
        for start in range(0, RESAMPLES * sessions, sessions)
    )
