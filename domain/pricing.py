"""Computes what a compaction costs and saves: smaller prompts, one broken cache.

A provider reads the unchanged beginning of a prompt from its cache for a fraction of the price. A
compaction keeps the system prompt and the tools and replaces the text after them, so the cache must
be written again from there on. A smaller prompt may therefore cost more.
"""

from dataclasses import dataclass

from .models import PRICED_TOKENS, ModelFacts, Prices

_MAX_CALLS = 1_000_000
"""A compaction that needs more calls than this to pay for itself never does."""


@dataclass(frozen=True, slots=True)
class Pricing:
    """The change of a view from `before` to `after` tokens, for a number of later calls."""

    before: int
    after: int
    """The new view, including its summary."""
    unchanged: int
    """Tokens at the beginning that stay the same: the system prompt and the tools."""
    cached: int
    """Tokens of the old view that the provider has cached."""
    model: ModelFacts | None
    """The agent's model; if it or its prices are unknown, there are only token counts."""
    expected_calls: int
    """How many calls will use the view before it is compacted again or the work ends."""
    summary_usd: float | None = 0.0
    """The cost of the summary; None if a model wrote it at an unknown price."""

    @property
    def tokens_saved(self) -> int:
        """Tokens by which each later prompt is smaller."""
        return self.before - self.after

    @property
    def cache_tokens_lost(self) -> int:
        """Tokens that the next call has to write, beyond those it would have written anyway."""
        return max(0, self._uncached_after - self._uncached_before)

    @property
    def saved_per_call_usd(self) -> float | None:
        """What each call after the first saves, once both views are cached."""
        before, after = self._find_prices(self.before), self._find_prices(self.after)
        if before is None or after is None:
            return None
        return (self.before * before.read_price - self.after * after.read_price) / PRICED_TOKENS

    @property
    def saved_usd(self) -> float | None:
        """The saving over the expected calls."""
        return self._compute_saving(self.expected_calls)

    @property
    def cache_loss_usd(self) -> float | None:
        """What the first call costs more than later ones because the cache broke."""
        extra = self._first_call_extra
        return None if extra is None else max(0.0, extra)

    @property
    def cost_usd(self) -> float | None:
        """The broken cache and the summary."""
        broken, summary = self.cache_loss_usd, self.summary_usd
        return None if broken is None or summary is None else broken + summary

    @property
    def net_usd(self) -> float | None:
        """The saving over the expected calls less the cost; a loss is negative."""
        return self._compute_net(self.expected_calls)

    @property
    def break_even_calls(self) -> int | None:
        """The number of calls after which it has paid for itself; None if never or unknown."""
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
        """Check whether the calls save at least the cost; None if prices are unknown."""
        calls = self.expected_calls if expected_calls is None else expected_calls
        return None if self._compute_net(calls) is None else self._pays_off(calls)

    @property
    def _uncached_before(self) -> int:
        return self.before - min(self.cached, self.before)

    @property
    def _uncached_after(self) -> int:
        return self.after - max(0, min(self.unchanged, self.cached, self.before, self.after))

    @property
    def _first_call_extra(self) -> float | None:
        """What the first call costs more (or less) than the saving of a later call suggests."""
        before, after = self._find_prices(self.before), self._find_prices(self.after)
        if before is None or after is None:
            return None
        as_it_is = self._uncached_before * (before.write_price - before.read_price)
        compacted = self._uncached_after * (after.write_price - after.read_price)
        return (compacted - as_it_is) / PRICED_TOKENS

    def _compute_saving(self, calls: int) -> float | None:
        per_call, extra = self.saved_per_call_usd, self._first_call_extra
        if per_call is None or extra is None:
            return None
        # If much was not cached yet, the first call also saves writing what left.
        return calls * per_call + (max(0.0, -extra) if calls else 0.0)

    def _compute_net(self, calls: int) -> float | None:
        saves, costs = self._compute_saving(calls), self.cost_usd
        return None if saves is None or costs is None else saves - costs

    def _pays_off(self, calls: int) -> bool:
        net = self._compute_net(calls)
        return net is not None and net >= 0

    def _find_prices(self, prompt: int) -> Prices | None:
        return self.model.find_prices(prompt) if self.model else None


def format_dollars(amount: float) -> str:
    """Return `$12.50`, `$0.0042`, `-$0.31`, or `less than ...` if it rounds to zero."""
    if amount == 0:
        return "$0"
    sign, size = ("-" if amount < 0 else ""), abs(amount)
    if size < 0.0001:
        return "less than $0.0001"
    return f"{sign}${size:,.2f}" if size >= 1 else f"{sign}${size:.4f}"
