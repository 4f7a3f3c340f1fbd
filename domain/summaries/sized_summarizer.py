"""Writes a summary of a given size that says nothing, to see what a size alone would do."""

from dataclasses import dataclass

from ..token_estimate import CHARS_PER_TOKEN
from .gate import compute_max_useful_tokens
from .summarizer import Draft, Material

MIN_SIZED_TOKENS = 8
"""Tokens below which two of these texts could be the same."""


@dataclass(frozen=True)
class SizedSummarizer:
    """So many tokens of a text that no other summary of the session has, or as many as may be."""

    tokens: int
    name: str = "sized"

    def summarize(self, material: Material) -> Draft:
        most = clamp_size(self.tokens, material.budget, compute_max_useful_tokens(material))
        # What it stands for grows with each summary.
        text = f"{len(material.covers)} " + "blocks " * most
        return Draft(text[: CHARS_PER_TOKEN * most])


def clamp_size(wanted: int, budget: int, worthwhile: int) -> int:
    """Tokens of such a summary, within what may be written."""
    return min(wanted, budget, worthwhile)
