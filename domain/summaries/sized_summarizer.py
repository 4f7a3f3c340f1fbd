"""Writes an empty summary of a given size, to measure the effect of size alone."""

from dataclasses import dataclass

from ..token_estimate import CHARS_PER_TOKEN
from .gate import compute_max_useful_tokens
from .summarizer import Draft, Material

MIN_SIZED_TOKENS = 8
"""Shorter texts could be the same."""


@dataclass(frozen=True)
class SizedSummarizer:
    """A text of about `tokens` tokens that no other summary of the session has."""

    tokens: int
    name: str = "sized"

    def summarize(self, material: Material) -> Draft:
        most = clamp_size(self.tokens, material.budget, compute_max_useful_tokens(material))
        # The number of covered positions grows with each summary.
        text = f"{len(material.covers)} " + "blocks " * most
        return Draft(text[: CHARS_PER_TOKEN * most])


def clamp_size(wanted: int, budget: int, worthwhile: int) -> int:
    """Return the size of the summary, within what may be written."""
    return min(wanted, budget, worthwhile)
