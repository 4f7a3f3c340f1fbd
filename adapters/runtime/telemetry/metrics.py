"""Records the metrics of compactions, agents' waits and idle workers; none identifies a session."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib.metadata import version
from time import monotonic
from typing import Any

from opentelemetry import metrics, trace
from opentelemetry.util.types import AttributeValue

from ..compaction.outcome import CompactionOutcome
from ..idle.notices import NoticeKind, WorkerNotice

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
    "idle.chores": ("chore", "Storage chores that were begun"),
}

Attributes = dict[str, AttributeValue | None]
"""Attributes whose value is None are left out."""


def drop_missing(attributes: Attributes) -> dict[str, AttributeValue]:
    return {name: value for name, value in attributes.items() if value is not None}


class Instruments:
    def __init__(self, meter: metrics.Meter) -> None:
        self._durations = {
            name: meter.create_histogram(
                f"cutbank.{name}",
                unit="s",
                description=description,
                explicit_bucket_boundaries_advisory=DURATION_BOUNDS_S,
            )
            for name, description in _DURATIONS.items()
        }
        self._counters = {
            name: meter.create_counter(f"cutbank.{name}", f"{{{unit}}}", description)
            for name, (unit, description) in _COUNTERS.items()
        }
        self.idle_due = meter.create_gauge("cutbank.idle.due", "{session}", "Sessions that are due")

    def measure(self, name: str, seconds: float, attributes: Attributes) -> None:
        self._durations[name].record(seconds, drop_missing(attributes))

    def count(self, name: str, amount: float, attributes: Attributes) -> None:
        self._counters[name].add(amount, drop_missing(attributes))


def get_instruments() -> Instruments:
    return _make_instruments(metrics.get_meter_provider())


def get_tracer() -> trace.Tracer:
    return trace.get_tracer_provider().get_tracer(METER_NAME, version("cutbank"))


@lru_cache(maxsize=1)
def _make_instruments(provider: Any) -> Instruments:
    return Instruments(provider.get_meter(METER_NAME, version("cutbank")))


@contextmanager
def log_errors(what: str) -> Iterator[None]:
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
        with log_errors("an agent's wait"):
            about: Attributes = {"cutbank.prepare.outcome": result}
            get_instruments().measure("prepare.duration", monotonic() - began, about)


def record_worker_metrics(notice: WorkerNotice) -> None:
    about = notice.about
    with log_errors("an idle worker"):
        meters = get_instruments()
        if notice.due is not None:
            meters.idle_due.set(notice.due)
        if about in _SESSION_RESULTS:
            meters.count("idle.sessions", 1, {"cutbank.idle.outcome": about.value})
        if result := _MAINTENANCE_RESULTS.get(about):
            chore = notice.chore or "unknown"
            which: Attributes = {"cutbank.idle.outcome": result, "cutbank.idle.chore": chore}
            meters.count("idle.chores", 1, which)
