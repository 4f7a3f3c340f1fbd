"""Measures a setup by tokens alone, with summaries that have a size but no text."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from ....domain.backtest.billing import CacheReport, PricedCall
from ....projections.replay.token_replay import TokenReplay

UNMEASURED_FIELDS: dict[str, Any] = {"broken": 0, "orphaned": 0, "repairs": {}}
"""Fields of a cell about plans, which tokens alone cannot measure."""


class RecordedAnswer(NamedTuple):
    """The part of a recorded call that is the same under any setup."""

    output_tokens: int
    """Tokens of the answer."""
    gap_s: float | None
    """Seconds since the call before, if known."""
    cache: CacheReport | None = None
    model: str | None = None

    def price(
        self, prompt: int, unchanged: int, summary_input: int = 0, summary_output: int = 0
    ) -> PricedCall:
        """Return the billed tokens of such a call."""
        if self.cache is not None and self.cache.is_empty:
            # A call without prompt tokens when recorded has none under any setup.
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
    """Return the calls as they would be billed; summaries without text cost nothing."""
    return [
        one.price(prompt, unchanged)
        for prompt, unchanged, one in zip(
            replay.list_prompts(), replay.list_unchanged(), answered, strict=True
        )
    ]


def make_cell_fields(
    replay: TokenReplay, calls: Sequence[PricedCall], limit: int
) -> dict[str, Any]:
    """Return the fields of a cell, as `RunCounts` computes them in a full replay."""
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
