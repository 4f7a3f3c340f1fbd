"""A figure, what it is held against, and what says how much is measured."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import log
from pathlib import Path
from statistics import median, quantiles

Times = tuple[list[float], list[float]]
"""Seconds of cutbank's operations, and of the same ones by hand."""

FLAT = 0.1
"""The largest exponent that counts as not growing."""


@dataclass(frozen=True)
class Figure:
    """One line of the table."""

    what: str
    unit: str
    cutbank: float
    raw: float | None = None
    ratio: float | None = None
    target: str = ""
    met: bool | None = None


@dataclass(frozen=True)
class Options:
    """Where to measure, and how much."""

    folder: Path
    sizes: list[int]
    """Blocks of the growing session, and sessions of the growing file."""
    ops: int
    blocks: int
    processes: int
    smoke: bool = False
    large: bool = False


Found = Iterator[Figure | str]
"""Figures, and what is to be said beside them."""


def named(what: str, compress: bool) -> str:
    """The figure's name; a target is only for the one without compression."""
    return f"{what}, compressed" if compress else what


def against(
    what: str, unit: str, times: Times, *, most: float | None = None, ratio: float | None = None
) -> Figure:
    """The medians, and the median ratio of single operations; a target for one or the other."""
    ours, raw = (median(side) * {"us": 1e6, "ms": 1e3}[unit] for side in times)
    found = median(mine / other for mine, other in zip(*times, strict=True))
    target = f"<= {ratio}x" if ratio else f"<= {most} {unit}" if most else ""
    met = found <= ratio if ratio else ours <= most if most else None
    return Figure(what, unit, ours, raw, found, target, met)


def percentile(what: str, percent: int, times: Times) -> Figure:
    """What one operation in a hundred, or in ten, takes longer than."""
    ours, raw = (quantiles(side, n=100)[percent - 1] * 1e6 for side in times)
    return Figure(f"{what}, p{percent}", "us", ours, raw, ours / raw)


def rate(what: str, unit: str, rates: Times, *, least: float | None = None) -> Figure:
    """The medians of what should be large, and the median ratio; a target for that."""
    ours, raw = map(median, rates)
    ratio = median(mine / other for mine, other in zip(*rates, strict=True))
    target, met = (f">= {least}x", ratio >= least) if least else ("", None)
    return Figure(what, unit, ours, raw, ratio, target, met)


class Growth:
    """Figures of something that grows, and at the end how each grew with it."""

    def __init__(self, sizes: list[int]) -> None:
        self.sizes = sizes
        self.found: dict[str, list[float]] = {}

    def figure(self, what: str, size: int, ours: float, raw: float | None = None) -> Figure:
        self.found.setdefault(what, []).append(ours)
        ratio = raw and ours / raw
        return Figure(f"{what} at {size:,}", "us", ours * 1e6, raw and raw * 1e6, ratio)

    def exponents(self) -> Iterator[Figure]:
        """Log of the time ratio over log of the size ratio: 0 is flat, 1 is linear."""
        for what, values in self.found.items() if len(self.sizes) > 1 else ():
            exponent = log(values[-1] / values[0]) / log(self.sizes[-1] / self.sizes[0])
            met = exponent <= FLAT
            yield Figure(f"growth: {what}", "exponent", exponent, target=f"<= {FLAT}", met=met)
