"""The span of one summariser that is tried, and what its drafts took."""

from collections.abc import Iterator
from enum import StrEnum

from opentelemetry import trace

from ....domain.hooks import Happening
from .current_span import Attributes, CurrentSpan, known
from .instruments import Instruments


class Fate(StrEnum):
    """What became of what a summariser was asked for."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    """Each of its drafts failed the gate."""
    FAILED = "failed"
    CANCELLED = "cancelled"


class SummarySpan:
    """From the moment at which a summariser is asked until its answer is taken, or another's is."""

    def __init__(
        self, tracer: trace.Tracer, instruments: Instruments, summariser: str | None
    ) -> None:
        self._instruments = instruments
        self._who: Attributes = {"cutbank.summariser": summariser}
        self._span = CurrentSpan(tracer, "cutbank.summarise", self._who)
        self._fate = Fate.CANCELLED
        self._error: str | None = None
        self._cost = 0.0
        self._tokens: dict[str, int] = {}

    def rejected(self, happening: Happening) -> None:
        """A draft failed the gate, or the summariser brought none."""
        self._took(happening)
        if happening.rule is None:
            self._fate, self._error = Fate.FAILED, happening.error or Fate.FAILED
            return
        self._fate, self._error = Fate.REJECTED, happening.rule
        rule: Attributes = {"cutbank.rule": happening.rule}
        self._span.note("cutbank.draft_rejected", rule | {"cutbank.cost": happening.cost_usd})
        self._instruments.drafts_rejected.add(1, known(self._who | rule))

    def accepted(self, happening: Happening) -> None:
        self._took(happening)
        self._fate, self._error = Fate.ACCEPTED, None

    def cancelled(self) -> None:
        """Nobody waits for its draft any more."""
        self._fate, self._error = Fate.CANCELLED, None

    def end(self) -> None:
        fate: Attributes = {"cutbank.summary.outcome": self._fate.value}
        self._span.add(fate | self._tokens | {"cutbank.cost": self._cost or None})
        try:
            # While it is current: what is measured leads to an example of it.
            self._instruments.summary_duration.record(self._span.took, known(self._who | fate))
        finally:
            self._span.end(self._error)

    def _took(self, happening: Happening) -> None:
        """Add up what a draft took: each was paid for, whether it was taken or not."""
        model: Attributes = {"gen_ai.response.model": happening.model}
        self._span.add(model)
        which = known(self._who | model)
        if happening.cost_usd is not None:
            self._cost += happening.cost_usd
            self._instruments.summary_cost.add(happening.cost_usd, which)
        for name, tokens in _usage(happening):
            self._tokens[name] = self._tokens.get(name, 0) + tokens
            if kind := KINDS.get(name):
                self._instruments.summary_tokens.add(tokens, {**which, "gen_ai.token.type": kind})


KINDS = {"gen_ai.usage.input_tokens": "input", "gen_ai.usage.output_tokens": "output"}
"""The attributes that together are all tokens; the others are parts of these."""


def _usage(happening: Happening) -> Iterator[tuple[str, int]]:
    """What a provider reported, by the names of the semantic conventions for GenAI."""
    usage = happening.usage
    if usage is None:
        return
    reported = {
        "gen_ai.usage.input_tokens": usage.context,  # cached ones are among them
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write,
        "gen_ai.usage.output_tokens": usage.output,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning,
    }
    for name, tokens in reported.items():
        if tokens is not None:
            yield name, tokens
