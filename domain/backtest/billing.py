"""What the prompts of one session come to, where a provider's cache holds what stayed as it was."""

from collections.abc import Iterable
from dataclasses import dataclass

from ..models import PER, ModelFacts
from .cell import Bill

CACHE_S = 300.0
"""Seconds after which a provider forgets what nobody asked for, unless it is paid to keep it."""


@dataclass(frozen=True, slots=True)
class PricedCall:
    """One call of a model, in tokens."""

    prompt: int
    """Of the whole prompt."""
    unchanged: int = 0
    """Of these, how many at its beginning the prompt before had too."""
    output: int = 0
    """Of the answer."""
    gap_s: float | None = None
    """Seconds since the call before; None where the log does not tell, or there was none."""
    summary_input: int = 0
    """Of the calls that would have written summaries right before this one; 0 where rules did."""
    summary_output: int = 0


def bill_of(
    calls: Iterable[PricedCall],
    facts: ModelFacts | None,
    summary_facts: ModelFacts | None = None,
    *,
    cache_s: float | None = CACHE_S,
) -> Bill:
    """The calls of one session, in order, at the prices of the model `facts`.

    A cache that was not asked for `cache_s` seconds is empty; None keeps it for ever, and where no
    time is known it is warm. Each prompt is cached whole. Summaries are priced by `summary_facts`,
    else by the session's own model. What has no known price costs None, never 0.
    """
    bill = _Running()
    for call in calls:
        bill.add(call, cache_s)
        bill.price(call, facts, summary_facts or facts)
    return bill.said(is_priced=facts is not None and bool(facts.prices))


@dataclass(slots=True)
class _Running:
    """Sums that grow call by call."""

    prompt: int = 0
    hit: int = 0
    rewritten: int = 0
    output: int = 0
    summary_input: int = 0
    summary_output: int = 0
    prompt_usd: float = 0.0
    uncached_usd: float = 0.0
    output_usd: float = 0.0
    summaries_usd: float | None = 0.0
    cached: int = 0
    """Tokens of the prompt before, which is what a cache can hold."""
    hit_now: int = 0
    """Of the newest call."""

    def add(self, call: PricedCall, cache_s: float | None) -> None:
        is_cold = cache_s is not None and call.gap_s is not None and call.gap_s > cache_s
        self.hit_now = 0 if is_cold else min(call.unchanged, call.prompt)
        self.hit += self.hit_now
        if not is_cold:
            # What is new since the call before would have been written in any case.
            self.rewritten += min(call.prompt - self.hit_now, max(0, self.cached - self.hit_now))
        self.prompt += call.prompt
        self.output += call.output
        self.summary_input += call.summary_input
        self.summary_output += call.summary_output
        self.cached = call.prompt

    def price(self, call: PricedCall, facts: ModelFacts | None, writer: ModelFacts | None) -> None:
        prices = facts.prices_for(call.prompt) if facts else None
        if prices is not None:
            written = call.prompt - self.hit_now
            self.prompt_usd += (self.hit_now * prices.read + written * prices.write) / PER
            self.uncached_usd += call.prompt * prices.input / PER
            self.output_usd += call.output * prices.output / PER
        if not call.summary_input and not call.summary_output:
            return
        bought = writer.prices_for(call.summary_input) if writer else None
        if bought is None or self.summaries_usd is None:
            self.summaries_usd = None
            return
        dollars = call.summary_input * bought.input + call.summary_output * bought.output
        self.summaries_usd += dollars / PER

    def said(self, *, is_priced: bool) -> Bill:
        return Bill(
            prompt_tokens=self.prompt,
            hit_tokens=self.hit,
            written_tokens=self.prompt - self.hit,
            rewritten_tokens=self.rewritten,
            output_tokens=self.output,
            summary_input_tokens=self.summary_input,
            summary_output_tokens=self.summary_output,
            prompt_usd=self.prompt_usd if is_priced else None,
            uncached_usd=self.uncached_usd if is_priced else None,
            summaries_usd=self.summaries_usd,
            output_usd=self.output_usd if is_priced else None,
        )
