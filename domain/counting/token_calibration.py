"""Learns from what a provider reports how large things really are to a model."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType

from ..blocks import Kind


class ContentKind(StrEnum):
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


FRAME_TOKENS = 4
"""Tokens around a block where nothing was learned yet."""
PRIOR_WEIGHT_TOKENS = 500.0
"""Tokens for which the estimate itself stands: so much has to be reported to outweigh it."""
MIN_RATIO, MAX_RATIO = 0.25, 4.0
"""How far a ratio may be from the estimate: nothing in tokens of two to sixteen characters is."""
MAX_UNSEEN_TOKENS = 250_000
"""The most that a provider may count of what no log holds: its own tools and prompts."""
MAX_EXTRA_BLOCK_TOKENS, MAX_TOKENS_PER_SEALED_CHAR = 200, 1
"""What an answer may be larger by than it shows: tokens a block, and tokens for each character of
what its provider sealed."""

ContentTokens = Mapping[ContentKind, int]
"""Estimated tokens by what they are of."""

CONTENT_KINDS: Mapping[Kind, ContentKind] = MappingProxyType(
    {
        Kind.ASSISTANT: ContentKind.ANSWER,
        Kind.THINKING: ContentKind.THINKING,
        Kind.TOOL_CALL: ContentKind.CALL,
        Kind.TOOL_RESULT: ContentKind.RESULT,
    }
)
"""What is not here is text."""


@dataclass(frozen=True, slots=True)
class CalibrationSums:
    """What was estimated of one sort of content, and how much of the reports fell to it."""

    estimated: float = PRIOR_WEIGHT_TOKENS
    reported: float = PRIOR_WEIGHT_TOKENS

    @property
    def ratio(self) -> float:
        return min(MAX_RATIO, max(MIN_RATIO, self.reported / self.estimated))


_NOTHING: Mapping[ContentKind, CalibrationSums] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class TokenCalibration:
    """How many tokens a model makes of one token of the estimate, by sort of content.

    A value: each call gives a new one. What it was wrong by is kept beside what it learned.
    """

    model: str | None = None
    """Whose ratios are in use: the newest call's."""
    models: Mapping[str | None, Mapping[ContentKind, CalibrationSums]] = field(default_factory=dict)
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
        return self.prior != 1.0 or bool(self._find_model_sums(self.model))

    def get_ratio(self, sort: ContentKind) -> float:
        """Tokens that the model makes of one estimated token."""
        return self._find_sums(sort).ratio

    def predict_tokens(self, load: ContentTokens) -> float:
        """What is expected of a load."""
        return sum(size * self._find_sums(sort).ratio for sort, size in load.items() if size)

    def switch_model(self, model: str | None) -> "TokenCalibration":
        """The same for another model; of one that is new, what the last one taught is believed."""
        if model == self.model:
            return self
        known = (
            self.models
            if model in self.models
            else {**self.models, model: self._find_model_sums(self.model)}
        )
        return replace(self, model=model, models=MappingProxyType(dict(known)))

    def learn_growth(self, load: ContentTokens, growth: float) -> "TokenCalibration":
        """A load was appended, and the model's context grew by so much.

        What was reported is shared out by what was expected of each sort: so the sums come right,
        and no sort takes the blame for what is rare beside another.
        """
        expected = self.predict_tokens(load)
        if expected <= 0:
            return self
        # One report that is out of all proportion teaches no more than a large one.
        growth = min(MAX_RATIO * expected, max(MIN_RATIO * expected, growth))
        taught = dict(self._find_model_sums(self.model))
        for sort, size in load.items():
            if size > 0:
                one = self._find_sums(sort)
                share = growth * size * one.ratio / expected
                taught[sort] = CalibrationSums(one.estimated + size, one.reported + share)
        models = {**self.models, self.model: MappingProxyType(taught)}
        return replace(self, models=MappingProxyType(models))

    def record_prediction(self, expected: float, reported: int) -> "TokenCalibration":
        """A prediction was made, and then the provider said how large it was."""
        error = abs(expected - reported) / reported
        mean = error if self.mean_error is None else self.mean_error
        calls = self.calls + 1
        mean += (error - mean) / calls
        return replace(self, calls=calls, last_error=error, mean_error=mean)

    def count_refusal(self) -> "TokenCalibration":
        return replace(self, refused=self.refused + 1)

    def _find_sums(self, sort: ContentKind) -> CalibrationSums:
        # What media cost is a rule of the provider's, and not an estimate of text.
        prior = 1.0 if sort is ContentKind.MEDIA else self.prior
        return self._find_model_sums(self.model).get(sort) or CalibrationSums(
            reported=PRIOR_WEIGHT_TOKENS * prior
        )

    def _find_model_sums(self, model: str | None) -> Mapping[ContentKind, CalibrationSums]:
        return self.models.get(model, _NOTHING)


def is_credible(context: int, expected: float) -> bool:
    """Whether a prompt that was expected to have so many tokens can have as many as reported.

    Below, text can only be so dense; above, a provider's own prompt can only be so long.
    """
    return (
        MIN_RATIO * expected <= context <= MAX_RATIO * expected + MAX_UNSEEN_TOKENS and context > 0
    )
