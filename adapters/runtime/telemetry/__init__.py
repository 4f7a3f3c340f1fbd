"""Emits OpenTelemetry spans and metrics, in programs that use it."""
