"""Keeps a span current in its thread until it ends."""

from collections.abc import Mapping
from time import monotonic

from opentelemetry import context, trace
from opentelemetry.trace import Status, StatusCode
from opentelemetry.util.types import AttributeValue

Attributes = dict[str, AttributeValue | None]
"""Attributes whose value is None are left out."""


class CurrentSpan:
    """A span and its duration; of an error it records only the type.

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
