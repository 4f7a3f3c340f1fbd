"""How full a context is when what the answer may take counts as used: seed 004's token budget."""

from dataclasses import dataclass

MAX_OUTPUT_TOKENS = 16_384
"""Tokens that are kept free for an answer."""


@dataclass(frozen=True, slots=True)
class ContextBudget:
    """What a model's context holds, and what is in it."""

    limit: int
    system_tokens: int = 0
    message_tokens: int = 0
    max_output_tokens: int = MAX_OUTPUT_TOKENS

    @property
    def used_tokens(self) -> int:
        return self.system_tokens + self.message_tokens + self.max_output_tokens

    @property
    def utilization(self) -> float:
        """The part of the limit that is used; a context that holds nothing is full."""
        return self.used_tokens / self.limit if self.limit > 0 else 1.0

    @property
    def is_overflow(self) -> bool:
        """Whether the next call does not fit; one that fills the context to the brim does."""
        return self.used_tokens > self.limit

    @property
    def available_tokens(self) -> int:
        """Tokens that are left for more to be said."""
        return max(0, self.limit - self.used_tokens)
