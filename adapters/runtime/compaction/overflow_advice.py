"""Explains how to shorten a request that stays too long for its model."""

from ....domain.errors import ContextOverflowError
from ....domain.overflow import Overflow
from ....domain.window import Window

OVERFLOW_HINTS = (
    "compact it with a policy that keeps less (`cutbank compact`, an agent's /compact)",
    "unpin or hide blocks that must stay; `recall` still returns every word of them",
    "use a model with a larger context (/model)",
    "begin a session that recalls what it needs from this one (/clear)",
)
"""The remedies when no more blocks may leave, in terms that agents use."""
_MAX_NAMED = 3


def make_overflow_error(
    window: Window, overflow: Overflow, model: str | None, why: str
) -> ContextOverflowError:
    """Return the error of a refused request that a compaction cannot make short enough."""
    tokens = overflow.tokens or window.used_tokens
    limit = overflow.limit or (window.limit if window.limit > 0 else None)
    largest = sorted(window.items, key=lambda item: -item.tokens)[:_MAX_NAMED]
    named = ", ".join(f"#{item.position} {item.kind} {item.tokens:,} tokens" for item in largest)
    holds = f"{tokens:,} of {limit:,} tokens" if limit else f"{tokens:,} tokens"
    return ContextOverflowError(
        f"the request is too long for {model or 'its model'} ({holds}): {why}"
        + (f"; the largest blocks are {named}" if named and named not in why else "")
        + f"; what helps: {'; '.join(OVERFLOW_HINTS)}",
        model=model,
        tokens=tokens,
        limit=limit,
        largest=tuple(item.position for item in largest),
        hints=OVERFLOW_HINTS,
    )
