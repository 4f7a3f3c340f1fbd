"""Computes confidence intervals over sessions by the bootstrap."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from hashlib import shake_256
from math import sqrt
from operator import itemgetter
from statistics import NormalDist
from struct import unpack

RESAMPLES = 2_000
SEED = b"resamples"
"""Fixed, so that the same sessions always give the same interval."""
_CONFIDENCE = 0.95

Interval = tuple[float, float]
_Draw = Callable[[Sequence[float]], tuple[float, ...]]
"""Picks the values of the sessions in one resample."""


def bootstrap_interval(
    columns: Sequence[Sequence[float]], figure: Callable[[Sequence[float]], float | None]
) -> Interval | None:
    """Return the 95 percent interval of `figure`: resampled percentiles, widened for few sessions.

    Each column holds one number per session, in the same order. `figure` gets the columns' sums
    over a resample, and may return None if it is undefined there. The result is None if it always
    is.
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
    """Return the share of resamples beyond either end of the interval: 0.025 for many sessions.

    Resamples of n sessions spread too little by sqrt((n - 1) / n), and their quantiles are normal
    instead of Student's. Hesterberg's expanded percentiles correct both by going further out: for
    six sessions, plain percentiles would be wrong 15 times in 100.
    """
    normal = NormalDist()
    freedom = sessions - 1
    quantile = _student_quantile(normal.inv_cdf((1 + _CONFIDENCE) / 2), freedom)
    return normal.cdf(-sqrt(sessions / freedom) * quantile)


def _student_quantile(z: float, freedom: int) -> float:
    """Return Student's quantile for a normal one, by its expansion in 1 / freedom."""
    return (
        z
        + (z**3 + z) / (4 * freedom)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3)
    )


def _interpolate(ordered: Sequence[float], part: float) -> float:
    place = part * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    if place == low or ordered[low] == ordered[high]:  # both may be infinite
        return ordered[low]
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


@lru_cache(maxsize=8)
def _draw_resamples(sessions: int) -> tuple[_Draw, ...]:
    """Return the same resamples for all figures over so many sessions, so that figures compare."""
    # Drawn from a digest, so that they are the same on every machine and Python version. The bias
    # from 2**32 not being a multiple of the number of sessions is negligible.
    numbers = unpack(f"<{RESAMPLES * sessions}I", shake_256(SEED).digest(4 * RESAMPLES * sessions))
    drawn = [number % sessions for number in numbers]
    return tuple(
        itemgetter(*drawn[start : start + sessions])
        for start in range(0, RESAMPLES * sessions, sessions)
    )
