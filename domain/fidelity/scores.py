"""What a fidelity measurement counted; counts add up over sessions, ratios come last."""

from typing import Self

from ..record import Record


class Scores(Record):
    """Counts over the stakes of one or more sessions."""

    boundaries: int = 0
    stakes: int = 0
    """Facts that an agent went on to use and that by then lay in hidden history only."""
    hits: int = 0
    """Of these, what the view still carried."""
    hard_stakes: int = 0
    hard_hits: int = 0
    """The same of paths, urls, hashes, errors and numbers only."""
    uses: int = 0
    uses_hit: int = 0
    """The same, each fact weighted by how often the agent went on to use it."""
    generic_stakes: int = 0
    generic_hits: int = 0
    """The same, with the keys that sessions of unrelated projects share."""
    loose_stakes: int = 0
    loose_hits: int = 0
    """The same, where tool results after the boundary do not lift a stake."""
    context_hits: int = 0
    """Hits beside which stand two of the words that stood there before; of all stakes."""
    pairs: int = 0
    pair_hits: int = 0
    """Pairs of words that the agent's prose went on to use, and those that the summary has."""
    modified: int = 0
    modified_named: int = 0
    read: int = 0
    read_named: int = 0
    """Files that hidden calls modified, or only read, and those that the view still names."""
    constraints: int = 0
    constraints_kept: int = 0
    """Sentences of users with a word of constraint, and those whose words survived."""
    rereads: int = 0
    rereads_named: int = 0
    """Recorded calls that read a file again whose reading was hidden, and those whose file the
    view named."""
    carried: int = 0
    """Distinct anchors that the summaries carry."""
    told_hits: int = 0
    """Hits that a summary carries: the others are in what is kept word for word."""
    novel: int = 0
    """Anchors of summaries that stand nowhere in history: suspected inventions."""

    def __add__(self, other: Self) -> Self:
        return type(self)(
            **{name: getattr(self, name) + getattr(other, name) for name in type(self).model_fields}
        )

    @property
    def recall(self) -> float | None:
        """R: None where nothing was at stake."""
        return divide(self.hits, self.stakes)

    @property
    def context(self) -> float | None:
        """C: a hit in its context."""
        return divide(self.context_hits, self.stakes)

    @property
    def prose(self) -> float | None:
        """P: of pairs of words."""
        return divide(self.pair_hits, self.pairs)

    @property
    def f3(self) -> float | None:
        """The harmonic mean of R, C and P, the headline; a list of keywords has next to none."""
        parts = (self.recall, self.context, self.prose)
        if any(part is None for part in parts):
            return None
        if not all(parts):
            return 0.0
        return 3 / sum(1 / part for part in parts if part)

    @property
    def precision(self) -> float | None:
        """Stakes that summaries hit, of the distinct anchors that they carry."""
        return divide(self.told_hits, self.carried)


def divide(part: float, whole: float) -> float | None:
    return part / whole if whole else None
