"""Computes how full a context is, with room for the answer, as the token budget of seed 004."""

from dataclasses import dataclass

MAX_OUTPUT_TOKENS = 16_384
"""Tokens that are kept free for an answer."""


@dataclass(frozen=True, slots=True)
class ContextBudget:
    """A model's context limit and the tokens that use it."""

    limit: int
    system_tokens: int = 0
    message_tokens: int = 0
    max_output_tokens: int = MAX_OUTPUT_TOKENS

    @property
    def used_tokens(self) -> int:
        return self.system_tokens + self.message_tokens + self.max_output_tokens

    @property
    def utilization(self) -> float:
        """The share of the limit that is used; 1 for a limit of 0."""
        return self.used_tokens / self.limit if self.limit > 0 else 1.0

    @property
    def is_overflow(self) -> bool:
        """Whether the next call does not fit; one that fills the context exactly does."""
        return self.used_tokens > self.limit

    @property
    def available_tokens(self) -> int:
        return max(0, self.limit - self.used_tokens)
