"""Finds which results of a trace are so large that a view may shorten them, and their size then."""

from functools import cached_property
from itertools import pairwise

from ...domain.token_estimate import CHARS_PER_TOKEN
from ...domain.trims import compute_trim_target, count_trimmed_chars, is_large, trim_to_ends
from .trace import SessionTrace


class TraceShortening:
    """Emergency shortening for a model with `limit` tokens; 0 is unknown."""

    def __init__(self, trace: SessionTrace, limit: int) -> None:
        self._trace = trace
        self._most = compute_trim_target(limit)

    @cached_property
    def large_results(self) -> list[int]:
        most, shown = self._most, self._trace.shown
        return [
            index
            for index, (before, after) in enumerate(pairwise(self._trace.running))
            if after - before > most and is_large(after - before, shown[index], most)
        ]

    def count_tokens(self, index: int) -> int:
        trim = trim_to_ends(self._trace.position[index], self._most)
        estimated = -(-count_trimmed_chars(self._trace.text[index], trim) // CHARS_PER_TOKEN)
        return max(1, round(estimated * self._trace.ratio[index]))

    def count_saved_tokens(self, index: int) -> int:
        return self._trace.count_tokens(index) - self.count_tokens(index)
