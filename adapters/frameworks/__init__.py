"""Adapters for agent frameworks: each stores the framework's own items and serves it the view."""
