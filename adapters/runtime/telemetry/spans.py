"""Traces a compaction as a span, with a child span for each summarizer and the costs of drafts."""

from collections.abc import Iterator, Mapping
from time import monotonic
from types import TracebackType
from typing import Self

from opentelemetry import context, trace
from opentelemetry.trace import Status, StatusCode
from opentelemetry.util.types import AttributeValue

from ....domain.errors import (
    CompactionCancelledError,
    CompactionVetoedError,
    LeaseHeldError,
    LeaseLostError,
    NothingToCompactError,
    StalePlanError,
)
from ....domain.hooks import CompactionEvent, CompactionEventKind
from ...storage.view_reader import ViewReader
from ..compaction.options import CompactionRequest
from ..compaction.outcome import CompactionObserver, CompactionOutcome
from .metrics import Instruments, get_instruments, get_tracer, log_errors

Attributes = dict[str, AttributeValue | None]
"""Attributes whose value is None are left out."""


_RESULT_BY_ERROR: dict[type[BaseException], str] = {
    NothingToCompactError: "nothing_to_gain",
    CompactionVetoedError: "vetoed",
    StalePlanError: "overtaken",
    LeaseHeldError: "lease_held",
    LeaseLostError: "lease_lost",
    CompactionCancelledError: "cancelled",
}
"""The errors that state a result; any other is a failure."""

USAGE_TOKEN_KINDS = {"gen_ai.usage.input_tokens": "input", "gen_ai.usage.output_tokens": "output"}
"""The attributes that add up to all tokens; the others are parts of these."""


class CurrentSpan:
    """A span that is current in its thread until it ends; of an error it records only the type.

    Messages and tracebacks may contain session content and are left out.
    """

    def __init__(self, tracer: trace.Tracer, name: str, attributes: Attributes) -> None:
        self._span = tracer.start_span(name, attributes=drop_missing(attributes))
        self._token = context.attach(trace.set_span_in_context(self._span))
        self._began = monotonic()

    def add(self, attributes: Attributes) -> None:
        self._span.set_attributes(drop_missing(attributes))

    def note(self, event: str, attributes: Attributes) -> None:
        self._span.add_event(event, drop_missing(attributes))

    @property
    def seconds(self) -> float:
        return monotonic() - self._began

    def end(self, error: str | None = None) -> None:
        context.detach(self._token)
        if error is not None:
            self._span.set_status(Status(StatusCode.ERROR))
            self._span.set_attribute("error.type", error)
        self._span.end()


def drop_missing(attributes: Attributes) -> Mapping[str, AttributeValue]:
    return {name: value for name, value in attributes.items() if value is not None}


class SummarySpan:
    """The span from a summarizer's first request to the end of its turn."""

    def __init__(
        self, tracer: trace.Tracer, instruments: Instruments, summarizer: str | None
    ) -> None:
        self._instruments = instruments
        self._who: Attributes = {"cutbank.summariser": summarizer}
        self._span = CurrentSpan(tracer, "cutbank.summarise", self._who)
        self._outcome = "cancelled"
        self._error: str | None = None
        self._cost = 0.0
        self._tokens: dict[str, int] = {}

    def reject(self, event: CompactionEvent) -> None:
        """Note a draft that failed the gate, by its rule, or a summarizer that failed."""
        self._add_draft(event)
        if event.rule is None:
            self._outcome, self._error = "failed", event.error or "failed"
            return
        self._outcome, self._error = "rejected", event.rule
        rule: Attributes = {"cutbank.rule": event.rule}
        self._span.note("cutbank.draft_rejected", rule | {"cutbank.cost": event.cost_usd})
        self._instruments.drafts_rejected.add(1, drop_missing(self._who | rule))

    def accept(self, event: CompactionEvent) -> None:
        self._add_draft(event)
        self._outcome, self._error = "accepted", None

    def cancel(self) -> None:
        self._outcome, self._error = "cancelled", None

    def end(self) -> None:
        outcome: Attributes = {"cutbank.summary.outcome": self._outcome}
        self._span.add(outcome | self._tokens | {"cutbank.cost": self._cost or None})
        try:
            # While the span is current, so that exemplars link to it.
            self._instruments.summary_duration.record(
                self._span.seconds, drop_missing(self._who | outcome)
            )
        finally:
            self._span.end(self._error)

    def _add_draft(self, event: CompactionEvent) -> None:
        """Add up what a draft took: each is paid for, accepted or not."""
        model: Attributes = {"gen_ai.response.model": event.model}
        self._span.add(model)
        which = drop_missing(self._who | model)
        if event.cost_usd is not None:
            self._cost += event.cost_usd
            self._instruments.summary_cost.add(event.cost_usd, which)
        for name, tokens in _usage_attributes(event):
            self._tokens[name] = self._tokens.get(name, 0) + tokens
            if kind := USAGE_TOKEN_KINDS.get(name):
                self._instruments.summary_tokens.add(tokens, {**which, "gen_ai.token.type": kind})


