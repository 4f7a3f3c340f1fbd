"""Traces compactions as spans, and measures them, agents' waits and idle workers.

A compaction is a span with a child for each summarizer. No metric identifies a session.
"""

import logging
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib.metadata import version
from time import monotonic
from types import TracebackType
from typing import Any, Self

from opentelemetry import context, metrics, trace
from opentelemetry.trace import Status, StatusCode
from opentelemetry.util.types import AttributeValue

from ...domain.errors import (
    CompactionCancelledError,
    CompactionVetoedError,
    LeaseHeldError,
    LeaseLostError,
    NothingToCompactError,
    StalePlanError,
)
from ...domain.hooks import CompactionEvent, CompactionEventKind
from ...domain.session_events import Usage
from ..storage.view_reader import ViewReader
from .compaction.options import CompactionRequest
from .compaction.outcome import CompactionOutcome
from .idle.notices import NoticeKind, WorkerNotice

logger = logging.getLogger("cutbank.telemetry")

METER_NAME = "cutbank"
DURATION_BOUNDS_S = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1, 2.5, 5, 10, 20, 40, 80, 160, 320),
)
"""Bounds for durations from milliseconds, for rules, to minutes, for models."""

_SESSION_RESULTS = {
    *(NoticeKind.DONE, NoticeKind.PASSED_OVER, NoticeKind.FAILED, NoticeKind.LOST),
}
"""Each session that was begun ends in one of these."""
_MAINTENANCE_RESULTS = {NoticeKind.CHORE_DONE: "done", NoticeKind.CHORE_FAILED: "failed"}

_DURATIONS = {
    "compaction.duration": "How long compactions took, their summaries included",
    "prepare.duration": "How long agents waited for what to send to their models",
    "summary.duration": "How long summarizers took, their retries included",
}
_COUNTERS = {
    # Name, unit and description.
    "compaction.tokens_saved": ("token", "Tokens by which views became smaller"),
    "summary.tokens": ("token", "Tokens that providers reported for summaries"),
    "summary.cost": ("USD", "What drafts cost in US dollars, rejected ones included"),
    "summary.drafts_rejected": ("draft", "Drafts that failed the gate"),
    "idle.sessions": ("session", "Due sessions, by what became of them"),
    "idle.chores": ("chore", "Backups that were due"),
}

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

Attributes = dict[str, AttributeValue | None]
"""Attributes whose value is None are left out."""


def _drop_missing(attributes: Attributes) -> dict[str, AttributeValue]:
    return {name: value for name, value in attributes.items() if value is not None}


@lru_cache(maxsize=1)
def _make_instruments(provider: Any) -> dict[str, Any]:
    meter = provider.get_meter(METER_NAME, version("cutbank"))
    made = {
        name: meter.create_histogram(
            f"cutbank.{name}",
            unit="s",
            description=description,
            explicit_bucket_boundaries_advisory=DURATION_BOUNDS_S,
        )
        for name, description in _DURATIONS.items()
    }
    for name, (unit, description) in _COUNTERS.items():
        made[name] = meter.create_counter(f"cutbank.{name}", f"{{{unit}}}", description)
    made["idle.due"] = meter.create_gauge("cutbank.idle.due", "{session}", "Sessions that are due")
    return made


def _get_instrument(name: str) -> Any:
    return _make_instruments(metrics.get_meter_provider())[name]


def _measure(name: str, seconds: float, attributes: Attributes) -> None:
    _get_instrument(name).record(seconds, _drop_missing(attributes))


def _count(name: str, amount: float, attributes: Attributes) -> None:
    _get_instrument(name).add(amount, _drop_missing(attributes))


@contextmanager
def _log_errors(what: str) -> Iterator[None]:
    """Log whatever exporters and processors raise within this context, and suppress it."""
    try:
        yield
    except Exception:  # span processors may raise anything
        logger.exception("no telemetry of %s: nothing else was changed by it", what)


@contextmanager
def measure_preparation(find_outcome: Callable[[], CompactionOutcome | None]) -> Iterator[None]:
    """Measure how long a compaction delays an agent's next model call."""
    began, before, result = monotonic(), find_outcome(), "failed"
    try:
        yield
        last = find_outcome()
        is_new = last is not None and last is not before and last.compacted
        result = "compacted" if is_new else "served"
    finally:
        with _log_errors("an agent's wait"):
            about: Attributes = {"cutbank.prepare.outcome": result}
            _measure("prepare.duration", monotonic() - began, about)


def record_worker_metrics(notice: WorkerNotice) -> None:
    about = notice.about
    with _log_errors("an idle worker"):
        if notice.due is not None:
            _get_instrument("idle.due").set(notice.due)
        if about in _SESSION_RESULTS:
            _count("idle.sessions", 1, {"cutbank.idle.outcome": about.value})
        if result := _MAINTENANCE_RESULTS.get(about):
            chore = notice.chore or "unknown"
            which: Attributes = {"cutbank.idle.outcome": result, "cutbank.idle.chore": chore}
            _count("idle.chores", 1, which)


class TimedSpan:
    """A span that is current in its thread until it ends; of an error it records only the type.

    Messages and tracebacks may contain session content and are left out.
    """

    def __init__(self, name: str, attributes: Attributes) -> None:
        tracer = trace.get_tracer_provider().get_tracer(METER_NAME, version("cutbank"))
        self.span = tracer.start_span(name, attributes=_drop_missing(attributes))
        self._token = context.attach(trace.set_span_in_context(self.span))
        self._began = monotonic()

    def add(self, attributes: Attributes) -> None:
        self.span.set_attributes(_drop_missing(attributes))

    def end(self, duration: str, about: Attributes, error: str | None) -> None:
        """End the span and measure it; `about` are the attributes of the metric `duration`."""
        try:
            # While the span is current, so that exemplars link to it.
            _measure(duration, monotonic() - self._began, about)
        finally:
            context.detach(self._token)
            if error is not None:
                self.span.set_status(Status(StatusCode.ERROR))
                self.span.set_attribute("error.type", error)
            self.span.end()


