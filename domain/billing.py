"""Computes what the prompts of one session cost, given a provider's cache of unchanged prefixes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from .backtest_cell import Bill, add_bills
from .models import PRICED_TOKENS, ModelFacts, Prices

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
    prompts = [0]
    bills: list[Bill] = []
    for call in calls:
        its_facts = others.get(call.model, facts) if call.model else facts
        bills.append(_bill_call(call, prompts[-1], its_facts, facts))
        prompts.append(call.prompt)
    return add_bills(bills)


def _bill_call(
    call: PricedCall, cached: int, facts: ModelFacts | None, summary_facts: ModelFacts | None
) -> Bill:
    """Return the cost of one call, and of the summaries right before it.

    `cached` are the tokens of the prompt before, which a cache can hold.
    """
    is_cold = call.gap_s is not None and call.gap_s > _CACHE_LIFETIME_S
    warm = float(not is_cold) if call.cache is None else call.cache.hit_share
    more = 0 if call.cache is None else call.cache.extra_read
    hit = min(call.prompt, round(warm * call.unchanged) + more)
    rest = call.prompt - hit
    # Tokens added since the call before would have been written anyway.
    lost = round(warm * max(0, cached - call.unchanged))
    dollars: dict[str, float | None] = {}
    if prices := facts.find_prices(call.prompt) if facts else None:
        price = call.cache.price_uncached_token(prices) if call.cache else prices.write_price
        dollars = {
            "prompt_usd": (hit * prices.read_price + rest * price) / PRICED_TOKENS,
            "uncached_usd": call.prompt * prices.input / PRICED_TOKENS,
            "output_usd": call.output * prices.output / PRICED_TOKENS,
        }
    elif not call.prompt and not call.output:
        dollars = dict.fromkeys(("prompt_usd", "uncached_usd", "output_usd"), 0.0)
    return Bill(
        prompt_tokens=call.prompt,
        hit_tokens=hit,
        written_tokens=rest,
        rewritten_tokens=min(rest, lost),
        output_tokens=call.output,
        summary_input_tokens=call.summary_input,
        summary_output_tokens=call.summary_output,
        summaries_usd=_price_summaries(call, summary_facts),
        **dollars,
    )


def _price_summaries(call: PricedCall, facts: ModelFacts | None) -> float | None:
    if not call.summary_input and not call.summary_output:
        return 0.0
    prices = facts.find_prices(call.summary_input) if facts else None
    if prices is None:
        return None
    dollars = call.summary_input * prices.input + call.summary_output * prices.output
    return dollars / PRICED_TOKENS
