"""What is known of a refusal for length."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Overflow:
    """A request that was too long for its model."""

    message: str
    """What the provider said: one line of it, cut short, with whatever looks like a key masked."""
    rule: str
    """What it was recognised by: `code:...`, `text:...`, `stop:...` or `usage`."""
    provider: str | None = None
    """Who said it, where that is known for certain."""
    tokens: int | None = None
    """Tokens of the prompt that was refused, as the provider counted; the answer's share is not
    among them where the provider told it apart."""
    limit: int | None = None
    """Tokens that the model holds, as the provider said."""
