"""Renders sessions and backtests as HTML pages that work without a network."""