class SummarySpan(TimedSpan):
    """The span from a summarizer's first request to the end of its turn."""

    def __init__(self, summarizer: str | None) -> None:
        self._who: Attributes = {"cutbank.summariser": summarizer}
        super().__init__("cutbank.summarise", self._who)
        self._outcome = "cancelled"
        self._error: str | None = None
        self._paid: defaultdict[str, float] = defaultdict(int)
        """The tokens and the cost of all drafts, by attribute: each is paid for."""

    def note_draft(self, event: CompactionEvent) -> None:
        """Note a draft that was accepted or failed the gate, or a summarizer that failed."""
        who = self._who | {"gen_ai.response.model": event.model}
        self.add(who)
        if event.cost_usd is not None:
            self._paid["cutbank.cost"] += event.cost_usd
            _count("summary.cost", event.cost_usd, who)
        for name, tokens in _list_usage(event.usage).items():
            self._paid[name] += tokens
            if kind := USAGE_TOKEN_KINDS.get(name):
                _count("summary.tokens", tokens, who | {"gen_ai.token.type": kind})
        if event.moment is CompactionEventKind.SUMMARIZED:
            self._outcome, self._error = "accepted", None
        elif event.rule is None:
            self._outcome, self._error = "failed", event.error or "failed"
        else:
            self._outcome, self._error = "rejected", event.rule
            rule: Attributes = {"cutbank.rule": event.rule}
            about = _drop_missing(rule | {"cutbank.cost": event.cost_usd})
            self.span.add_event("cutbank.draft_rejected", about)
            _count("summary.drafts_rejected", 1, self._who | rule)

    def finish(self, *, is_cancelled: bool) -> None:
        if is_cancelled:
            self._outcome, self._error = "cancelled", None
        outcome: Attributes = {"cutbank.summary.outcome": self._outcome}
        self.add(outcome | dict(self._paid))
        self.end("summary.duration", self._who | outcome, self._error)


def _list_usage(usage: Usage | None) -> dict[str, int]:
    """Return the reported usage, under the names of the semantic conventions for GenAI."""
    if usage is None:
        return {}
    reported = {
        "gen_ai.usage.input_tokens": usage.context,  # including cached tokens
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write,
        "gen_ai.usage.output_tokens": usage.output,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning,
    }
    return {name: tokens for name, tokens in reported.items() if tokens is not None}


class CompactionTelemetry:
    """The span and the metrics of one compaction, which is called with each of its events.

    Listeners only hear of compactions that have a plan, and not always of the end; this sees each
    one whole, and never raises. Its spans are current in the compacting thread while they last, so
    that spans of hooks and providers' clients become their children.
    """

    def __init__(self, reader: ViewReader, request: CompactionRequest) -> None:
        self._is_served = request.activate
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
        self._span: TimedSpan | None = None
        self._summary: SummarySpan | None = None

    def __enter__(self) -> Self:
        with _log_errors("a compaction"):
            self._span = TimedSpan("cutbank.compact", self._reason | self._session)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._span is None:
            return
        self._end_summary(is_cancelled=True)
        with _log_errors("a compaction"):
            wrong = None
            if kind is not None:
                by_error = (name for one, name in _RESULT_BY_ERROR.items() if issubclass(kind, one))
                self._result = next(by_error, "failed")
                wrong = kind.__qualname__ if self._result == "failed" else None
            result: Attributes = {"cutbank.compaction.outcome": self._result}
            self._span.add(result)
            self._span.end("compaction.duration", self._reason | result, wrong)

    def __call__(self, event: CompactionEvent) -> None:
        if self._span is None:
            return
        with _log_errors(f"{event.moment} of a compaction"):
            self._record_event(self._span, event)

    def finish(self, outcome: CompactionOutcome) -> CompactionOutcome:
        if self._was_recorded:
            self._result = "compacted" if self._is_served else "prepared"
        elif outcome.compacted:
            self._result = "done_before"  # by an earlier run with the same idempotency key
        else:
            self._result = "overtaken" if self._was_planned else "no_need"
        return outcome

    def _record_event(self, span: TimedSpan, event: CompactionEvent) -> None:
        before, after = event.before, event.after
        match event.moment:
            case CompactionEventKind.PRE_COMPACT if before:
                self._was_planned = True
                counts: Attributes = {"cutbank.tokens.before": before.tokens}
                span.add(counts | {"cutbank.blocks.before": before.blocks})
            case CompactionEventKind.SUMMARIZING:
                self._end_summary()
                self._summary = SummarySpan(event.summarizer)
            case CompactionEventKind.REJECTED if self._summary:
                self._summary.note_draft(event)
            case CompactionEventKind.SUMMARIZED if self._summary:
                self._summary.note_draft(event)
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
                _count("compaction.tokens_saved", saved, self._reason)
            case _:
                pass

    def _end_summary(self, *, is_cancelled: bool = False) -> None:
        if (summary := self._summary) is not None:
            self._summary = None
            with _log_errors("a summarizer"):
                summary.finish(is_cancelled=is_cancelled)
