"""What a compaction costs and saves: fewer tokens in each later call, against a cache broken once.

A provider reads the beginning of a prompt from its cache for a fraction of the price, as long as
it is what it was. A compaction leaves the system prompt and the tools as they were, and puts
another text behind them: from there on, all is written anew. So a smaller prompt may cost more.
"""

from dataclasses import dataclass

from .models import PER, ModelFacts, Prices

MANY = 1_000_000
"""What pays for itself after more calls than these never does."""


@dataclass(frozen=True, slots=True)
class SummaryOrder:
    """What a model is given to write the summary, and is to answer with, in tokens."""

    model: ModelFacts | None
    """None where a model writes it of which nothing is known."""
    input: int
    output: int
    cached: int = 0
    """Of the input, what the provider holds in its cache: the prefix that was served."""

    @property
    def usd(self) -> float | None:
        prices = self.model.prices_for(self.input) if self.model else None
        if prices is None:
            return None
        cached = min(self.cached, self.input)
        fresh = self.input - cached
        return (cached * prices.read + fresh * prices.input + self.output * prices.output) / PER


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
    summary: SummaryOrder | None = None
    """None where the summary is not written by a model, and costs nothing."""
    paid_usd: float | None = None
    """What the summary did cost, once it is written; else it is reckoned from its order."""

    @property
    def saves_tokens(self) -> int:
        """By so much each later prompt is smaller."""
        return self.before - self.after

    @property
    def written_anew(self) -> int:
        """Tokens of the new view that are in no cache."""
        return self.after - self._still_cached

    @property
    def breaks_cache_tokens(self) -> int:
        """What the next call has to write beyond what it would have written in any case."""
        return max(0, self._lost)

    @property
    def is_priced(self) -> bool:
        """Whether all is known that a price takes."""
        return self._prices(self.before) is not None and self.summary_usd is not None

    @property
    def saves_per_call_usd(self) -> float | None:
        """What each call costs less once both views are cached, the first aside."""
        before, after = self._prices(self.before), self._prices(self.after)
        if before is None or after is None:
            return None
        return (self.before * before.read - self.after * after.read) / PER

    @property
    def saves_usd(self) -> float | None:
        """Over the expected calls."""
        return self._saves(self.expected_calls)

    @property
    def breaks_cache_usd(self) -> float | None:
        """What the first call costs more than the later ones, for what it writes anew."""
        extra = self._first_call_extra
        return None if extra is None else max(0.0, extra)

    @property
    def summary_usd(self) -> float | None:
        if self.paid_usd is not None:
            return self.paid_usd
        return 0.0 if self.summary is None else self.summary.usd

    @property
    def costs_usd(self) -> float | None:
        """What has to come in again: the cache that breaks, and the summary."""
        broken, summary = self.breaks_cache_usd, self.summary_usd
        return None if broken is None or summary is None else broken + summary

    @property
    def net_usd(self) -> float | None:
        """What remains of the saving over the expected calls; a loss is negative."""
        return self._net(self.expected_calls)

    @property
    def pays_after(self) -> int | None:
        """The calls after which it has paid for itself; None where it never has, or who knows."""
        costs, per_call = self.costs_usd, self.saves_per_call_usd
        if costs is None or per_call is None:
            return None
        for calls in (0, 1):
            if self._is_paid(calls):
                return calls
        if per_call <= 0 or costs / per_call > MANY:
            return None
        calls = max(2, int((costs + min(0.0, self._first_call_extra or 0.0)) / per_call))
        while not self._is_paid(calls):
            calls += 1
        return calls

    def is_worthwhile(self, expected_calls: int | None = None) -> bool | None:
        """Whether so many calls bring in what it costs; None where prices are not known."""
        calls = self.expected_calls if expected_calls is None else expected_calls
        return None if self._net(calls) is None else self._is_paid(calls)

    @property
    def _still_cached(self) -> int:
        return max(0, min(self.unchanged, self.cached, self.before, self.after))

    @property
    def _lost(self) -> int:
        """What is written anew beyond what would have been written anyway."""
        return self.written_anew - (self.before - min(self.cached, self.before))

    @property
    def _first_call_extra(self) -> float | None:
        """What the first call loses or gains against the saving of each later call."""
        before, after = self._prices(self.before), self._prices(self.after)
        if before is None or after is None:
            return None
        cached = min(self.cached, self.before)
        as_it_is = (self.before - cached) * (before.write - before.read)
        compacted = self.written_anew * (after.write - after.read)
        return (compacted - as_it_is) / PER

    def _saves(self, calls: int) -> float | None:
        per_call, extra = self.saves_per_call_usd, self._first_call_extra
        if per_call is None or extra is None:
            return None
        # Where much was not cached yet, the first call saves the writing of what left.
        return calls * per_call + (max(0.0, -extra) if calls else 0.0)

    def _net(self, calls: int) -> float | None:
        saves, costs = self._saves(calls), self.costs_usd
        return None if saves is None or costs is None else saves - costs

    def _is_paid(self, calls: int) -> bool:
        net = self._net(calls)
        return net is not None and net >= 0

    def _prices(self, prompt: int) -> Prices | None:
        return self.model.prices_for(prompt) if self.model else None
