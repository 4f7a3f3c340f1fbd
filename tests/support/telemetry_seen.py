"""What a program hears that has configured OpenTelemetry: its spans as a tree, its metrics."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

Branch = tuple[str, list[Any]]


@dataclass
class Seen:
    exporter: InMemorySpanExporter = field(default_factory=InMemorySpanExporter)
    reader: InMemoryMetricReader = field(default_factory=InMemoryMetricReader)
    tracers: TracerProvider = field(default_factory=TracerProvider)

    def __post_init__(self) -> None:
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.meters = MeterProvider([self.reader])

    def close(self) -> None:
        self.tracers.shutdown()
        self.meters.shutdown()

    @property
    def spans(self) -> list[ReadableSpan]:
        """Those that have ended, in the order in which they began."""
        ended = self.exporter.get_finished_spans()
        # Of two that began at once, the one that ended last holds the other.
        return sorted(ended, key=lambda span: (span.start_time or 0, -(span.end_time or 0)))

    def named(self, name: str) -> list[dict[str, Any]]:
        return [dict(span.attributes or {}) for span in self.spans if span.name == name]

    def tree(self) -> list[Branch]:
        return self._below(None)

    def _below(self, parent: int | None) -> list[Branch]:
        return [
            (span.name, self._below(span.context.span_id))
            for span in self.spans
            if span.context and (span.parent.span_id if span.parent else None) == parent
        ]

    def measured(self) -> dict[str, list[tuple[Mapping[str, Any], float]]]:
        """By metric: attributes, and the value; of a histogram, how often it was measured."""
        return {name: list(points) for name, points in self._points()}

    def _points(self) -> Iterator[tuple[str, Iterator[tuple[Mapping[str, Any], float]]]]:
        data = self.reader.get_metrics_data()
        for resource in data.resource_metrics if data else ():
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    yield (
                        metric.name,
                        (
                            (dict(point.attributes or {}), getattr(point, "count", None) or value)
                            for point in metric.data.data_points
                            for value in [getattr(point, "value", 0)]
                        ),
                    )
