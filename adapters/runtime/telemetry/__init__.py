"""Spans and metrics of OpenTelemetry, in programs that use it."""
