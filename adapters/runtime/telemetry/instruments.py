"""Defines the metrics by name; none of them identifies a session."""

from functools import lru_cache
from importlib.metadata import version
from typing import Any

from opentelemetry import metrics, trace

METER_NAME = "cutbank"

DURATION_BOUNDS_S = (
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1,
    2.5,
    5,
    10,
    20,
    40,
    80,
    160,
    320,
)
"""Bounds for durations from milliseconds, for rules, to minutes, for models."""


class Instruments:
    def __init__(self, meter: metrics.Meter) -> None:
        self.compaction_duration = meter.create_histogram(
            "cutbank.compaction.duration",
            unit="s",
            description="How long compactions took, their summaries included",
            explicit_bucket_boundaries_advisory=DURATION_BOUNDS_S,
        )
        self.tokens_saved = meter.create_counter(
            "cutbank.compaction.tokens_saved",
            unit="{token}",
            description="Tokens by which views became smaller",
        )
        self.prepare_duration = meter.create_histogram(
            "cutbank.prepare.duration",
            unit="s",
            description="How long agents waited for what to send to their models",
            explicit_bucket_boundaries_advisory=DURATION_BOUNDS_S,
        )
        self.summary_duration = meter.create_histogram(
            "cutbank.summary.duration",
            unit="s",
            description="How long summarisers took, their retries included",
            explicit_bucket_boundaries_advisory=DURATION_BOUNDS_S,
        )
        self.summary_tokens = meter.create_counter(
            "cutbank.summary.tokens",
            unit="{token}",
            description="Tokens of which providers reported for summaries",
        )
        self.summary_cost = meter.create_counter(
            "cutbank.summary.cost",
            unit="{USD}",
            description="What drafts cost in US dollars, rejected ones included",
        )
        self.drafts_rejected = meter.create_counter(
            "cutbank.summary.drafts_rejected",
            unit="{draft}",
            description="Drafts that failed the gate",
        )
        self.idle_due = meter.create_gauge(
            "cutbank.idle.due", unit="{session}", description="Sessions that are due"
        )
        self.idle_next_due = meter.create_gauge(
            "cutbank.idle.next_due",
            unit="s",
            description="Time from the last look until the next session is due",
        )
        self.idle_looks = meter.create_counter(
            "cutbank.idle.looks", unit="{look}", description="Looks at what is due"
        )
        self.idle_running = meter.create_up_down_counter(
            "cutbank.idle.running",
            unit="{session}",
            description="Sessions that workers are at",
        )
        self.idle_sessions = meter.create_counter(
            "cutbank.idle.sessions",
            unit="{session}",
            description="Due sessions, by what became of them",
        )
        self.idle_chores = meter.create_counter(
            "cutbank.idle.chores", unit="{chore}", description="Storage chores that were begun"
        )
        self.idle_incidents = meter.create_counter(
            "cutbank.idle.incidents",
            unit="{incident}",
            description="What kept the worker from its work",
        )


def get_instruments() -> Instruments:
    return _make_instruments(metrics.get_meter_provider())


def get_tracer() -> trace.Tracer:
    return trace.get_tracer_provider().get_tracer(METER_NAME, _package_version())


@lru_cache(maxsize=1)
def _make_instruments(provider: Any) -> Instruments:
    return Instruments(provider.get_meter(METER_NAME, _package_version()))


@lru_cache(maxsize=1)
def _package_version() -> str:
    return version("cutbank")
