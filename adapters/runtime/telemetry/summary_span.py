"""Traces one summarizer and the costs of its drafts."""

from collections.abc import Iterator
from enum import StrEnum

from opentelemetry import trace

from ....domain.hooks import CompactionEvent
from .current_span import Attributes, CurrentSpan, drop_missing
from .instruments import Instruments


class DraftResult(StrEnum):
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    """Each of its drafts failed the gate."""
    FAILED = "failed"
    CANCELLED = "cancelled"


class SummarySpan:
    """The span from a summarizer's first request to the end of its turn."""

    def __init__(
        self, tracer: trace.Tracer, instruments: Instruments, summarizer: str | None
    ) -> None:
        self._instruments = instruments
        self._who: Attributes = {"cutbank.summariser": summarizer}
        self._span = CurrentSpan(tracer, "cutbank.summarise", self._who)
        self._fate = DraftResult.CANCELLED
        self._error: str | None = None
        self._cost = 0.0
        self._tokens: dict[str, int] = {}

    def reject(self, happening: CompactionEvent) -> None:
        self._add_draft(happening)
        if happening.rule is None:
            self._fate, self._error = DraftResult.FAILED, happening.error or DraftResult.FAILED
            return
        self._fate, self._error = DraftResult.REJECTED, happening.rule
        rule: Attributes = {"cutbank.rule": happening.rule}
        self._span.note("cutbank.draft_rejected", rule | {"cutbank.cost": happening.cost_usd})
        self._instruments.drafts_rejected.add(1, drop_missing(self._who | rule))

    def accept(self, happening: CompactionEvent) -> None:
        self._add_draft(happening)
        self._fate, self._error = DraftResult.ACCEPTED, None

    def cancel(self) -> None:
        self._fate, self._error = DraftResult.CANCELLED, None

    def end(self) -> None:
        fate: Attributes = {"cutbank.summary.outcome": self._fate.value}
        self._span.add(fate | self._tokens | {"cutbank.cost": self._cost or None})
        try:
            # While the span is current, so that exemplars link to it.
            self._instruments.summary_duration.record(
                self._span.seconds, drop_missing(self._who | fate)
            )
        finally:
            self._span.end(self._error)

    def _add_draft(self, happening: CompactionEvent) -> None:
        """Add up what a draft took: each is paid for, accepted or not."""
        model: Attributes = {"gen_ai.response.model": happening.model}
        self._span.add(model)
        which = drop_missing(self._who | model)
        if happening.cost_usd is not None:
            self._cost += happening.cost_usd
            self._instruments.summary_cost.add(happening.cost_usd, which)
        for name, tokens in _usage_attributes(happening):
            self._tokens[name] = self._tokens.get(name, 0) + tokens
            if kind := USAGE_TOKEN_KINDS.get(name):
                self._instruments.summary_tokens.add(tokens, {**which, "gen_ai.token.type": kind})


USAGE_TOKEN_KINDS = {"gen_ai.usage.input_tokens": "input", "gen_ai.usage.output_tokens": "output"}
"""The attributes that add up to all tokens; the others are parts of these."""


def _usage_attributes(happening: CompactionEvent) -> Iterator[tuple[str, int]]:
    """Yield the reported usage, under the names of the semantic conventions for GenAI."""
    usage = happening.usage
    if usage is None:
        return
    reported = {
        "gen_ai.usage.input_tokens": usage.context,  # including cached tokens
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write,
        "gen_ai.usage.output_tokens": usage.output,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning,
    }
    for name, tokens in reported.items():
        if tokens is not None:
            yield name, tokens