def _usage_attributes(event: CompactionEvent) -> Iterator[tuple[str, int]]:
    """Yield the reported usage, under the names of the semantic conventions for GenAI."""
    usage = event.usage
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


class CompactionTelemetry(CompactionObserver):
    """The span and the metrics of one compaction.

    Its spans are current in the compacting thread while they last, so that spans of hooks and
    providers' clients become their children.
    """

    def __init__(self, reader: ViewReader, request: CompactionRequest) -> None:
        self._request = request
        self._reason: Attributes = {
            "cutbank.trigger": request.trigger.value,
            "cutbank.policy": request.policy.name,
        }
        self._session: Attributes = {
            "gen_ai.conversation.id": reader.key,
            "cutbank.namespace": reader.namespace,
            "cutbank.lineage": reader.lineage,
            "cutbank.limit": request.limit,
        }
        self._result = "failed"
        self._was_planned = self._was_recorded = False
        self._span: CurrentSpan | None = None
        self._summary: SummarySpan | None = None

    def __enter__(self) -> Self:
        with log_errors("a compaction"):
            self._instruments = get_instruments()
            self._tracer = get_tracer()
            self._span = CurrentSpan(self._tracer, "cutbank.compact", self._reason | self._session)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._span is None:
            return
        if self._summary:
            self._summary.cancel()
        self._end_summary()
        with log_errors("a compaction"):
            wrong = None
            if kind is not None:
                self._result = _find_result(kind)
                wrong = kind.__qualname__ if self._result == "failed" else None
            result: Attributes = {"cutbank.compaction.outcome": self._result}
            self._span.add(result)
            try:
                # While the span is current, so that exemplars link to it.
                duration = self._instruments.compaction_duration
                duration.record(self._span.seconds, drop_missing(self._reason | result))
            finally:
                self._span.end(wrong)

    def __call__(self, happening: CompactionEvent) -> None:
        if self._span is None:
            return
        with log_errors(f"{happening.moment} of a compaction"):
            self._record_event(self._span, happening)

    def finish(self, outcome: CompactionOutcome) -> CompactionOutcome:
        if self._was_recorded:
            self._result = "compacted" if self._request.activate else "prepared"
        elif outcome.compacted:
            self._result = "done_before"  # by an earlier run with the same idempotency key
        else:
            self._result = "overtaken" if self._was_planned else "no_need"
        return outcome

    def _record_event(self, span: CurrentSpan, event: CompactionEvent) -> None:
        before, after = event.before, event.after
        match event.moment:
            case CompactionEventKind.PRE_COMPACT if before:
                self._was_planned = True
                counts: Attributes = {"cutbank.tokens.before": before.tokens}
                span.add(counts | {"cutbank.blocks.before": before.blocks})
            case CompactionEventKind.SUMMARIZING:
                self._end_summary()
                self._summary = SummarySpan(self._tracer, self._instruments, event.summarizer)
            case CompactionEventKind.REJECTED if self._summary:
                self._summary.reject(event)
            case CompactionEventKind.SUMMARIZED if self._summary:
                self._summary.accept(event)
                self._end_summary()
            case CompactionEventKind.RECORDED if before and after:
                self._was_recorded = True
                span.add(
                    {
                        "cutbank.tokens.after": after.tokens,
                        "cutbank.blocks.after": after.blocks,
                        "cutbank.boundary": event.boundary,
                        "cutbank.summariser": event.summarizer,
                    }
                )
                saved = max(before.tokens - after.tokens, 0)
                self._instruments.tokens_saved.add(saved, drop_missing(self._reason))
            case _:
                pass

    def _end_summary(self) -> None:
        if (summary := self._summary) is not None:
            self._summary = None
            with log_errors("a summarizer"):
                summary.end()


def _find_result(kind: type[BaseException]) -> str:
    found = (result for error, result in _RESULT_BY_ERROR.items() if issubclass(kind, error))
    return next(found, "failed")
