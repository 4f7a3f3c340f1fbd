"""Defines the facts about a refused request."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Overflow:
    """A request that was too long for its model."""

    message: str
    """One line of the provider's text, shortened, with possible keys masked."""
    rule: str
    """How it was recognized: `code:...`, `text:...`, `stop:...` or `usage`."""
    provider: str | None = None
    """The provider, if the wording or code is unique to it."""
    tokens: int | None = None
    """Tokens of the prompt by the provider's count, without the answer's share if stated."""
    limit: int | None = None
    """Tokens that the model accepts, according to the provider."""
