"""Learns from what a provider reports how large things really are to a model."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType

from ..blocks import Kind


class Sort(StrEnum):
    """Content that a model's tokenizer treats alike."""

    TEXT = "text"
    """What users and harnesses said."""
    ANSWER = "answer"
    THINKING = "thinking"
    CALL = "tool calls"
    RESULT = "tool results"
    MEDIA = "media"
    REQUEST = "request"
    """System prompt, tools, and the summary."""
    FRAME = "frame"
    """What a provider puts around each block; no estimate of text has it."""


FRAME = 4
"""Tokens around a block where nothing was learned yet."""
WEIGHT = 500.0
"""Tokens for which the estimate itself stands: so much has to be reported to outweigh it."""
LEAST, MOST = 0.25, 4.0
"""How far a ratio may be from the estimate: nothing in tokens of two to sixteen characters is."""
UNSEEN = 250_000
"""The most that a provider may count of what no log holds: its own tools and prompts."""
CALL_FRAME, HIDDEN = 200, 1
"""What an answer may be larger by than it shows: tokens a block, and tokens for each character of
what its provider sealed."""

Load = Mapping[Sort, int]
"""Estimated tokens by what they are of."""

SORTS: Mapping[Kind, Sort] = MappingProxyType(
    {
        Kind.ASSISTANT: Sort.ANSWER,
        Kind.THINKING: Sort.THINKING,
        Kind.TOOL_CALL: Sort.CALL,
        Kind.TOOL_RESULT: Sort.RESULT,
    }
)
"""What is not here is text."""


@dataclass(frozen=True, slots=True)
class Learned:
    """What was estimated of one sort of content, and how much of the reports fell to it."""

    estimated: float = WEIGHT
    reported: float = WEIGHT

    @property
    def ratio(self) -> float:
        return min(MOST, max(LEAST, self.reported / self.estimated))


_NOTHING: Mapping[Sort, Learned] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Gauge:
    """How many tokens a model makes of one token of the estimate, by sort of content.

    A value: each call gives a new one. What it was wrong by is kept beside what it learned.
    """

    model: str | None = None
    """Whose ratios are in use: the newest call's."""
    models: Mapping[str | None, Mapping[Sort, Learned]] = field(default_factory=dict)
    prior: float = 1.0
    """The ratio of what was not learned yet."""
    calls: int = 0
    """How many calls were predicted and then reported."""
    refused: int = 0
    """How many reports could not be true."""
    last_error: float | None = None
    """The newest prediction's distance from the report, as a share of the report."""
    mean_error: float | None = None
    """The mean of these over all calls."""

    @property
    def has_learned(self) -> bool:
        """Whether anything is known but the estimate."""
        return self.prior != 1.0 or bool(self._of(self.model))

    def ratio(self, sort: Sort) -> float:
        """Tokens that the model makes of one estimated token."""
        return self._one(sort).ratio

    def tokens(self, load: Load) -> float:
        """What is expected of a load."""
        return sum(size * self._one(sort).ratio for sort, size in load.items() if size)

    def speaking_to(self, model: str | None) -> "Gauge":
        """The same for another model; of one that is new, what the last one taught is believed."""
        if model == self.model:
            return self
        known = (
            self.models if model in self.models else {**self.models, model: self._of(self.model)}
        )
        return replace(self, model=model, models=MappingProxyType(dict(known)))

    def learned(self, load: Load, growth: float) -> "Gauge":
        """A load was appended, and the model's context grew by so much.

        What was reported is shared out by what was expected of each sort: so the sums come right,
        and no sort takes the blame for what is rare beside another.
        """
        expected = self.tokens(load)
        if expected <= 0:
            return self
        # One report that is out of all proportion teaches no more than a large one.
        growth = min(MOST * expected, max(LEAST * expected, growth))
        taught = dict(self._of(self.model))
        for sort, size in load.items():
            if size > 0:
                one = self._one(sort)
                share = growth * size * one.ratio / expected
                taught[sort] = Learned(one.estimated + size, one.reported + share)
        models = {**self.models, self.model: MappingProxyType(taught)}
        return replace(self, models=MappingProxyType(models))

    def predicted(self, expected: float, reported: int) -> "Gauge":
        """A prediction was made, and then the provider said how large it was."""
        error = abs(expected - reported) / reported
        mean = error if self.mean_error is None else self.mean_error
        calls = self.calls + 1
        mean += (error - mean) / calls
        return replace(self, calls=calls, last_error=error, mean_error=mean)

    def refusing(self) -> "Gauge":
        return replace(self, refused=self.refused + 1)

    def _one(self, sort: Sort) -> Learned:
        # What media cost is a rule of the provider's, and not an estimate of text.
        prior = 1.0 if sort is Sort.MEDIA else self.prior
        return self._of(self.model).get(sort) or Learned(reported=WEIGHT * prior)

    def _of(self, model: str | None) -> Mapping[Sort, Learned]:
        return self.models.get(model, _NOTHING)


def is_credible(context: int, expected: float) -> bool:
    """Whether a prompt that was expected to have so many tokens can have as many as reported.

    Below, text can only be so dense; above, a provider's own prompt can only be so long.
    """
    return LEAST * expected <= context <= MOST * expected + UNSEEN and context > 0
