"""Which results of a trace are so large that a view may show them shortened, and how large then."""

from functools import cached_property
from itertools import pairwise

from ...domain.token_budget import CHARS_PER_TOKEN
from ...domain.trims import both_ends, is_large, shortened_to, trimmed_length
from .trace import Trace


class Shortening:
    """As it is done in an emergency, for a model that holds `limit` tokens; 0 is not known."""

    def __init__(self, trace: Trace, limit: int) -> None:
        self._trace = trace
        self._most = shortened_to(limit)

    @cached_property
    def large(self) -> list[int]:
        """Indices of all results that are large enough."""
        most, shown = self._most, self._trace.shown
        return [
            index
            for index, (before, after) in enumerate(pairwise(self._trace.running))
            if after - before > most and is_large(after - before, shown[index], most)
        ]

    def tokens(self, index: int) -> int:
        """Of one that shows shortened."""
        trim = both_ends(self._trace.position[index], self._most)
        estimated = -(-trimmed_length(self._trace.text[index], trim) // CHARS_PER_TOKEN)
        return max(1, round(estimated * self._trace.ratio[index]))

    def saved(self, index: int) -> int:
        """What that takes off a view."""
        return self._trace.tokens(index) - self.tokens(index)
