"""Tells what a setup comes to by tokens alone, where its summaries have a size and no text."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from ....domain.backtest.billing import CacheReport, PricedCall
from ....projections.replay.token_replay import TokenReplay

UNMEASURED_FIELDS: dict[str, Any] = {"broken": 0, "orphaned": 0, "repairs": {}}
"""What a cell says of plans, of which tokens do not tell."""


class RecordedAnswer(NamedTuple):
    """What a call of the recorded model has under any setup."""

    output_tokens: int
    """Tokens that it wrote."""
    gap_s: float | None
    """Seconds since the call before, as far as the log tells."""
    cache: CacheReport | None = None
    """What was reported of its provider's cache."""
    model: str | None = None

    def price(
        self, prompt: int, unchanged: int, summary_input: int = 0, summary_output: int = 0
    ) -> PricedCall:
        """What such a call would be billed for."""
        if self.cache is not None and self.cache.is_empty:
            # It took nothing when it was recorded, and would take nothing under any setup.
            prompt = unchanged = 0
        return PricedCall(
            prompt=prompt,
            unchanged=unchanged,
            output=self.output_tokens,
            gap_s=self.gap_s,
            summary_input=summary_input,
            summary_output=summary_output,
            cache=self.cache,
            model=self.model,
        )


def price_calls(replay: TokenReplay, answered: Sequence[RecordedAnswer]) -> list[PricedCall]:
    """The calls as they would have been billed; nobody is paid for summaries without text."""
    return [
        one.price(prompt, unchanged)
        for prompt, unchanged, one in zip(
            replay.list_prompts(), replay.list_unchanged(), answered, strict=True
        )
    ]


def make_cell_fields(
    replay: TokenReplay, calls: Sequence[PricedCall], limit: int
) -> dict[str, Any]:
    """As a cell has them, and as `Tally` counts them in a replay in full."""
    number, context = replay.trace.number, tuple(call.prompt for call in calls)
    triggers = Counter(str(one.trigger) for one in replay.compactions)
    return {
        "calls": len(context),
        "compactions": len(replay.compactions),
        "by_trigger": dict(sorted(triggers.items())),
        "futile": replay.futile_count,
        "refused": sum(0 < limit < tokens for tokens in context),
        "peak_tokens": max(context, default=0),
        "context": context,
        "boundaries": tuple(dict.fromkeys(number[one.call] for one in replay.compactions)),
        **UNMEASURED_FIELDS,
    }
