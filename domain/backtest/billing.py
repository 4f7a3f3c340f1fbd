"""Computes what the prompts of one session cost, given a provider's cache of unchanged prefixes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ..models import PRICED_TOKENS, ModelFacts, Prices
from .cell import Bill

_CACHE_LIFETIME_S = 300.0
"""Seconds after which a provider drops an unused cache, unless it is paid to keep it."""


@dataclass(frozen=True, slots=True)
class CacheReport:
    """What a provider's cache did at a recorded call, in tokens."""

    unchanged: int
    """Tokens at the beginning of the recorded prompt that the prompt before had too."""
    read: int
    written: int
    plain: int
    """Tokens neither read nor written, at the price of input."""
    written_1h: int = 0
    """The written tokens that are kept for an hour, at a higher price."""

    @property
    def is_empty(self) -> bool:
        """Whether the call had no prompt tokens; then it has none under any policy."""
        return not self.read + self.written + self.plain

    @property
    def hit_share(self) -> float:
        return min(1.0, self.read / self.unchanged) if self.unchanged else 1.0

    @property
    def extra_read(self) -> int:
        """Other tokens that the cache held, such as a system prompt that other sessions share."""
        return max(0, self.read - self.unchanged)

    def price_uncached_token(self, prices: Prices) -> float:
        """Return the price of an unread token, with the recorded mix of writes and plain input."""
        rest = self.written + self.plain
        if not rest:
            return prices.write_price
        kept = min(self.written_1h, self.written)
        dollars = kept * prices.write_1h_price + (self.written - kept) * prices.write_price
        return (dollars + self.plain * prices.input) / rest


@dataclass(frozen=True, slots=True)
class PricedCall:
    """One call of a model, in tokens."""

    prompt: int
    unchanged: int = 0
    """Tokens at its beginning that the prompt before had too."""
    output: int = 0
    gap_s: float | None = None
    """Seconds since the call before; None for the first call or if the log has no time."""
    summary_input: int = 0
    """Tokens of the summary calls right before this one; 0 if rules wrote the summaries."""
    summary_output: int = 0
    cache: CacheReport | None = None
    """The report of the recorded call; without one, pauses decide about the cache."""
    model: str | None = None


def compute_bill(
    calls: Iterable[PricedCall],
    facts: ModelFacts | None,
    *,
    others: Mapping[str, ModelFacts | None] = MappingProxyType({}),
) -> Bill:
    """Return the cost of a session's calls and summaries, in order, at the prices of `facts`.

    A call of a model in `others`, by name, has that model's prices. A reported cache behaves as it
    did in the recorded call. Otherwise each prompt is cached whole, a cache is empty after 300
    unused seconds, and without a known time it is warm. Unknown prices give None, never 0.
    """
    bill = _BillSums()
    for call in calls:
        bill.add(call)
        bill.price(call, others.get(call.model, facts) if call.model else facts)
        bill.price_summaries(call, facts)
    return bill.to_bill()


@dataclass(slots=True)
class _BillSums:
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
    """Tokens of the prompt before, which a cache can hold."""
    hit_in_call: int = 0
    is_priced: bool = True

    def add(self, call: PricedCall) -> None:
        is_cold = call.gap_s is not None and call.gap_s > _CACHE_LIFETIME_S
        warm = float(not is_cold) if call.cache is None else call.cache.hit_share
        more = 0 if call.cache is None else call.cache.extra_read
        unchanged = min(call.unchanged, call.prompt)
        self.hit_in_call = min(call.prompt, round(warm * unchanged) + more)
        self.hit += self.hit_in_call
        # Tokens added since the call before would have been written anyway.
        lost = round(warm * max(0, self.cached - unchanged))
        self.rewritten += min(call.prompt - self.hit_in_call, lost)
        self.prompt += call.prompt
        self.output += call.output
        self.summary_input += call.summary_input
        self.summary_output += call.summary_output
        self.cached = call.prompt

    def price(self, call: PricedCall, facts: ModelFacts | None) -> None:
        prices = facts.find_prices(call.prompt) if facts else None
        if prices is None:
            self.is_priced = self.is_priced and not call.prompt and not call.output
            return
        rest = call.prompt - self.hit_in_call
        price = call.cache.price_uncached_token(prices) if call.cache else prices.write_price
        self.prompt_usd += (self.hit_in_call * prices.read_price + rest * price) / PRICED_TOKENS
        self.uncached_usd += call.prompt * prices.input / PRICED_TOKENS
        self.output_usd += call.output * prices.output / PRICED_TOKENS

    def price_summaries(self, call: PricedCall, facts: ModelFacts | None) -> None:
        if not call.summary_input and not call.summary_output:
            return
        prices = facts.find_prices(call.summary_input) if facts else None
        if prices is None or self.summaries_usd is None:
            self.summaries_usd = None
            return
        dollars = call.summary_input * prices.input + call.summary_output * prices.output
        self.summaries_usd += dollars / PRICED_TOKENS

    def to_bill(self) -> Bill:
        return Bill(
            prompt_tokens=self.prompt,
            hit_tokens=self.hit,
            written_tokens=self.prompt - self.hit,
            rewritten_tokens=self.rewritten,
            output_tokens=self.output,
            summary_input_tokens=self.summary_input,
            summary_output_tokens=self.summary_output,
            prompt_usd=self.prompt_usd if self.is_priced else None,
            uncached_usd=self.uncached_usd if self.is_priced else None,
            summaries_usd=self.summaries_usd,
            output_usd=self.output_usd if self.is_priced else None,
        )
