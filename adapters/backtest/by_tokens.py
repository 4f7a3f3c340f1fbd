"""Tells what a setup comes to by tokens alone, where its summaries have a size and no text."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from ...domain.backtest.billing import PricedCall
from ...projections.replay.token_replay import TokenReplay

BEYOND_TOKENS: dict[str, Any] = {"broken": 0, "orphaned": 0, "repairs": {}}
"""What a cell says of plans, of which tokens do not tell."""


class Answered(NamedTuple):
    """What a call of the recorded model has under any setup."""

    output: int
    """Tokens that it wrote."""
    gap_s: float | None
    """Seconds since the call before, as far as the log tells."""


def priced_calls(replay: TokenReplay, answered: Sequence[Answered]) -> list[PricedCall]:
    """The calls as they would have been billed; nobody is paid for summaries without text."""
    return [
        PricedCall(prompt, unchanged, one.output, one.gap_s)
        for prompt, unchanged, one in zip(
            replay.prompts(), replay.unchanged(), answered, strict=True
        )
    ]


def fields_of(replay: TokenReplay, limit: int) -> dict[str, Any]:
    """As a cell has them, and as `Tally` counts them in a replay in full."""
    number, context = replay.trace.number, tuple(replay.prompts())
    triggers = Counter(str(one.trigger) for one in replay.compactions)
    return {
        "calls": len(context),
        "compactions": len(replay.compactions),
        "by_trigger": dict(sorted(triggers.items())),
        "futile": replay.futile,
        "refused": sum(0 < limit < tokens for tokens in context),
        "peak_tokens": max(context, default=0),
        "context": context,
        "boundaries": tuple(dict.fromkeys(number[one.call] for one in replay.compactions)),
        **BEYOND_TOKENS,
    }
