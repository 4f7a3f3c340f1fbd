"""One span that is the current one of its thread until it is ended."""

from collections.abc import Mapping
from time import monotonic

from opentelemetry import context, trace
from opentelemetry.trace import Status, StatusCode
from opentelemetry.util.types import AttributeValue

Attributes = dict[str, AttributeValue | None]
"""What is not known is None, and left out."""


class CurrentSpan:
    """A span, and the time that it takes; it says nothing of an error but its kind.

    Messages and tracebacks may hold what was said in a session, and stay out.
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
        """Seconds until now."""
        return monotonic() - self._began

    def end(self, error: str | None = None) -> None:
        """End it, as failed if there is an error."""
        context.detach(self._token)
        if error is not None:
            self._span.set_status(Status(StatusCode.ERROR))
            self._span.set_attribute("error.type", error)
        self._span.end()


def drop_missing(attributes: Attributes) -> Mapping[str, AttributeValue]:
    return {name: value for name, value in attributes.items() if value is not None}
