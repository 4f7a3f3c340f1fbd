"""Defines the counts of a fidelity measurement, which add up over sessions, and their ratios."""

from typing import Self

from ..event import StoredValue


class Scores(StoredValue):
    """Counts over the stakes of one or more sessions."""

    boundaries: int = 0
    stakes: int = 0
    """Facts that the agent later used when they were only in hidden history."""
    hits: int = 0
    """Stakes that the view still carried."""
    hard_stakes: int = 0
    hard_hits: int = 0
    """The same for paths, URLs, hashes, errors and numbers only."""
    context_hits: int = 0
    """Hits with at least two of their former context words around them."""
    pairs: int = 0
    pair_hits: int = 0
    """Pairs of words that the agent's prose used later, and those that the view carried."""
    modified: int = 0
    modified_named: int = 0
    """Files that hidden calls modified, and those that the view still names."""
    constraints: int = 0
    constraints_kept: int = 0
    """Users' sentences that state a rule, and those whose words survived."""
    novel: int = 0
    """Facts in summaries that occur nowhere in history: suspected inventions."""

    def __add__(self, other: Self) -> Self:
        return type(self)(
            **{name: getattr(self, name) + getattr(other, name) for name in type(self).model_fields}
        )

    @property
    def recall(self) -> float | None:
        """R; None if nothing was at stake."""
        return divide(self.hits, self.stakes)

    @property
    def context(self) -> float | None:
        """C: hits in their context, out of all stakes."""
        return divide(self.context_hits, self.stakes)

    @property
    def prose(self) -> float | None:
        """P: pairs of words."""
        return divide(self.pair_hits, self.pairs)

    @property
    def f3(self) -> float | None:
        """The harmonic mean of R, C and P, the main score; a list of keywords is close to zero."""
        parts = (self.recall, self.context, self.prose)
        if any(part is None for part in parts):
            return None
        if not all(parts):
            return 0.0
        return 3 / sum(1 / part for part in parts if part)


def divide(part: float, whole: float) -> float | None:
    return part / whole if whole else None
