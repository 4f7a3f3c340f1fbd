"""Knows models: names, limits, prices and token counting."""
