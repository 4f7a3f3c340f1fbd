"""What a compaction costs and saves: fewer tokens in each later call, against a cache broken once.

A provider reads the beginning of a prompt from its cache for a fraction of the price, as long as
it is what it was. A compaction leaves the system prompt and the tools as they were, and puts
another text behind them: from there on, all is written anew. So a smaller prompt may cost more.
"""

from dataclasses import dataclass

from .models import PRICED_TOKENS, ModelFacts, Prices

_MAX_CALLS = 1_000_000
"""What pays for itself after more calls than these never does."""


@dataclass(frozen=True, slots=True)
class SummaryCall:
    """What a model is given to write the summary, and is to answer with, in tokens."""

    model: ModelFacts | None
    """None where a model writes it of which nothing is known."""
    input: int
    output: int
    cached: int = 0
    """Of the input, what the provider holds in its cache: the prefix that was served."""

    @property
    def usd(self) -> float | None:
        prices = self.model.find_prices(self.input) if self.model else None
        if prices is None:
            return None
        cached = min(self.cached, self.input)
        fresh = self.input - cached
        return (
            cached * prices.read_price + fresh * prices.input + self.output * prices.output
        ) / PRICED_TOKENS


@dataclass(frozen=True, slots=True)
class Pricing:
    """A view of `before` tokens that becomes one of `after`, for a number of calls to come."""

    before: int
    after: int
    """The new view, its summary included."""
    unchanged: int
    """Tokens at the beginning that stay as they are: the system prompt and the tools."""
    cached: int
    """Tokens of the view so far that the provider holds in its cache."""
    model: ModelFacts | None
    """The agent's model; with None, or where its prices are not known, there are tokens only."""
    expected_calls: int
    """How many calls there will be on the view, until it is compacted again or the work is done."""
    summary: SummaryCall | None = None
    """None where the summary is not written by a model, and costs nothing."""
    paid_usd: float | None = None
    """What the summary did cost, once it is written; else it is reckoned from its order."""

    @property
    def tokens_saved(self) -> int:
        """By so much each later prompt is smaller."""
        return self.before - self.after

    @property
    def uncached_tokens(self) -> int:
        """Tokens of the new view that are in no cache."""
        return self.after - self._cached_tokens

    @property
    def cache_tokens_lost(self) -> int:
        """What the next call has to write beyond what it would have written in any case."""
        return max(0, self._tokens_rewritten)

    @property
    def is_priced(self) -> bool:
        """Whether all is known that a price takes."""
        return self._find_prices(self.before) is not None and self.summary_usd is not None

    @property
    def saved_per_call_usd(self) -> float | None:
        """What each call costs less once both views are cached, the first aside."""
        before, after = self._find_prices(self.before), self._find_prices(self.after)
        if before is None or after is None:
            return None
        return (self.before * before.read_price - self.after * after.read_price) / PRICED_TOKENS

    @property
    def saved_usd(self) -> float | None:
        """Over the expected calls."""
        return self._compute_saving(self.expected_calls)

    @property
    def cache_loss_usd(self) -> float | None:
        """What the first call costs more than the later ones, for what it writes anew."""
        extra = self._first_call_extra
        return None if extra is None else max(0.0, extra)

    @property
    def summary_usd(self) -> float | None:
        if self.paid_usd is not None:
            return self.paid_usd
        return 0.0 if self.summary is None else self.summary.usd

    @property
    def cost_usd(self) -> float | None:
        """What has to come in again: the cache that breaks, and the summary."""
        broken, summary = self.cache_loss_usd, self.summary_usd
        return None if broken is None or summary is None else broken + summary

    @property
    def net_usd(self) -> float | None:
        """What remains of the saving over the expected calls; a loss is negative."""
        return self._compute_net(self.expected_calls)

    @property
    def break_even_calls(self) -> int | None:
        """The calls after which it has paid for itself; None where it never has, or who knows."""
        costs, per_call = self.cost_usd, self.saved_per_call_usd
        if costs is None or per_call is None:
            return None
        for calls in (0, 1):
            if self._pays_off(calls):
                return calls
        if per_call <= 0 or costs / per_call > _MAX_CALLS:
            return None
        calls = max(2, int((costs + min(0.0, self._first_call_extra or 0.0)) / per_call))
        while not self._pays_off(calls):
            calls += 1
        return calls

    def is_worthwhile(self, expected_calls: int | None = None) -> bool | None:
        """Whether so many calls bring in what it costs; None where prices are not known."""
        calls = self.expected_calls if expected_calls is None else expected_calls
        return None if self._compute_net(calls) is None else self._pays_off(calls)

    @property
    def _cached_tokens(self) -> int:
        return max(0, min(self.unchanged, self.cached, self.before, self.after))

    @property
    def _tokens_rewritten(self) -> int:
        """What is written anew beyond what would have been written anyway."""
        return self.uncached_tokens - (self.before - min(self.cached, self.before))

    @property
    def _first_call_extra(self) -> float | None:
        """What the first call loses or gains against the saving of each later call."""
        before, after = self._find_prices(self.before), self._find_prices(self.after)
        if before is None or after is None:
            return None
        cached = min(self.cached, self.before)
        as_it_is = (self.before - cached) * (before.write_price - before.read_price)
        compacted = self.uncached_tokens * (after.write_price - after.read_price)
        return (compacted - as_it_is) / PRICED_TOKENS

    def _compute_saving(self, calls: int) -> float | None:
        per_call, extra = self.saved_per_call_usd, self._first_call_extra
        if per_call is None or extra is None:
            return None
        # Where much was not cached yet, the first call saves the writing of what left.
        return calls * per_call + (max(0.0, -extra) if calls else 0.0)

    def _compute_net(self, calls: int) -> float | None:
        saves, costs = self._compute_saving(calls), self.cost_usd
        return None if saves is None or costs is None else saves - costs

    def _pays_off(self, calls: int) -> bool:
        net = self._compute_net(calls)
        return net is not None and net >= 0

    def _find_prices(self, prompt: int) -> Prices | None:
        return self.model.find_prices(prompt) if self.model else None
